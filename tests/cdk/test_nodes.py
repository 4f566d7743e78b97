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
    the,
)
from ultrascale import config
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


def test_nodes_may_join_pull_and_be_reached_and_nothing_else() -> None:
    """Every pod could use these rights if it reached the node's credentials."""
    _, template = define(lambda stack: node_role(stack, carries_cni_rights=False).role_arn)
    role = the(template, "AWS::IAM::Role")

    # Nodes cannot change the network.
    assert managed_policies(role) == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonSSMManagedInstanceCore",
    }
    template.resource_count_is("AWS::IAM::Policy", 0)
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}


def test_nodes_are_in_the_clusters_group_and_those_with_efa_in_their_own_as_well() -> None:
    """Nodes without the cluster's are cut off; EFA without its own falls back to TCP."""
    (groups, template), (without, other) = (
        define(
            lambda stack, plan=plan: security_group_ids(
                stack, plan=plan, cluster=make_context(stack)
            )
        )
        for plan in (make_pool_plan("p5.48xlarge"), make_pool_plan("g6.24xlarge", "g6.48xlarge"))
    )

    (own,) = template.find_resources("AWS::EC2::SecurityGroup")
    assert groups == [CLUSTER_GROUP, {"Fn::GetAtt": [own, "GroupId"]}]
    assert without == [CLUSTER_GROUP]
    other.resource_count_is("AWS::EC2::SecurityGroup", 0)


def test_the_group_of_efa_is_open_to_itself_in_both_directions_and_to_nothing_else() -> None:
    """EFA falls silent without a group that lets its traffic in from and out to itself."""
    tags = {"karpenter.sh/discovery": "research"}

    def group_of(stack: cdk.Stack) -> str:
        vpc = make_vpc(stack)
        group = EfaSecurityGroup(stack, "Efa", vpc=vpc, pool="train", tags=tags)
        return group.security_group_id

    reference, efa = define(group_of)

    for kind, other in (("Ingress", "Source"), ("Egress", "Destination")):
        rule = the(efa, f"AWS::EC2::SecurityGroup{kind}")
        assert rule["GroupId"] == rule[f"{other}SecurityGroupId"] == reference
        assert rule["IpProtocol"] == "-1"
    group = the(efa, "AWS::EC2::SecurityGroup")
    assert not {"SecurityGroupIngress", "SecurityGroupEgress"} & group.keys()
    assert group["Tags"] == [{"Key": "karpenter.sh/discovery", "Value": "research"}]


@pytest.mark.parametrize("asked", [True, False])
def test_nodes_share_a_placement_group_only_where_the_file_asks_for_it(asked: bool) -> None:
    """Nodes that are far apart are slow; nodes that must be close are hard to find."""
    plan = make_pool_plan("trn1.32xlarge", placement_group=asked)

    name, template = define(lambda stack: placement_group_name(stack, plan))

    groups = template.find_resources("AWS::EC2::PlacementGroup")
    assert [{"Ref": group} for group in groups] == ([name] if asked else [])
    assert (name is not None) is asked
    assert all(body["Properties"] == {"Strategy": "cluster"} for body in groups.values())


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

    @pytest.mark.parametrize(
        ("purchase", "target"),
        [
            (config.Odcr(resource_group=RESOURCE_GROUP, spill="never"), RESOURCE_GROUP),
            (config.Odcr(resource_group=RESOURCE_GROUP, spill="on-demand"), RESOURCE_GROUP),
            (config.OnDemand(), None),
            (config.Odcr(reservation="cr-0123456789abcdef0"), None),
        ],
        ids=["the file's own", "the file's own, spilling", "On-Demand", "never spills"],
    )
    def test_only_the_files_own_group_is_targeted_otherwise(
        self, purchase: config.Purchase, target: str | None
    ) -> None:
        arn, template = self.define(purchase)

        assert arn == target
        template.resource_count_is("AWS::ResourceGroups::Group", 0)
