"""Nodes that nobody manages: how the first comes, who asks for it, and how the last one goes."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack, resources, the
from tests.support.pools import CAPACITY_BLOCK
from ultrascale import config
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.node_groups import plan_node_group
from ultrascale_constructs.node_group import SelfManagedGroup

GROUP = "AWS::AutoScaling::AutoScalingGroup"
CLUSTER_GROUP = "sg-0123456789abcdef0"
CLUSTER = make_context(make_stack())
FUNCTION = "arn:aws:lambda:us-west-2:111122223333:function:node-groups"
ZONES = "Custom::SuspendedZoneRebalancing"
TWO_ZONES = ("us-west-2a", "us-west-2b")
GPUS = ("g6.12xlarge", "g6e.12xlarge", "g5.12xlarge")
BLOCK = config.CapacityBlock.model_validate(CAPACITY_BLOCK)
ODCR = config.Odcr(reservation="cr-0123456789abcdef0")


def plan_of(*instance_types: str, **changes: object) -> PoolPlan:
    return make_pool_plan(*instance_types, provisioner="self-managed", **changes)


def synthesize(plan: PoolPlan, *, autoscaler_tags: Mapping[str, str] | None = None) -> Template:
    stack = make_stack()
    SelfManagedGroup(
        stack,
        "Pool",
        plan=plan_node_group(
            plan, subnets=(), autoscaler_tags=autoscaler_tags or {}, repaired=False
        ),
        cluster=make_context(stack),
        subnet_ids=["subnet-b"],
        service_token=FUNCTION,
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def on_demand() -> Template:
    return synthesize(plan_of("p5.48xlarge"))


@pytest.fixture(scope="module")
def spot() -> Template:
    return synthesize(plan_of(*GPUS, purchase=config.Spot()))


@pytest.fixture(scope="module")
def block() -> Template:
    return synthesize(plan_of("p5.48xlarge", purchase=BLOCK))


def group_of(template: Template) -> dict[str, Any]:
    return the(template, GROUP)


def data_of(template: Template) -> dict[str, Any]:
    return the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def tags(template: Template, *, of_instances: bool) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for tag in group_of(template)["Tags"]
        if tag["PropagateAtLaunch"] is of_instances
    }


def test_the_first_node_comes_once_its_role_may_join_and_finds_the_cluster(
    on_demand: Template,
) -> None:
    """A node that is turned away is paid for all the same."""
    (role,) = on_demand.find_resources("AWS::IAM::Role")
    (entry,) = on_demand.find_resources("AWS::EKS::AccessEntry")
    (profile,) = on_demand.find_resources("AWS::IAM::InstanceProfile")
    (template,) = on_demand.find_resources("AWS::EC2::LaunchTemplate")
    (efa,) = on_demand.find_resources("AWS::EC2::SecurityGroup")
    (body,) = resources(on_demand, GROUP)
    data, group = data_of(on_demand), body["Properties"]

    assert the(on_demand, "AWS::EKS::AccessEntry") == {
        "ClusterName": "research",
        "PrincipalArn": {"Fn::GetAtt": [role, "Arn"]},
        "Type": "EC2_LINUX",
    }
    assert body["DependsOn"] == [entry]
    assert the(on_demand, "AWS::IAM::InstanceProfile")["Roles"] == [{"Ref": role}]
    assert data["IamInstanceProfile"] == {"Arn": {"Fn::GetAtt": [profile, "Arn"]}}
    assert CLUSTER.endpoint in data["UserData"]["Fn::Base64"]
    both = [CLUSTER_GROUP, {"Fn::GetAtt": [efa, "GroupId"]}]
    assert all(nic["Groups"] == both for nic in data["NetworkInterfaces"])
    assert group["VPCZoneIdentifier"] == ["subnet-b"]
    assert group["LaunchTemplate"] == {
        "LaunchTemplateId": {"Ref": template},
        "Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
    }
    # Nothing keeps it from growing smaller, and a deploy replaces no node that runs.
    assert not {"AvailabilityZones", "NewInstancesProtectedFromScaleIn"} & group.keys()
    assert "UpdatePolicy" not in body


@pytest.mark.parametrize(
    ("changes", "size"),
    [({"nodes": config.Nodes(static=3)}, "3"), ({"purchase": ODCR}, "16")],
    ids=["fixed", "paid for whether it runs or not"],
)
def test_the_file_states_a_size_of_its_own(changes: Any, size: str) -> None:
    assert group_of(synthesize(plan_of(**changes)))["DesiredCapacity"] == size


@pytest.mark.parametrize(
    ("fixture", "rebalance", "seconds"),
    [("on_demand", False, 3600), ("spot", True, 120), ("block", False, 600)],
)
def test_a_scaler_or_the_calendar_sets_the_size_and_every_removal_drains_the_node_first(
    request: pytest.FixtureRequest, fixture: str, rebalance: bool, seconds: int
) -> None:
    template: Template = request.getfixturevalue(fixture)
    group = group_of(template)

    assert "DesiredCapacity" not in group
    assert (group["MinSize"], group["MaxSize"]) == ("0", "16")
    # Spot at risk is replaced before it goes.
    assert group["CapacityRebalance"] is rebalance
    (hook,) = group["LifecycleHookSpecificationList"]
    assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    assert (hook["HeartbeatTimeout"], hook["DefaultResult"]) == (seconds, "CONTINUE")
    # The termination handler knows it.
    found = tags(template, of_instances=True)
    assert found["ultrascale.dev/termination-handler/research"] == "research"


@pytest.mark.parametrize("sized_by", ["cluster-autoscaler", "file"])
def test_zones_are_not_balanced_at_the_cost_of_jobs(on_demand: Template, sized_by: Any) -> None:
    plan = replace(plan_of("g6.12xlarge"), zones=TWO_ZONES, sized_by=sized_by)

    template = synthesize(plan)

    (group,) = template.find_resources(GROUP)
    asked = {"ServiceToken": FUNCTION, "AutoScalingGroupName": {"Ref": group}}
    template.has_resource_properties(ZONES, asked)
    # In a single zone there is nothing to balance.
    on_demand.resource_count_is(ZONES, 0)


class TestPurchase:
    """Purchase requests to EC2: the group's own, or the launch template's."""

    def test_spot_is_asked_for_of_every_type_and_of_nothing_else(self, spot: Template) -> None:
        policy = the(spot, GROUP)["MixedInstancesPolicy"]

        assert policy["InstancesDistribution"] == {
            "OnDemandAllocationStrategy": "prioritized",
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0,
            "SpotAllocationStrategy": "price-capacity-optimized",
        }
        overrides = policy["LaunchTemplate"]["Overrides"]
        assert [each["InstanceType"] for each in overrides] == [*GPUS]
        spot.has_resource_properties(GROUP, {"LaunchTemplate": Match.absent()})

    def test_it_is_asked_for_of_a_single_type_in_the_same_way(self) -> None:
        template = synthesize(plan_of("g6.12xlarge", purchase=config.Spot()))

        (override,) = group_of(template)["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
        assert override == {"InstanceType": "g6.12xlarge"}

    @pytest.mark.parametrize("purchase", [config.OnDemand(), ODCR])
    def test_of_several_types_the_first_is_preferred(self, purchase: config.Purchase) -> None:
        policy = group_of(synthesize(plan_of(*GPUS, purchase=purchase)))["MixedInstancesPolicy"]

        distribution = policy["InstancesDistribution"]
        assert distribution["OnDemandAllocationStrategy"] == "prioritized"
        assert distribution["OnDemandPercentageAboveBaseCapacity"] == 100

    def test_a_block_is_launched_into(self, block: Template) -> None:
        assert data_of(block)["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        assert "MixedInstancesPolicy" not in group_of(block)


class TestTags:
    """Tags by which other programs find the group and its instances."""

    def test_instances_belong_to_the_cluster_and_the_files_own_name_stays(
        self, on_demand: Template
    ) -> None:
        named = synthesize(plan_of(tags={"Name": "bert"}))

        assert tags(on_demand, of_instances=True) == {
            "Name": "research-train",
            "kubernetes.io/cluster/research": "owned",
            "ultrascale.dev/termination-handler/research": "research",
        }
        assert tags(named, of_instances=True)["Name"] == "bert"

    def test_the_autoscaler_reads_its_own_from_the_group_alone(self) -> None:
        template = synthesize(plan_of("g6.12xlarge"), autoscaler_tags={"a": "1"})

        assert tags(template, of_instances=False) == {"a": "1", "ultrascale.dev/pool": "train"}
        assert "a" not in tags(template, of_instances=True)
