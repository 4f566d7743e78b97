"""Topics that alarms and events notify."""

import json
from collections.abc import Mapping

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultrascale.plan.model import EventPlan
from ultrascale_constructs.cdk_types import service

# Actions on a topic's key that a service needs to publish to the topic.
# Source: https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
KEY_USE = ["kms:Decrypt", "kms:GenerateDataKey*"]


def send_alarms(scope: IConstruct, topic: str) -> None:
    """Let each alarm in ``scope`` and below it notify a topic.

    The alarms name the topic by ARN, not by an export, so that no stack waits for another stack.

    Args:
        scope: An app, with all of its stacks.
        topic: Name of the topic.
    """
    for construct in scope.node.find_all():
        if isinstance(construct, cloudwatch.CfnAlarm):
            arn = Stack.of(construct).format_arn(
                service="sns", resource=topic, arn_format=ArnFormat.NO_RESOURCE_NAME
            )
            construct.alarm_actions = [arn]


def send_event(scope: Construct, plan: EventPlan, topic_arn: str) -> None:
    """Define a rule in ``scope`` that sends events to a topic."""
    events.CfnRule(
        scope,
        plan.name,
        event_pattern=plan.pattern,
        targets=[
            events.CfnRule.TargetProperty(
                id="Topic",
                arn=topic_arn,
                input_transformer=events.CfnRule.InputTransformerProperty(
                    input_paths_map=plan.paths,
                    # EventBridge requires text in quotation marks.
                    input_template=json.dumps(plan.message, ensure_ascii=False),
                ),
            )
        ],
    )


def allow_service(
    name: str, actions: list[str], resource: str, conditions: Mapping[str, object]
) -> iam.PolicyStatement:
    """Return a resource policy's statement that allows an AWS service, such as ``events``."""
    return iam.PolicyStatement(
        principals=[service(f"{name}.amazonaws.com")],
        actions=actions,
        resources=[resource],
        conditions=conditions,
    )
