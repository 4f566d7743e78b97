"""The guard between a deployment and the running nodes of a managed group."""

from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.assembly import named_in
from tests.support.construct_stacks import make_pool_plan, resources, the
from tests.support.managed_groups import (
    BLOCK,
    CLUSTER_GROUP,
    FUNCTION,
    GUARD,
    NODE_GROUP,
    ODCR,
    PLAN,
    ZONES,
    synthesize,
)
from tests.support.node_group_templates import node_group_template
from tests.support.pools import make_cluster
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import PoolPlan, RootDisk

CLUSTER = plan_cluster(make_cluster())
RESERVED = make_pool_plan(purchase=ODCR)
BURST = make_pool_plan("g6.12xlarge", efa="none")
TWO_ZONES = ("us-west-2a", "us-west-2b")
LAUNCH_TEMPLATE = "AWS::EC2::LaunchTemplate"
SELF_MANAGED = "AWS::AutoScaling::AutoScalingGroup"


def self_managed(plan: PoolPlan) -> PoolPlan:
    return replace(plan, provisioner="self-managed")


def stack_of(plan: PoolPlan) -> Template:
    return Template.from_json(node_group_template(CLUSTER, plan))


@pytest.fixture(scope="module")
def reserved() -> Template:
    return stack_of(RESERVED)


class TestGuard:
    """EKS replaces node after node when their template changes, whatever runs on them."""

    @pytest.mark.parametrize(
        ("plan", "kind"),
        [
            (RESERVED, NODE_GROUP),
            (make_pool_plan(purchase=BLOCK), NODE_GROUP),
            (self_managed(RESERVED), SELF_MANAGED),
        ],
        ids=["ODCR", "Capacity Block", "self-managed"],
    )
    def test_it_comes_before_whatever_would_end_nodes(self, plan: PoolPlan, kind: str) -> None:
        template = stack_of(plan)

        (guard,) = template.find_resources(GUARD)
        for each in (kind, LAUNCH_TEMPLATE):
            (body,) = resources(template, each)
            assert guard in body["DependsOn"]

    @pytest.mark.parametrize("provisioner", ["managed-node-group", "self-managed"])
    @pytest.mark.parametrize(
        ("plan", "guarded", "sized_by"),
        [(RESERVED, "true", "file"), (BURST, "false", "cluster-autoscaler")],
        ids=["reserved", "burst"],
    )
    def test_an_edit_cannot_take_it_away_and_it_looks_at_the_pools_own_group(
        self, plan: PoolPlan, guarded: str, sized_by: str, provisioner: Any
    ) -> None:
        guard = the(stack_of(replace(plan, provisioner=provisioner)), GUARD)

        assert (guard["Guarded"], guard["SizedBy"]) == (guarded, sized_by)
        assert (guard["ServiceToken"], guard["ClusterName"]) == (FUNCTION, "research")
        assert guard["Labels"] == {"ultrascale.dev/pool": "train", "ultrascale.dev/shard": ""}

    @pytest.mark.parametrize(
        "plan", [self_managed(RESERVED), replace(RESERVED, purchase="on-demand")]
    )
    def test_the_pool_may_lose_what_it_was_guarded_for(
        self, reserved: Template, plan: PoolPlan
    ) -> None:
        after = stack_of(plan)

        assert after.find_resources(GUARD).keys() == reserved.find_resources(GUARD).keys()
        assert the(after, GUARD)["LaunchedFrom"] != the(reserved, GUARD)["LaunchedFrom"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"ami_release": "1.35.9-20261130"},
            {"kubernetes_version": "1.36"},
            {"root_disk": RootDisk(size_gib=200, iops=3000, throughput_mibps=125)},
            {"tags": {"team": "research"}},
            {"raid0": False},
            {"instance_types": ("p5e.48xlarge",)},
            {"instance_types": ("p5.48xlarge", "p5e.48xlarge")},
            {"ami_type": "AL2023_ARM_64_NVIDIA"},
        ],
        ids=str,
    )
    def test_it_is_asked_when_nodes_would_be_replaced(
        self, reserved: Template, changes: Any
    ) -> None:
        after = stack_of(replace(RESERVED, **changes))

        assert the(after, GUARD)["LaunchedFrom"] != the(reserved, GUARD)["LaunchedFrom"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"max_nodes": 17, "initial_nodes": 17},
            {"labels": {**RESERVED.labels, "team": "research"}},
            {"taints": ()},
            {"max_unavailable": 2},
        ],
        ids=str,
    )
    def test_it_does_not_stop_what_leaves_nodes_alone(
        self, reserved: Template, changes: Any
    ) -> None:
        after = stack_of(replace(RESERVED, **changes))

        assert the(after, NODE_GROUP) != the(reserved, NODE_GROUP)
        assert the(after, GUARD) == the(reserved, GUARD)

    def test_it_is_asked_when_what_nodes_are_launched_with_is_replaced_under_its_name(self) -> None:
        template = stack_of(replace(RESERVED, placement_group=True))

        parts = the(template, GUARD)["LaunchedFrom"]["Parts"]
        named = {name for part in parts for name in named_in(part)}
        kinds = ("AWS::EC2::SecurityGroup", "AWS::EC2::PlacementGroup", "AWS::IAM::Role")
        (expected,) = zip(*(template.find_resources(kind) for kind in kinds), strict=True)
        assert named == {*expected}
        assert CLUSTER_GROUP in parts

    def test_self_managed_nodes_outlive_a_new_template(self) -> None:
        before, after = (
            stack_of(self_managed(replace(RESERVED, tags=tags))) for tags in ({}, {"team": "r"})
        )

        assert the(after, LAUNCH_TEMPLATE) != the(before, LAUNCH_TEMPLATE)
        assert the(after, GUARD) == the(before, GUARD)


@pytest.mark.parametrize("plan", [PLAN, RESERVED], ids=["scaled", "fixed"])
def test_zones_are_not_balanced_at_the_cost_of_jobs(plan: PoolPlan) -> None:
    template = synthesize(replace(plan, zones=TWO_ZONES))

    (group,) = template.find_resources(NODE_GROUP)
    assert (
        the(template, ZONES).items()
        >= {
            "ServiceToken": FUNCTION,
            "ClusterName": "research",
            "NodegroupName": {"Fn::GetAtt": [group, "NodegroupName"]},
        }.items()
    )
    # In a single zone there is nothing to balance.
    synthesize(plan).resource_count_is(ZONES, 0)


@pytest.mark.parametrize("kind", [GUARD, ZONES])
def test_a_function_that_never_answers_does_not_hold_a_deploy_for_an_hour(kind: str) -> None:
    properties = the(stack_of(replace(RESERVED, zones=TWO_ZONES)), kind)

    assert int(properties["ServiceTimeout"]) <= 600
