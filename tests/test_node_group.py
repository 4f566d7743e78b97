"""The managed node group of a pool, and what its nodes need around them."""

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.construct_stacks import (
    make_pool_plan,
    make_stack,
    make_vpc,
    managed_policies,
    resources,
    the,
)
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.plan.model import PoolPlan, Taint
from ultrascale_constructs.node_group import NodeGroup

NODE_GROUP = "AWS::EKS::Nodegroup"
CLUSTER_GROUP = "sg-0123456789abcdef0"


def synthesize(plan: PoolPlan) -> Template:
    stack = make_stack()
    NodeGroup(
        stack,
        "Pool",
        plan=plan,
        cluster_name="research",
        cluster_security_group_id=CLUSTER_GROUP,
        vpc=make_vpc(stack),
        subnet_ids=["subnet-b"],
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge", nodes=config.Nodes(min=2, max=16)))


@pytest.fixture(scope="module")
def system() -> Template:
    return synthesize(
        make_pool_plan("m7g.2xlarge", name="system", role="system", nodes=config.Nodes(static=3))
    )


@pytest.fixture(scope="module")
def several() -> Template:
    return synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"))


class TestGroup:
    """What EKS is asked for."""

    def test_nodes_lie_in_the_subnets_of_the_pool_alone(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"ClusterName": "research", "Subnets": ["subnet-b"]})

    @pytest.mark.parametrize(
        ("fixture", "sizes"),
        [
            ("p5", {"MinSize": 2, "DesiredSize": 2, "MaxSize": 16}),
            ("system", {"MinSize": 3, "DesiredSize": 3, "MaxSize": 3}),
            ("several", {"MinSize": 0, "DesiredSize": 0, "MaxSize": 16}),
        ],
    )
    def test_it_starts_with_as_few_nodes_as_the_file_allows(
        self, request: pytest.FixtureRequest, fixture: str, sizes: dict[str, int]
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(NODE_GROUP, {"ScalingConfig": sizes})

    def test_a_replacement_can_stand_beside_it(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"NodegroupName": Match.absent()})

    @pytest.mark.parametrize(
        ("fixture", "ami_type"),
        [("p5", "AL2023_x86_64_NVIDIA"), ("system", "AL2023_ARM_64_STANDARD")],
    )
    def test_the_image_is_pinned_and_has_the_drivers(
        self, request: pytest.FixtureRequest, fixture: str, ami_type: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(
            NODE_GROUP,
            {"AmiType": ami_type, "ReleaseVersion": versions.ami_release("1.35").version},
        )

    def test_several_types_stand_in_the_group_in_their_order(self, several: Template) -> None:
        several.has_resource_properties(
            NODE_GROUP, {"InstanceTypes": ["g6.24xlarge", "g6.48xlarge"]}
        )

    def test_one_type_stands_in_the_template_alone(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"InstanceTypes": Match.absent()})

    def test_a_new_template_version_reaches_the_nodes(self, p5: Template) -> None:
        reference = the(p5, NODE_GROUP)["LaunchTemplate"]
        (template,) = p5.find_resources("AWS::EC2::LaunchTemplate")

        assert reference == {
            "Id": {"Ref": template},
            "Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
        }

    @pytest.mark.parametrize(("fixture", "strategy"), [("p5", "MINIMAL"), ("system", "DEFAULT")])
    def test_an_update_asks_for_spare_capacity_only_where_there_is_some(
        self, request: pytest.FixtureRequest, fixture: str, strategy: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(
            NODE_GROUP, {"UpdateConfig": {"MaxUnavailable": 1, "UpdateStrategy": strategy}}
        )

    def test_an_update_takes_no_more_nodes_away_than_planned(self) -> None:
        template = synthesize(replace(make_pool_plan(), max_unavailable=4))

        template.has_resource_properties(NODE_GROUP, {"UpdateConfig": {"MaxUnavailable": 4}})

    def test_broken_nodes_are_replaced(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"NodeRepairConfig": {"Enabled": True}})

    def test_it_is_bought_on_demand_and_not_as_spot_by_mistake(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"CapacityType": "ON_DEMAND"})


class TestLabelsAndTaints:
    """EKS spells effects its own way; a wrong word fails the deploy."""

    def test_labels_are_those_of_the_plan(self, p5: Template) -> None:
        assert the(p5, NODE_GROUP)["Labels"] == dict(make_pool_plan().labels)

    def test_accelerated_nodes_keep_other_pods_off(self, p5: Template) -> None:
        taint = {"Key": "nvidia.com/gpu", "Value": "true", "Effect": "NO_SCHEDULE"}

        p5.has_resource_properties(NODE_GROUP, {"Taints": [taint]})

    def test_system_nodes_take_every_pod(self, system: Template) -> None:
        system.has_resource_properties(NODE_GROUP, {"Taints": Match.absent()})

    @pytest.mark.parametrize(
        ("effect", "spelled"),
        [
            ("NoSchedule", "NO_SCHEDULE"),
            ("NoExecute", "NO_EXECUTE"),
            ("PreferNoSchedule", "PREFER_NO_SCHEDULE"),
        ],
    )
    def test_every_effect_is_spelled_as_eks_does(self, effect: Any, spelled: str) -> None:
        taint = Taint(key="dedicated", value="x", effect=effect)

        template = synthesize(replace(make_pool_plan("m7g.2xlarge"), taints=(taint,)))

        assert the(template, NODE_GROUP)["Taints"][0]["Effect"] == spelled


class TestEfaSecurityGroup:
    """EFA falls silent without a group that lets its traffic in from and out to itself."""

    @pytest.mark.parametrize(
        ("kind", "other_end"),
        [
            ("AWS::EC2::SecurityGroupIngress", "SourceSecurityGroupId"),
            ("AWS::EC2::SecurityGroupEgress", "DestinationSecurityGroupId"),
        ],
    )
    def test_it_is_open_to_itself_in_both_directions(
        self, p5: Template, kind: str, other_end: str
    ) -> None:
        (group,) = p5.find_resources("AWS::EC2::SecurityGroup")
        reference = {"Fn::GetAtt": [group, "GroupId"]}

        p5.has_resource_properties(
            kind, {"GroupId": reference, other_end: reference, "IpProtocol": "-1"}
        )

    def test_it_is_open_to_nothing_else(self, p5: Template) -> None:
        assert len(resources(p5, "AWS::EC2::SecurityGroupIngress")) == 1
        assert "SecurityGroupIngress" not in the(p5, "AWS::EC2::SecurityGroup")

    def test_every_interface_is_in_it_and_in_the_clusters(self, p5: Template) -> None:
        (group,) = p5.find_resources("AWS::EC2::SecurityGroup")
        interfaces = the(p5, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["NetworkInterfaces"]

        both = [CLUSTER_GROUP, {"Fn::GetAtt": [group, "GroupId"]}]
        assert all(nic["Groups"] == both for nic in interfaces)

    def test_pools_without_efa_have_none(self, several: Template) -> None:
        several.resource_count_is("AWS::EC2::SecurityGroup", 0)


class TestPlacementGroup:
    """Nodes that are far apart are slow; nodes that must be close are hard to find."""

    def test_nodes_share_one_where_the_file_asks_for_it(self) -> None:
        template = synthesize(make_pool_plan("trn1.32xlarge", placement_group=True))

        template.has_resource_properties("AWS::EC2::PlacementGroup", {"Strategy": "cluster"})
        (group,) = template.find_resources("AWS::EC2::PlacementGroup")
        placement = the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["Placement"]
        assert placement == {"GroupName": {"Ref": group}}

    def test_there_is_none_otherwise(self, p5: Template) -> None:
        p5.resource_count_is("AWS::EC2::PlacementGroup", 0)


class TestRole:
    """What every pod that reaches a node's credentials could do."""

    def test_nodes_may_join_pull_and_be_reached_and_nothing_else(self, p5: Template) -> None:
        role = the(p5, "AWS::IAM::Role")

        assert managed_policies(role) == {
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
            "AmazonSSMManagedInstanceCore",
        }
        p5.resource_count_is("AWS::IAM::Policy", 0)

    def test_nodes_cannot_change_the_network(self, p5: Template) -> None:
        assert "AmazonEKS_CNI_Policy" not in str(p5.to_json())

    def test_instances_alone_may_take_it(self, p5: Template) -> None:
        statement = the(p5, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]

        assert [each["Principal"] for each in statement] == [{"Service": "ec2.amazonaws.com"}]
