"""The stack of the NodePools: in what order their nodes come to exist, and what a deploy leaves."""

import json
from functools import cache
from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import cluster_of, managed_policies
from tests.support.pools import CAPACITY_BLOCK, ODCR, SPOT, SYSTEM_POOL, make_cluster, pool_document
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_k8s import define_charts
from ultrascale_stacks.cluster import AutoModeStack
from ultrascale_stacks.nodes import NodePoolsStack

Document = dict[str, Any]

APPLIED = "Custom::AWSCDK-EKS-KubernetesResource"
PATCHED = "Custom::AWSCDK-EKS-KubernetesPatch"
CALENDAR = "Custom::BlockCalendar"


def planned(provisioner: str, *pools: Document) -> ClusterPlan:
    """Return the plan of a cluster whose nodes ``provisioner`` launches."""
    karpenter = {"version": "1.15.2"} if provisioner == "karpenter" else None
    own = [pool | {"provisioner": provisioner} for pool in pools]
    auto = SYSTEM_POOL | {"provisioner": provisioner, "nodes": {"max": 4}}
    system = SYSTEM_POOL if karpenter else auto
    return plan_cluster(make_cluster(karpenter=karpenter, pools=[system, *own]))


def synthesize(plan: ClusterPlan) -> Template:
    charts = define_charts(plan)
    stack = NodePoolsStack(
        cluster_of(plan), "node-pools", pools=plan.pools, charts=charts.node_pools
    )
    return Template.from_stack(stack)


@cache
def bodies(template: Template) -> dict[str, Document]:
    """Return the resources; the template lies in the process of the CDK, which sends all of it."""
    return dict(template.to_json()["Resources"])


def of_kind(template: Template, kind: str) -> set[str]:
    return {key for key, body in bodies(template).items() if body["Type"] == kind}


def before(template: Template, resource: str) -> set[str]:
    """Return everything that CloudFormation makes before ``resource``, by its DependsOn."""
    every, found = bodies(template), set[str]()
    waiting = [resource]
    while waiting:
        for name in every[waiting.pop()].get("DependsOn", []):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def manifest_text(body: Document) -> str:
    return json.dumps(body["Properties"]["Manifest"])


def applied(template: Template, kind: str, name: str) -> str:
    """Return the logical id of what applies the object of ``kind`` called ``name``."""
    start = json.dumps({"kind": kind, "metadata": {"name": name}}, separators=(",", ":"))
    escaped = json.dumps(start.strip("{}"))[1:-1]
    (found,) = (
        key for key in of_kind(template, APPLIED) if escaped in manifest_text(bodies(template)[key])
    )
    return found


def patch_of(template: Template, name: str) -> str:
    """Return the logical id of what patches the NodePool called ``name``."""
    (found,) = (
        key
        for key in of_kind(template, PATCHED)
        if bodies(template)[key]["Properties"]["ResourceName"] == f"nodepools.karpenter.sh/{name}"
    )
    return found


RESERVED: Document = {"role": "reserved", "nodes": {"static": 4}}
BLOCK = pool_document(name="block", purchase=CAPACITY_BLOCK, **RESERVED)
OTHER_ODCR = ODCR | {"reservation": "cr-0fedcba9876543210"}
FIXED = pool_document(name="fixed", purchase=OTHER_ODCR, **RESERVED)
BURST = pool_document(
    name="burst",
    instance_types=["g6e.12xlarge", "g6e.24xlarge", "g6.12xlarge"],
    purchase=SPOT | {"fallback": "on-demand"},
)
PLACED = pool_document(name="placed", placement_group=True, shards=2)


@pytest.fixture(scope="module")
def karpenter() -> Template:
    return synthesize(planned("karpenter", BLOCK, FIXED, BURST, PLACED))


@pytest.fixture(scope="module")
def auto_mode() -> Template:
    return Template.from_stack(AutoModeStack(cluster_of(planned("auto-mode", BLOCK)), "nodes"))


def calendar_of(template: Template, pool: str) -> str:
    (found,) = (
        each
        for each in of_kind(template, CALENDAR)
        if bodies(template)[each]["Properties"]["Target"]["Name"] == pool
    )
    return found


@pytest.mark.parametrize("name", ["block", "burst", "burst-on-demand"])
def test_a_node_class_and_its_fabric_come_before_its_node_pools(
    karpenter: Template, name: str
) -> None:
    """One that names what is not there yet launches nothing, or nodes without a fabric."""
    node_class = applied(karpenter, "EC2NodeClass", name.removesuffix("-on-demand"))
    first = before(karpenter, applied(karpenter, "NodePool", name))

    assert node_class in first
    if name == "block":
        assert applied(karpenter, "NodeOverlay", name) in first


def test_everything_in_ec2_is_there_before_the_first_object(karpenter: Template) -> None:
    kinds = ("AWS::EC2::PlacementGroup", "AWS::EC2::SecurityGroup")
    made = {key for key, body in bodies(karpenter).items() if body["Type"].startswith(kinds)}

    assert len(made) == 3 * 3 + 2
    for key in of_kind(karpenter, APPLIED) | of_kind(karpenter, PATCHED):
        assert made <= before(karpenter, key)
        text = json.dumps(bodies(karpenter)[key]["Properties"])
        # Each stays far below what an update can carry, without placeholders.
        assert len(text) < 100_000
        assert "${" not in text


def test_each_static_pool_with_a_reservation_has_a_calendar_and_no_other(
    karpenter: Template,
) -> None:
    """It would ask for more nodes than its reservation has, and stop all other pools."""
    found = [bodies(karpenter)[each]["Properties"] for each in of_kind(karpenter, CALENDAR)]

    windows = {body["Target"]["Name"]: "Window" in body for body in found}
    assert windows == {"block": True, "fixed": False}


@pytest.mark.parametrize("name", ["block", "fixed"])
def test_a_calendar_is_called_once_its_pool_is_as_the_file_has_it_and_holds_up_no_other(
    karpenter: Template, name: str
) -> None:
    calendar = calendar_of(karpenter, name)
    objects = of_kind(karpenter, APPLIED)

    (rights,) = (
        key
        for key in objects
        if "ClusterRoleBinding" in manifest_text(bodies(karpenter)[key])
        and f"block-calendar:{name}" in manifest_text(bodies(karpenter)[key])
    )
    assert {patch_of(karpenter, name), rights} <= before(karpenter, calendar)
    for key in objects | of_kind(karpenter, PATCHED):
        assert calendar not in before(karpenter, key)


class TestNodePools:
    """Effect of a deploy on existing NodePools."""

    @pytest.mark.parametrize("name", ["block", "fixed"])
    def test_static_ones_are_seeded_and_only_the_calendar_sets_the_size(
        self, karpenter: Template, name: str
    ) -> None:
        seed = manifest_text(bodies(karpenter)[applied(karpenter, "NodePool", name)])
        patch = bodies(karpenter)[patch_of(karpenter, name)]["Properties"]

        assert '\\"replicas\\":0' in seed
        assert "limits" not in seed
        paths = {operation["path"] for operation in json.loads(patch["ApplyPatchJson"])}
        assert "/spec/replicas" not in paths

    def test_a_pool_that_gets_a_calendar_keeps_its_seed(self) -> None:
        plan = planned("karpenter", BLOCK)
        without = tuple(replace(pool, calendar=None) for pool in plan.nodes.node_pools)

        first, second = (
            synthesize(plan),
            synthesize(replace(plan, nodes=replace(plan.nodes, node_pools=without))),
        )

        for template in (first, second):
            assert len(of_kind(template, PATCHED)) == 1
        seed = applied(first, "NodePool", "block")
        assert bodies(first)[seed] == bodies(second)[seed]

    def test_a_fallback_that_leaves_the_file_leaves_the_cluster_and_moves_no_other(
        self, karpenter: Template
    ) -> None:
        alone = BURST | {"purchase": SPOT}

        first, second = (synthesize(planned("karpenter", FIXED, pool)) for pool in (BURST, alone))

        gone = of_kind(first, APPLIED) - of_kind(second, APPLIED)
        assert gone == {applied(first, "NodePool", "burst-on-demand")}
        assert bodies(first)[gone.pop()]["DeletionPolicy"] == "Delete"
        for kind in (APPLIED, PATCHED):
            assert of_kind(first, kind) < of_kind(karpenter, kind)


class TestPlacementGroups:
    """The name that EC2 makes up takes the place of the placeholder."""

    @pytest.mark.parametrize("shard", ["placed-1", "placed-2"])
    def test_a_node_class_names_the_group_of_its_own_shard(
        self, karpenter: Template, shard: str
    ) -> None:
        manifest = bodies(karpenter)[applied(karpenter, "EC2NodeClass", shard)]["Properties"]

        group = manifest["Manifest"]["Fn::Join"][1][1]["Ref"]
        assert group in of_kind(karpenter, "AWS::EC2::PlacementGroup")
        assert group.startswith(f"placedPlacementGroup{shard[-1]}")


class TestRoleOfAutoMode:
    """A node of our own node classes needs a role, and the right to join with it."""

    def test_nodes_may_what_auto_mode_documents_and_join_through_an_entry_of_their_type(
        self, auto_mode: Template
    ) -> None:
        found = [each["Properties"] for each in bodies(auto_mode).values()]
        (role,) = (each for each in found if "RoleName" in each)
        (entry,) = (each for each in found if each.get("Type") == "EC2")

        assert role["RoleName"] == "research-node-us-west-2"
        assert managed_policies(role) == {
            "AmazonEKSWorkerNodeMinimalPolicy",
            "AmazonEC2ContainerRegistryPullOnly",
        }
        (policy,) = entry["AccessPolicies"]
        assert "/AmazonEKSAutoNodePolicy" in json.dumps(policy["PolicyArn"])
        assert policy["AccessScope"] == {"Type": "cluster"}
