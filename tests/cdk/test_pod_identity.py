"""Roles of pods: one account's, of one cluster, with what it needs."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, the
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


def test_pods_of_one_account_of_one_cluster_alone_may_take_it(template: Template) -> None:
    (statement,) = the(template, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]

    assert statement == {
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Condition": {
            "StringEquals": {
                "aws:RequestTag/eks-cluster-name": "research",
                "aws:RequestTag/kubernetes-namespace": "tools",
                "aws:RequestTag/kubernetes-service-account": "reader",
            }
        },
    }


def test_the_account_is_given_the_role(template: Template) -> None:
    (role,) = template.find_resources("AWS::IAM::Role")

    assert the(template, "AWS::EKS::PodIdentityAssociation") == {
        "ClusterName": "research",
        "Namespace": "tools",
        "ServiceAccount": "reader",
        "RoleArn": {"Fn::GetAtt": [role, "Arn"]},
    }


def test_it_may_do_what_it_is_given_and_no_more(template: Template) -> None:
    role: dict[str, Any] = the(template, "AWS::IAM::Role")

    assert "ManagedPolicyArns" not in role
    assert [policy["PolicyDocument"]["Statement"] for policy in role["Policies"]] == [
        [
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::datasets/a"},
            {
                "Effect": "Allow",
                "Action": "ec2:DescribeInstances",
                "Resource": "*",
                "Condition": {"StringEquals": {"aws:RequestedRegion": "us-west-2"}},
            },
        ]
    ]
