"""The role of nodes that node classes know by its name."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, managed_policies, the
from ultrascale_constructs.nodes import NODE_POLICIES, NodeRole

AUTO_MODE_POLICIES = {
    "AmazonEKSWorkerNodeMinimalPolicy": "what EKS documents for nodes of Auto Mode",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
}


@pytest.mark.parametrize(
    ("kind", "policies", "access"),
    [("EC2_LINUX", NODE_POLICIES, []), ("EC2", AUTO_MODE_POLICIES, ["AmazonEKSAutoNodePolicy"])],
)
def test_instances_join_by_a_role_of_the_name_that_node_classes_know(
    kind: Any, policies: Mapping[str, str], access: list[str]
) -> None:
    stack = make_stack()
    NodeRole(
        stack,
        "NodeRole",
        cluster_name="research",
        role_name="research-node-us-west-2",
        managed_policies=policies,
        access_entry_type=kind,
        access_policies=access,
    )
    template = Template.from_stack(stack)
    role = the(template, "AWS::IAM::Role")
    entry = the(template, "AWS::EKS::AccessEntry")

    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "research-node-us-west-2"
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert statement["Action"] == "sts:AssumeRole"
    assert managed_policies(role) == set(policies)
    assert (entry["ClusterName"], entry["Type"]) == ("research", kind)
    # An entry for Linux nodes takes no access policy.
    arn = "arn:aws:eks::aws:cluster-access-policy/"
    scoped = [{"PolicyArn": f"{arn}{p}", "AccessScope": {"Type": "cluster"}} for p in access]
    assert entry.get("AccessPolicies", []) == scoped
