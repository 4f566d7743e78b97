"""CloudWatch alarms, and the topics that they notify."""

import json
from collections.abc import Mapping

from aws_cdk import ArnFormat, IResolvable, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultrascale.plan.model import AlarmPlan, EventPlan, MetricPlan
from ultrascale_constructs.cdk_types import service


def define_alarm(
    scope: Construct, plan: AlarmPlan, cluster_name: str, placeholders: Mapping[str, str]
) -> cloudwatch.CfnAlarm:
    """Define an alarm that notifies nobody.

    Args:
        scope: Parent.
        plan: The alarm.
        cluster_name: Name of the cluster, the prefix of the alarm's name.
        placeholders: Values of placeholders among the dimensions' values.
    """
    alarm = cloudwatch.CfnAlarm(
        scope,
        plan.name,
        alarm_name=f"{cluster_name}-{plan.name}",
        alarm_description=plan.description,
        evaluation_periods=plan.periods,
        threshold=plan.threshold,
        comparison_operator=plan.comparison,
        treat_missing_data="breaching" if plan.missing_is_wrong else "notBreaching",
    )
    if plan.expression is None:
        (metric,) = plan.metrics.values()
        alarm.namespace = metric.namespace
        alarm.metric_name = metric.name
        alarm.dimensions = _dimensions(metric, placeholders)
        alarm.statistic = metric.statistic
        alarm.period = plan.period_seconds
    else:
        alarm.metrics = _queries(plan, plan.expression, placeholders)
    return alarm


def _queries(
    plan: AlarmPlan, expression: str, placeholders: Mapping[str, str]
) -> list[IResolvable | cloudwatch.CfnAlarm.MetricDataQueryProperty]:
    inputs = [
        cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id=id,
            return_data=False,
            metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                metric=cloudwatch.CfnAlarm.MetricProperty(
                    namespace=metric.namespace,
                    metric_name=metric.name,
                    dimensions=_dimensions(metric, placeholders),
                ),
                period=plan.period_seconds,
                stat=metric.statistic,
            ),
        )
        for id, metric in plan.metrics.items()
    ]
    result = cloudwatch.CfnAlarm.MetricDataQueryProperty(
        id="e", expression=expression, label=plan.name, return_data=True
    )
    return [*inputs, result]


def _dimensions(
    metric: MetricPlan, placeholders: Mapping[str, str]
) -> list[IResolvable | cloudwatch.CfnAlarm.DimensionProperty]:
    return [
        cloudwatch.CfnAlarm.DimensionProperty(name=key, value=placeholders.get(value, value))
        for key, value in metric.dimensions.items()
    ]


# --- Topics that alarms and events notify ---------------------------------------------------------


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
