"""EKS add-ons: pinned, configured, and with no more rights than their pods need."""

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_stack, managed_policies, the
from ultrascale.plan.model import AddonPlan
from ultrascale_constructs.addon import Addon

ADDON = "AWS::EKS::Addon"
ASSOCIATION = "AWS::EKS::PodIdentityAssociation"
CNI = AddonPlan(
    name="vpc-cni",
    version="v1.23.1-eksbuild.1",
    configuration={"env": {"WARM_PREFIX_TARGET": "1", "ENABLE_PREFIX_DELEGATION": "true"}},
    service_account="aws-node",
    managed_policy="AmazonEKS_CNI_Policy",
)


def synthesize(plan: AddonPlan) -> Template:
    stack = make_stack()
    Addon(stack, "Addon", plan=plan, cluster_name="research")
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def cni() -> Template:
    return synthesize(CNI)


@pytest.fixture(scope="module")
def plain() -> Template:
    return synthesize(replace(CNI, configuration={}, service_account=None, managed_policy=None))


def test_it_is_pinned_and_configured_and_its_pods_have_a_role(cni: Template) -> None:
    (role,) = cni.find_resources("AWS::IAM::Role")

    assert the(cni, ADDON) == {
        "AddonName": "vpc-cni",
        "AddonVersion": "v1.23.1-eksbuild.1",
        "ClusterName": "research",
        # In an order that never changes: each synthesis would be an update.
        "ConfigurationValues": (
            '{"env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}}'
        ),
        "PodIdentityAssociations": [
            {"RoleArn": {"Fn::GetAtt": [role, "Arn"]}, "ServiceAccount": "aws-node"}
        ],
        # A change by hand does not fail the deploy.
        "ResolveConflicts": "OVERWRITE",
    }


def test_an_add_on_has_the_settings_and_the_policy_of_its_plan_alone(
    cni: Template, plain: Template
) -> None:
    bare = synthesize(replace(CNI, managed_policy=None))

    assert managed_policies(the(cni, "AWS::IAM::Role")) == {"AmazonEKS_CNI_Policy"}
    cni.resource_count_is("AWS::IAM::Policy", 0)
    # A role without a policy is still associated.
    assert managed_policies(the(bare, "AWS::IAM::Role")) == set()
    assert len(the(bare, ADDON)["PodIdentityAssociations"]) == 1
    plain.resource_count_is("AWS::IAM::Role", 0)
    assert not {"ConfigurationValues", "PodIdentityAssociations"} & the(plain, ADDON).keys()


class TestPodIdentity:
    """The pods' own role, so that the nodes need none of their rights."""

    def test_its_own_pods_of_its_own_cluster_alone_may_take_it(self, cni: Template) -> None:
        (statement,) = the(cni, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]

        assert statement == {
            "Effect": "Allow",
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Condition": {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-name": "research",
                    "aws:RequestTag/kubernetes-service-account": "aws-node",
                }
            },
        }

    def test_where_eks_takes_no_association_with_the_add_on_it_is_there_before(self) -> None:
        template = synthesize(replace(CNI, association_namespace="aws-hyperpod"))
        (association,) = template.find_resources(ASSOCIATION)
        (addon,) = template.find_resources(ADDON).values()

        assert addon["DependsOn"] == [association]
        assert "PodIdentityAssociations" not in addon["Properties"]
        found = the(template, ASSOCIATION)
        assert (found["Namespace"], found["ServiceAccount"]) == ("aws-hyperpod", "aws-node")
        (statement,) = the(template, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]
        tags = statement["Condition"]["StringEquals"]
        assert tags["aws:RequestTag/kubernetes-namespace"] == "aws-hyperpod"
