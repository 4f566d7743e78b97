"""The function behind the custom resources of node groups, and what it may do."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, the
from ultrascale_constructs.node_group_functions import NodeGroupFunctions


@pytest.fixture(scope="module")
def template() -> Template:
    stack = make_stack()
    NodeGroupFunctions(stack, "It", cluster_name="research", log_retention_days=90)
    return Template.from_stack(stack)


def statements(template: Template) -> dict[str, dict[str, Any]]:
    """Return the statements of the role, by each action that they allow."""
    found = the(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    return {
        action: statement
        for statement in found
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    }


def test_it_may_read_this_clusters_groups_and_change_what_is_behind_them(
    template: Template,
) -> None:
    assert set(statements(template)) == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "eks:ListNodegroups",
        "eks:DescribeNodegroup",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:DeleteTags",
        "autoscaling:SuspendProcesses",
        "cloudformation:DescribeStacks",
    }


def test_it_reads_tags_and_suspends_nothing_of_other_clusters(template: Template) -> None:
    allowed = statements(template)
    found = the(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    of_groups = [each for each in found if each["Action"] == "autoscaling:SuspendProcesses"]

    for action, resource in {
        "eks:ListNodegroups": ":cluster/research",
        "eks:DescribeNodegroup": ":nodegroup/research/*/*",
        "cloudformation:DescribeStacks": ":stack/research-*/*",
    }.items():
        arn = allowed[action]["Resource"]["Fn::Join"][1]
        assert str(arn[-1]).endswith(resource)
    own = {"autoscaling:ResourceTag/eks:cluster-name": "research"}
    keys = ["k8s.io/cluster-autoscaler/*", "ultrascale.dev/cluster-autoscaler"]
    for action in ("autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags"):
        assert allowed[action]["Condition"]["StringEquals"] == own
        tags = allowed[action]["Condition"]["ForAllValues:StringLike"]
        assert tags == {"aws:TagKeys": keys}
    assert [each["Condition"]["StringEquals"] for each in of_groups] == [
        own,
        {"autoscaling:ResourceTag/kubernetes.io/cluster/research": "owned"},
    ]


def test_it_gives_up_before_the_deploy_does_and_its_logs_end(template: Template) -> None:
    (group,) = template.find_resources("AWS::Logs::LogGroup")
    function = the(template, "AWS::Lambda::Function")

    assert "ManagedPolicyArns" not in the(template, "AWS::IAM::Role")
    assert function["Timeout"] < 600
    assert function["Handler"] == "lambdas.node_groups.handler.on_event"
    assert function["LoggingConfig"] == {"LogGroup": {"Ref": group}}
    template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 90})
