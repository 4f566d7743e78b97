"""The stack of a pool's node group: who manages it, where it lies, and what comes with it."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import the
from tests.support.node_group_templates import group_template
from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, POOL, SYSTEM_POOL, make_cluster
from ultrascale.plan import plan_cluster

MANAGED = "AWS::EKS::Nodegroup"
SELF_MANAGED = "AWS::AutoScaling::AutoScalingGroup"
TAGS = "Custom::AutoScalingGroupTags"
GUARD = "Custom::NodeGroupGuard"
# What CloudFormation changes in a group that stays, and with nothing else in the same deploy.
ROLLING = {"Version", "ReleaseVersion", "LaunchTemplate"}
CREATE_ONLY = {"AmiType", "CapacityType", "InstanceTypes", "Subnets", "NodeRole"}
SEVERAL_GPUS = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]


# Of the first each zone has a part, of the others each has one.
POD_CIDRS = ("100.64.0.0/16", "100.65.0.0/16", "100.66.0.0/16")


def synthesize(*, pod_cidrs: Sequence[str] = POD_CIDRS, **changes: Any) -> Template:
    """Return the stack of a pool in which ``changes`` replace keys. Its zone has two subnets."""
    pool = POOL | {"purchase": ON_DEMAND} | changes
    network = {
        "vpc_cidr": "10.0.0.0/16",
        "pod_cidrs": [*pod_cidrs],
        "zones": ["us-west-2a", "us-west-2b"],
    }
    return _synthesize(json.dumps({"network": network, "pools": [SYSTEM_POOL, pool]}))


@cache
def _synthesize(changes: str) -> Template:
    """Most tests compare another pool with the same one."""
    plan = plan_cluster(make_cluster(**json.loads(changes)))
    return group_template(plan, plan.nodes.groups[-1])


KINDS = {"managed-node-group": MANAGED, "self-managed": SELF_MANAGED}
IN_SUBNETS = {MANAGED: "Subnets", SELF_MANAGED: "VPCZoneIdentifier"}
BLOCK: dict[str, Any] = {"purchase": CAPACITY_BLOCK, "role": "reserved"}
FOUND = "ultrascale.dev/cluster-autoscaler"


@pytest.mark.parametrize("provisioner", KINDS)
def test_the_group_is_the_one_that_the_file_asks_for_and_the_autoscaler_finds_it(
    provisioner: str,
) -> None:
    template = synthesize(provisioner=provisioner)

    made = {body["Type"] for body in template.to_json()["Resources"].values()}
    assert made & {*KINDS.values(), "AWS::Scheduler::Schedule"} == {KINDS[provisioner]}
    if provisioner == "self-managed":
        # One subnet for each range of each zone.
        assert len(the(template, SELF_MANAGED)["VPCZoneIdentifier"]) == 2
        tag = {"Key": FOUND, "Value": "research", "PropagateAtLaunch": False}
        assert tag in the(template, SELF_MANAGED)["Tags"]
    else:
        assert the(template, TAGS)["Tags"][FOUND] == "research"


@pytest.mark.parametrize("provisioner", KINDS)
def test_a_block_lies_in_one_subnet_has_its_calendar_and_is_not_scaled(provisioner: str) -> None:
    template = synthesize(provisioner=provisioner, **BLOCK)

    (subnet,) = the(template, KINDS[provisioner])[IN_SUBNETS[KINDS[provisioner]]]
    assert "AcceleratedUsWest2b" in subnet["Fn::ImportValue"]
    assert template.find_resources("AWS::Scheduler::Schedule")
    assert not template.find_resources(TAGS)
    assert FOUND not in str(template.to_json())


@pytest.mark.parametrize(
    "pool",
    [{}, *(BLOCK | {"provisioner": each} for each in KINDS)],
    ids=["managed", *(f"block, {each}" for each in KINDS)],
)
def test_one_more_pod_range_leaves_a_group_where_it_is(pool: dict[str, Any]) -> None:
    before, after = (synthesize(pod_cidrs=ranges, **pool) for ranges in (POD_CIDRS[:1], POD_CIDRS))

    assert after.to_json() == before.to_json()


def test_a_block_that_fits_in_no_other_lies_in_the_largest_subnet() -> None:
    ranges = ["100.64.0.0/22", "100.65.0.0/24", "100.66.0.0/16"]
    template = synthesize(pod_cidrs=ranges, nodes={"max": 64}, **BLOCK)

    (subnet,) = the(template, MANAGED)["Subnets"]
    assert "AcceleratedUsWest2b1" in subnet["Fn::ImportValue"]


def managed_group(template: Template) -> tuple[str, dict[str, Any]]:
    """Return the logical id of the managed group, and all that it is made of."""
    ((id, _),) = template.find_resources(MANAGED).items()
    data = the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    return id, {**the(template, MANAGED), "LaunchTemplate": data}


def is_refused(before: Template, after: Template) -> bool:
    """Return whether CloudFormation refuses the change of the group.

    Source: https://github.com/aws/containers-roadmap/issues/1258
    """
    (old_id, old), (new_id, new) = managed_group(before), managed_group(after)
    changed = {key for key in old | new if old.get(key) != new.get(key)}
    if old_id != new_id or changed & CREATE_ONLY:
        return False
    return bool(changed & ROLLING and changed - ROLLING)


@pytest.mark.parametrize(
    ("pool", "edit"),
    [
        ({}, {"efa": "none"}),
        ({}, {"purchase": ODCR}),
        ({}, {"purchase": CAPACITY_BLOCK}),
        ({}, {"role": "reserved"}),
        ({}, {"instance_types": ["p5e.48xlarge"]}),
        ({}, {"instance_types": ["g6.xlarge"]}),
        ({}, {"instance_types": ["trn1.32xlarge"]}),
        ({"efa": "none"}, {"instance_types": SEVERAL_GPUS}),
        ({}, {"labels": {"team": "research"}}),
        ({}, {"tags": {"team": "research"}}),
        ({}, {"nodes": {"static": 4}}),
        ({"instance_types": SEVERAL_GPUS, "efa": "none"}, {"purchase": {"option": "spot"}}),
        ({"purchase": ODCR}, {"efa": "none"}),
        ({"purchase": ODCR}, {"purchase": ODCR | {"spill": "on-demand"}}),
        ({"purchase": CAPACITY_BLOCK, "role": "reserved"}, {"efa": "none"}),
    ],
    ids=str,
)
def test_every_edit_of_one_key_can_be_deployed_and_taken_back(
    pool: dict[str, Any], edit: dict[str, Any]
) -> None:
    before, after = synthesize(**pool), synthesize(**pool | edit)

    assert not is_refused(before, after)
    assert not is_refused(after, before)


def test_the_name_of_a_resource_group_is_not_taken_twice_while_groups_change_places() -> None:
    spilling: dict[str, Any] = {"purchase": ODCR | {"spill": "on-demand"}}
    kind = "AWS::ResourceGroups::Group"

    with_efa, without = (synthesize(**spilling, efa=efa) for efa in ("auto", "none"))

    assert with_efa.find_resources(kind).keys() == without.find_resources(kind).keys()
    assert with_efa.find_resources(MANAGED).keys() != without.find_resources(MANAGED).keys()


def test_who_manages_the_nodes_may_change() -> None:
    managed, own = (synthesize(provisioner=each) for each in ("managed-node-group", "self-managed"))

    kinds = [
        {id: body["Type"] for id, body in template.to_json()["Resources"].items()}
        for template in (managed, own)
    ]
    shared = kinds[0].keys() & kinds[1].keys()
    assert all(kinds[0][id] == kinds[1][id] for id in shared)


@pytest.mark.parametrize(
    "edit",
    [
        {"efa": "none"},
        {"instance_types": ["p5e.48xlarge"]},
        {"purchase": ON_DEMAND},
        {"provisioner": "self-managed"},
    ],
    ids=str,
)
def test_a_group_that_takes_the_place_of_another_is_guarded_as_its_change(
    edit: dict[str, Any],
) -> None:
    pool: dict[str, Any] = {"purchase": ODCR}

    before, after = synthesize(**pool), synthesize(**pool | edit)

    assert after.find_resources(GUARD).keys() == before.find_resources(GUARD).keys()
    assert the(after, GUARD)["LaunchedFrom"] != the(before, GUARD)["LaunchedFrom"]
