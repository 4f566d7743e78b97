"""The role of nodes that node classes know by its name."""

from aws_cdk.assertions import Match, Template

from tests.support.construct_stacks import make_stack, managed_policies, the
from ultrascale_constructs.nodes import NODE_POLICIES, NodeRole

AUTO_MODE_POLICIES = {
    "AmazonEKSWorkerNodeMinimalPolicy": "what EKS documents for nodes of Auto Mode",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
}


def karpenter_role() -> Template:
    stack = make_stack()
    NodeRole(
        stack,
        "NodeRole",
        cluster_name="research",
        role_name="research-node-us-west-2",
        managed_policies=NODE_POLICIES,
        access_entry_type="EC2_LINUX",
    )
    return Template.from_stack(stack)


def auto_mode_role() -> Template:
    stack = make_stack()
    NodeRole(
        stack,
        "NodeRole",
        cluster_name="research",
        role_name="research-node-us-west-2",
        managed_policies=AUTO_MODE_POLICIES,
        access_entry_type="EC2",
        access_policies=["AmazonEKSAutoNodePolicy"],
    )
    return Template.from_stack(stack)


def test_instances_take_it_under_the_name_that_node_classes_know() -> None:
    role = the(karpenter_role(), "AWS::IAM::Role")

    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "research-node-us-west-2"
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert statement["Action"] == "sts:AssumeRole"


def test_it_has_the_policies_that_it_was_given() -> None:
    assert managed_policies(the(karpenter_role(), "AWS::IAM::Role")) == set(NODE_POLICIES)
    assert managed_policies(the(auto_mode_role(), "AWS::IAM::Role")) == set(AUTO_MODE_POLICIES)


def test_an_entry_for_linux_nodes_takes_no_access_policy() -> None:
    karpenter_role().has_resource_properties(
        "AWS::EKS::AccessEntry",
        {"ClusterName": "research", "Type": "EC2_LINUX", "AccessPolicies": Match.absent()},
    )


def test_an_entry_for_auto_mode_nodes_takes_theirs() -> None:
    auto_mode_role().has_resource_properties(
        "AWS::EKS::AccessEntry",
        {
            "Type": "EC2",
            "AccessPolicies": [
                {
                    "PolicyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy",
                    "AccessScope": {"Type": "cluster"},
                }
            ],
        },
    )
