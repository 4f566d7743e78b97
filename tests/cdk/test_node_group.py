"""The managed node group of a pool, and what its nodes need around them."""

from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import flat, make_pool_plan, the
from tests.support.managed_groups import BLOCK, CLUSTER_GROUP, NODE_GROUP, ODCR, SIZE, synthesize
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.plan.model import PoolPlan, Taint


def group_of(plan: PoolPlan) -> dict[str, Any]:
    return the(synthesize(plan), NODE_GROUP)


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge", nodes=config.Nodes(min=2, max=16)))


@pytest.fixture(scope="module")
def system() -> dict[str, Any]:
    nodes = config.Nodes(static=3)
    return group_of(make_pool_plan("m7g.2xlarge", name="system", role="system", nodes=nodes))


# A lost connection to DCGM marks healthy GPUs as broken: no node is ended for it.
BOUNDED = {
    "MaxParallelNodesRepairedCount": 1,
    "NodeRepairConfigOverrides": [
        {
            "NodeMonitoringCondition": "AcceleratedHardwareReady",
            "NodeUnhealthyReason": "DCGMError",
            "MinRepairWaitTimeMins": 30,
            "RepairAction": "NoAction",
        }
    ],
}


def test_nodes_run_the_pinned_image_in_the_subnets_of_their_pool(
    p5: Template, system: dict[str, Any]
) -> None:
    (template,) = p5.find_resources("AWS::EC2::LaunchTemplate")
    (role,) = p5.find_resources("AWS::IAM::Role")
    (lookup,) = p5.find_resources(SIZE)
    found = the(p5, NODE_GROUP)
    labels = found.pop("Labels")

    assert labels == dict(make_pool_plan().labels)
    # Without a name: a replacement can stand beside it. One type stands in the template alone.
    assert flat(found) == {
        "AmiType": "AL2023_x86_64_NVIDIA",
        "CapacityType": "ON_DEMAND",
        "ClusterName": "research",
        "LaunchTemplate.Id": {"Ref": template},
        # A new version of the template reaches the nodes.
        "LaunchTemplate.Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
        "NodeRepairConfig.Enabled": True,
        **flat(BOUNDED, "NodeRepairConfig"),
        "NodeRole": {"Fn::GetAtt": [role, "Arn"]},
        "ReleaseVersion": versions.ami_release("1.35").version,
        "ScalingConfig.DesiredSize": {"Fn::GetAtt": [lookup, "DesiredSize"]},
        "ScalingConfig.MaxSize": 16,
        "ScalingConfig.MinSize": 2,
        "Subnets.0": "subnet-b",
        # Accelerated nodes keep other pods off.
        "Taints.0.Key": "nvidia.com/gpu",
        "Taints.0.Value": "true",
        "Taints.0.Effect": "NO_SCHEDULE",
        # An update asks for spare capacity only where there is some.
        "UpdateConfig.MaxUnavailable": 1,
        "UpdateConfig.UpdateStrategy": "MINIMAL",
        "Version": "1.35",
    }
    assert system["AmiType"] == "AL2023_ARM_64_STANDARD"
    assert system["UpdateConfig"]["UpdateStrategy"] == "DEFAULT"
    assert "Taints" not in system


def test_several_types_keep_their_order_and_an_update_takes_no_more_nodes_than_planned() -> None:
    types = ["g6.24xlarge", "g6.48xlarge"]
    found = group_of(replace(make_pool_plan(*types), max_unavailable=4))

    assert found["InstanceTypes"] == types
    assert found["UpdateConfig"]["MaxUnavailable"] == 4


@pytest.mark.parametrize(
    ("purchase", "capacity_type", "repaired"),
    [
        (config.OnDemand(), "ON_DEMAND", True),
        (config.Spot(), "SPOT", True),
        # Broken nodes of a reservation are left to whoever runs the jobs.
        (ODCR, "ON_DEMAND", False),
        (BLOCK, "CAPACITY_BLOCK", False),
    ],
    ids=["On-Demand", "Spot", "ODCR", "Capacity Block"],
)
def test_it_is_bought_as_the_file_says(
    purchase: config.Purchase, capacity_type: str, repaired: bool
) -> None:
    found = group_of(make_pool_plan(purchase=purchase))

    assert found["CapacityType"] == capacity_type
    assert found["NodeRepairConfig"] == {"Enabled": repaired, **(BOUNDED if repaired else {})}


def test_groups_placement_and_a_reservation_that_may_spill_reach_the_template(
    p5: Template,
) -> None:
    purchase = config.Odcr(reservation="cr-0123456789abcdef0", spill="on-demand")
    template = synthesize(make_pool_plan(purchase=purchase, placement_group=True))
    own, data = (
        the(each, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"] for each in (p5, template)
    )

    (efa,) = p5.find_resources("AWS::EC2::SecurityGroup")
    (placement,) = template.find_resources("AWS::EC2::PlacementGroup")
    (group,) = template.find_resources("AWS::ResourceGroups::Group")
    both = [CLUSTER_GROUP, {"Fn::GetAtt": [efa, "GroupId"]}]
    assert all(nic["Groups"] == both for nic in own["NetworkInterfaces"])
    assert data["Placement"] == {"GroupName": {"Ref": placement}}
    target = {"CapacityReservationResourceGroupArn": {"Fn::GetAtt": [group, "Arn"]}}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": target}


def test_every_effect_is_spelled_as_eks_does() -> None:
    """A wrong word fails the deploy."""
    effects: tuple[Any, ...] = ("NoSchedule", "NoExecute", "PreferNoSchedule")
    taints = tuple(Taint(key="dedicated", value=each, effect=each) for each in effects)

    found = group_of(replace(make_pool_plan("m7g.2xlarge"), taints=taints))["Taints"]

    spelled = ["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"]
    assert [taint["Effect"] for taint in found] == spelled
