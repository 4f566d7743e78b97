"""CloudWatch alarms."""

from collections.abc import Mapping

from aws_cdk import IResolvable
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultrascale.plan.model import AlarmPlan, MetricPlan


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
