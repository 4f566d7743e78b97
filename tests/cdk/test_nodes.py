"""Resources around the nodes of a group: role, security groups and placement."""

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from constructs import Construct

from tests.support.construct_stacks import (
    make_context,
    make_pool_plan,
    make_stack,
    make_vpc,
    managed_policies,
    resources,
    the,
)
from ultrascale import config
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.nodes import (
    EfaSecurityGroup,
    node_role,
    placement_group_name,
    reservation_group_arn,
    security_group_ids,
)

CLUSTER_GROUP = "sg-0123456789abcdef0"
RESOURCE_GROUP = "arn:aws:resource-groups:us-west-2:111122223333:group/inference"


def define(what: Callable[[cdk.Stack], Any]) -> tuple[Any, Template]:
    """Return what ``what`` returns, resolved, and the template that it leaves."""
    stack = make_stack()
    result = stack.resolve(what(stack))
    return result, Template.from_stack(stack)


@pytest.fixture(scope="module")
def role() -> dict[str, Any]:
    _, template = define(lambda stack: node_role(stack, carries_cni_rights=False).role_arn)
    template.resource_count_is("AWS::IAM::Policy", 0)
    return the(template, "AWS::IAM::Role")


@pytest.fixture(scope="module")
def efa() -> Template:
    tags = {"karpenter.sh/discovery": "research"}
    _, template = define(
        lambda stack: (
            EfaSecurityGroup(
                stack, "Efa", vpc=make_vpc(stack), pool="train", tags=tags
            ).security_group_id
        )
    )
    return template


class TestRole:
    """Permissions that every pod could use if it reached the node's credentials."""

    def test_nodes_may_join_pull_and_be_reached_and_nothing_else(
        self, role: dict[str, Any]
    ) -> None:
        assert managed_policies(role) == {
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
            "AmazonSSMManagedInstanceCore",
        }

    def test_nodes_cannot_change_the_network(self, role: dict[str, Any]) -> None:
        assert "AmazonEKS_CNI_Policy" not in str(role)

    def test_instances_alone_may_take_it(self, role: dict[str, Any]) -> None:
        statement = role["AssumeRolePolicyDocument"]["Statement"]

        assert [each["Principal"] for each in statement] == [{"Service": "ec2.amazonaws.com"}]


class TestSecurityGroups:
    """Nodes without the cluster's group are cut off; EFA without its own falls back to TCP."""

    @staticmethod
    def define(plan: PoolPlan) -> tuple[list[Any], Template]:
        return define(
            lambda stack: security_group_ids(stack, plan=plan, cluster=make_context(stack))
        )

    def test_nodes_with_efa_are_in_the_clusters_and_in_their_own(self) -> None:
        groups, template = self.define(make_pool_plan("p5.48xlarge"))

        (own,) = template.find_resources("AWS::EC2::SecurityGroup")
        assert groups == [CLUSTER_GROUP, {"Fn::GetAtt": [own, "GroupId"]}]

    def test_nodes_without_are_in_the_clusters_alone(self) -> None:
        groups, template = self.define(make_pool_plan("g6.24xlarge", "g6.48xlarge"))

        assert groups == [CLUSTER_GROUP]
        template.resource_count_is("AWS::EC2::SecurityGroup", 0)


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
        self, efa: Template, kind: str, other_end: str
    ) -> None:
        (group,) = efa.find_resources("AWS::EC2::SecurityGroup")
        reference = {"Fn::GetAtt": [group, "GroupId"]}

        efa.has_resource_properties(
            kind, {"GroupId": reference, other_end: reference, "IpProtocol": "-1"}
        )

    def test_it_is_open_to_nothing_else(self, efa: Template) -> None:
        assert len(resources(efa, "AWS::EC2::SecurityGroupIngress")) == 1
        assert len(resources(efa, "AWS::EC2::SecurityGroupEgress")) == 1
        group = the(efa, "AWS::EC2::SecurityGroup")
        assert not {"SecurityGroupIngress", "SecurityGroupEgress"} & group.keys()

    def test_it_bears_its_tags(self, efa: Template) -> None:
        tag = {"Key": "karpenter.sh/discovery", "Value": "research"}

        assert the(efa, "AWS::EC2::SecurityGroup")["Tags"] == [tag]


class TestPlacementGroup:
    """Nodes that are far apart are slow; nodes that must be close are hard to find."""

    def test_nodes_share_one_where_the_file_asks_for_it(self) -> None:
        plan = make_pool_plan("trn1.32xlarge", placement_group=True)

        name, template = define(lambda stack: placement_group_name(stack, plan))

        (group,) = template.find_resources("AWS::EC2::PlacementGroup")
        assert name == {"Ref": group}
        template.has_resource_properties("AWS::EC2::PlacementGroup", {"Strategy": "cluster"})

    def test_there_is_none_otherwise(self) -> None:
        name, template = define(lambda stack: placement_group_name(stack, make_pool_plan()))

        assert name is None
        template.resource_count_is("AWS::EC2::PlacementGroup", 0)


class TestReservationGroup:
    """Only instances that target a group of reservations run when it is full."""

    @staticmethod
    def define(purchase: config.Purchase) -> tuple[Any, Template]:
        plan = make_pool_plan(purchase=purchase)
        return define(
            lambda stack: reservation_group_arn(
                Construct(stack, "NodeGroup"), plan=plan, cluster_name="research"
            )
        )

    def test_a_reservation_that_may_spill_gets_one_to_itself(self) -> None:
        arn, template = self.define(
            config.Odcr(reservation="cr-0123456789abcdef0", spill="on-demand")
        )

        (group,) = template.find_resources("AWS::ResourceGroups::Group")
        assert arn == {"Fn::GetAtt": [group, "Arn"]}
        found = the(template, "AWS::ResourceGroups::Group")
        assert found["Name"] == "research-train-reservation"
        assert [each["Type"] for each in found["Configuration"]] == [
            "AWS::EC2::CapacityReservationPool",
            "AWS::ResourceGroups::Generic",
        ]
        (reservation,) = found["Resources"]
        assert reservation["Fn::Join"][1][-1].endswith(":capacity-reservation/cr-0123456789abcdef0")

    @pytest.mark.parametrize("spill", ["never", "on-demand"])
    def test_the_files_own_group_is_targeted_itself(self, spill: Any) -> None:
        arn, template = self.define(config.Odcr(resource_group=RESOURCE_GROUP, spill=spill))

        assert arn == RESOURCE_GROUP
        template.resource_count_is("AWS::ResourceGroups::Group", 0)

    @pytest.mark.parametrize(
        "purchase",
        [config.OnDemand(), config.Odcr(reservation="cr-0123456789abcdef0")],
        ids=["On-Demand", "never spills"],
    )
    def test_nothing_else_targets_a_group(self, purchase: config.Purchase) -> None:
        arn, template = self.define(purchase)

        assert arn is None
        template.resource_count_is("AWS::ResourceGroups::Group", 0)
