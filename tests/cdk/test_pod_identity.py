"""Roles of pods: one account's, of one cluster, with what it needs."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import flat, make_stack, the
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole


@pytest.fixture(scope="module")
def template() -> Template:
    stack = make_stack()
    PodIdentityRole(
        stack,
        "Identity",
        cluster_name="research",
        service_account="reader",
        namespace="tools",
        permissions=[
            Permission(actions=["s3:GetObject"], resources=["arn:aws:s3:::datasets/a"]),
            Permission(
                actions=["ec2:DescribeInstances"],
                resources=["*"],
                conditions={"StringEquals": {"aws:RequestedRegion": "us-west-2"}},
                why_wildcards="these can be described all or none",
            ),
        ],
    )
    return Template.from_stack(stack)


def test_pods_of_one_account_of_one_cluster_alone_have_what_it_is_given(template: Template) -> None:
    (id,) = template.find_resources("AWS::IAM::Role")
    role: dict[str, Any] = the(template, "AWS::IAM::Role")

    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert flat(trust) == {
        "Effect": "Allow",
        "Action.0": "sts:AssumeRole",
        "Action.1": "sts:TagSession",
        "Principal.Service": "pods.eks.amazonaws.com",
        "Condition.StringEquals.aws:RequestTag/eks-cluster-name": "research",
        "Condition.StringEquals.aws:RequestTag/kubernetes-namespace": "tools",
        "Condition.StringEquals.aws:RequestTag/kubernetes-service-account": "reader",
    }
    assert the(template, "AWS::EKS::PodIdentityAssociation") == {
        "ClusterName": "research",
        "Namespace": "tools",
        "ServiceAccount": "reader",
        "RoleArn": {"Fn::GetAtt": [id, "Arn"]},
    }
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    read, describe = policy["PolicyDocument"]["Statement"]
    assert (read["Action"], read["Resource"]) == ("s3:GetObject", "arn:aws:s3:::datasets/a")
    assert (describe["Action"], describe["Resource"]) == ("ec2:DescribeInstances", "*")
    assert describe["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-west-2"}}
