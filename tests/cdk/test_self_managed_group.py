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


def tags(template: Template, *, of_instances: bool) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for tag in the(template, GROUP)["Tags"]
        if tag["PropagateAtLaunch"] is of_instances
    }


class TestFirstNode:
    """A node that is turned away is paid for all the same."""

    def test_its_role_may_join(self, on_demand: Template) -> None:
        (role,) = on_demand.find_resources("AWS::IAM::Role")

        on_demand.has_resource_properties(
            "AWS::EKS::AccessEntry",
            {
                "ClusterName": "research",
                "PrincipalArn": {"Fn::GetAtt": [role, "Arn"]},
                "Type": "EC2_LINUX",
            },
        )

    def test_it_comes_once_its_role_may(self, on_demand: Template) -> None:
        (entry,) = on_demand.find_resources("AWS::EKS::AccessEntry")

        on_demand.has_resource(GROUP, {"DependsOn": [entry]})

    def test_it_has_the_role_of_the_entry(self, on_demand: Template) -> None:
        (role,) = on_demand.find_resources("AWS::IAM::Role")
        (profile,) = on_demand.find_resources("AWS::IAM::InstanceProfile")

        on_demand.has_resource_properties("AWS::IAM::InstanceProfile", {"Roles": [{"Ref": role}]})
        data = the(on_demand, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
        assert data["IamInstanceProfile"] == {"Arn": {"Fn::GetAtt": [profile, "Arn"]}}

    def test_it_lies_in_the_subnets_of_the_pool_alone(self, on_demand: Template) -> None:
        on_demand.has_resource_properties(
            GROUP, {"VPCZoneIdentifier": ["subnet-b"], "AvailabilityZones": Match.absent()}
        )

    def test_it_is_launched_from_the_newest_template(self, on_demand: Template) -> None:
        (template,) = on_demand.find_resources("AWS::EC2::LaunchTemplate")

        assert the(on_demand, GROUP)["LaunchTemplate"] == {
            "LaunchTemplateId": {"Ref": template},
            "Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
        }

    def test_it_finds_the_cluster(self, on_demand: Template) -> None:
        data = the(on_demand, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]

        assert CLUSTER.endpoint in data["UserData"]["Fn::Base64"]

    def test_every_interface_is_in_both_groups(self, on_demand: Template) -> None:
        (efa,) = on_demand.find_resources("AWS::EC2::SecurityGroup")
        data = the(on_demand, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]

        both = [CLUSTER_GROUP, {"Fn::GetAtt": [efa, "GroupId"]}]
        assert all(nic["Groups"] == both for nic in data["NetworkInterfaces"])


class TestSize:
    """A deploy states a size only where nothing else sets it."""

    @pytest.mark.parametrize(
        ("plan", "size"),
        [(plan_of(nodes=config.Nodes(static=3)), "3"), (plan_of(purchase=ODCR), "16")],
        ids=["fixed", "paid for whether it runs or not"],
    )
    def test_the_file_states_its_own(self, plan: PoolPlan, size: str) -> None:
        synthesize(plan).has_resource_properties(GROUP, {"DesiredCapacity": size})

    @pytest.mark.parametrize("fixture", ["on_demand", "spot", "block"])
    def test_that_of_a_scaler_or_of_the_calendar_is_left_alone(
        self, request: pytest.FixtureRequest, fixture: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(
            GROUP, {"DesiredCapacity": Match.absent(), "MinSize": "0", "MaxSize": "16"}
        )

    def test_a_deploy_replaces_no_node_that_runs(self, on_demand: Template) -> None:
        (group,) = resources(on_demand, GROUP)

        assert "UpdatePolicy" not in group

    def test_nothing_keeps_it_from_growing_smaller(self, on_demand: Template) -> None:
        on_demand.has_resource_properties(
            GROUP, {"NewInstancesProtectedFromScaleIn": Match.absent()}
        )


class TestZones:
    """Zones are not balanced at the cost of jobs."""

    @pytest.mark.parametrize("sized_by", ["cluster-autoscaler", "file"])
    def test_nodes_stay_where_they_are(self, sized_by: Any) -> None:
        plan = replace(plan_of("g6.12xlarge"), zones=TWO_ZONES, sized_by=sized_by)

        template = synthesize(plan)

        (group,) = template.find_resources(GROUP)
        template.has_resource_properties(
            ZONES, {"ServiceToken": FUNCTION, "AutoScalingGroupName": {"Ref": group}}
        )

    def test_in_a_single_zone_there_is_nothing_to_balance(self, on_demand: Template) -> None:
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

        (override,) = the(template, GROUP)["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
        assert override == {"InstanceType": "g6.12xlarge"}

    @pytest.mark.parametrize("purchase", [config.OnDemand(), ODCR])
    def test_of_several_types_the_first_is_preferred(self, purchase: config.Purchase) -> None:
        policy = the(synthesize(plan_of(*GPUS, purchase=purchase)), GROUP)["MixedInstancesPolicy"]

        distribution = policy["InstancesDistribution"]
        assert distribution["OnDemandAllocationStrategy"] == "prioritized"
        assert distribution["OnDemandPercentageAboveBaseCapacity"] == 100

    def test_a_block_is_launched_into(self, block: Template) -> None:
        data = the(block, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]

        assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        block.has_resource_properties(GROUP, {"MixedInstancesPolicy": Match.absent()})

    @pytest.mark.parametrize(
        ("fixture", "rebalance"), [("on_demand", False), ("spot", True), ("block", False)]
    )
    def test_spot_at_risk_is_replaced_before_it_goes(
        self, request: pytest.FixtureRequest, fixture: str, rebalance: bool
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(GROUP, {"CapacityRebalance": rebalance})


class TestLastNode:
    """Every removal drains the node first: by EC2, by a scaler, or by a smaller size."""

    @pytest.mark.parametrize(
        ("fixture", "seconds"), [("spot", 120), ("block", 600), ("on_demand", 3600)]
    )
    def test_it_waits_to_be_drained(
        self, request: pytest.FixtureRequest, fixture: str, seconds: int
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        (hook,) = the(template, GROUP)["LifecycleHookSpecificationList"]
        assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
        assert hook["HeartbeatTimeout"] == seconds
        assert hook["DefaultResult"] == "CONTINUE"

    @pytest.mark.parametrize("fixture", ["spot", "block", "on_demand"])
    def test_the_termination_handler_knows_it(
        self, request: pytest.FixtureRequest, fixture: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        found = tags(template, of_instances=True)
        assert found["ultrascale.dev/termination-handler/research"] == "research"


class TestTags:
    """Tags by which other programs find the group and its instances."""

    def test_instances_belong_to_the_cluster(self, on_demand: Template) -> None:
        assert tags(on_demand, of_instances=True) == {
            "Name": "research-train",
            "kubernetes.io/cluster/research": "owned",
            "ultrascale.dev/termination-handler/research": "research",
        }

    def test_the_files_own_name_stays(self) -> None:
        template = synthesize(plan_of(tags={"Name": "bert"}))

        assert tags(template, of_instances=True)["Name"] == "bert"

    def test_the_autoscaler_reads_its_own_from_the_group_alone(self) -> None:
        template = synthesize(plan_of("g6.12xlarge"), autoscaler_tags={"a": "1"})

        assert tags(template, of_instances=False) == {"a": "1", "ultrascale.dev/pool": "train"}
        assert "a" not in tags(template, of_instances=True)
