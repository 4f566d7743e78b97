"""Metrics, dashboards, notifications, and the write canary of the API server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_applicationsignals as applicationsignals
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.parts.observability.model import (
    AlertsPlan,
    LedgerPlan,
    ObjectivePlan,
    ReminderPlan,
    SectionPlan,
    WriteLatencyPlan,
)
from ultrascale.plan.model import GraphPlan, LinePlan, MetricPlan
from ultrascale_constructs.acknowledgment import acknowledge_wildcards
from ultrascale_constructs.alarm import KEY_USE, allow_service, define_alarm, send_event
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.key import key_of
from ultrascale_constructs.lambda_function import (
    ScheduledFunction,
    minute_window,
    retries_within,
    scheduler_role,
    yearly,
)

# --- Notifications of alarms, of events and of approaching dates ----------------------------------


_REMINDED_FOR = timedelta(hours=1)


class Alerts(Construct):
    """Defines the topic with its one subscriber, its events and its reminders.

    The alarms of other stacks find the topic by its name.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: AlertsPlan,
        cluster_name: str,
        placeholders: Mapping[str, str],
        key_arn: str | None,
    ) -> None:
        """Define the topic, its events and its reminders.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The topic, its subscriber, its events and its reminders.
            cluster_name: Name of the cluster, the prefix of the alarms' names.
            placeholders: Values of placeholders among the dimensions' values.
            key_arn: ARN of the user's own key of the topic; None defines a key.
        """
        super().__init__(scope, id)
        key = key_of(self, description=f"Alarms of {cluster_name}", arn=key_arn)
        topic = sns.CfnTopic(self, "Topic", topic_name=plan.topic, kms_master_key_id=key.key_arn)
        sns.CfnSubscription(
            self, "Email", topic_arn=topic.ref, protocol="email", endpoint=plan.email
        )
        for event in plan.events:
            send_event(self, event, topic.ref)
        self._allow(key, topic, hears_of_events=bool(plan.events))
        alarms = Construct(self, "Alarms")
        for alarm in plan.alarms:
            define_alarm(alarms, alarm, cluster_name, placeholders)
        if plan.reminders:
            self._remind(plan, topic, key)

    def _allow(self, key: kms.IKey, topic: sns.CfnTopic, *, hears_of_events: bool) -> None:
        """Let CloudWatch and EventBridge publish to the topic, and refuse requests without TLS."""
        stack = Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        own_alarms = {
            "ArnLike": {"aws:SourceArn": alarms},
            "StringEquals": {"aws:SourceAccount": stack.account},
        }
        statements = [allow_service("cloudwatch", ["sns:Publish"], topic.ref, own_alarms)]
        key.add_to_resource_policy(allow_service("cloudwatch", KEY_USE, "*", own_alarms))
        if hears_of_events:
            # No condition: EventBridge sends SNS and KMS neither its rule nor its account, so with
            # a condition no event would ever arrive, and nobody would notice.
            # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html#eb-sns-permissions
            # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
            statements.append(allow_service("events", ["sns:Publish"], topic.ref, {}))
            key.add_to_resource_policy(allow_service("events", KEY_USE, "*", {}))
        statements.append(
            iam.PolicyStatement(
                sid="DenyHttp",
                effect=iam.Effect.DENY,
                principals=[anyone()],
                actions=["sns:Publish"],
                resources=[topic.ref],
                conditions={"Bool": {"aws:SecureTransport": "false"}},
            )
        )
        sns.CfnTopicPolicy(
            self,
            "Policy",
            topics=[topic.ref],
            policy_document=iam.PolicyDocument(statements=statements),
        )

    def _remind(self, plan: AlertsPlan, topic: sns.CfnTopic, key: kms.IKey) -> None:
        reminders = Construct(self, "Reminders")
        role = scheduler_role(
            reminders,
            iam.PolicyStatement(actions=["sns:Publish"], resources=[topic.ref]),
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key.key_arn]
            ),
        )
        for reminder in plan.reminders:
            self._schedule(reminders, reminder, topic, role)

    def _schedule(
        self, scope: Construct, plan: ReminderPlan, topic: sns.CfnTopic, role: iam.Role
    ) -> None:
        stack = Stack.of(self)
        scheduler.CfnSchedule(
            scope,
            plan.name,
            description=plan.subject,
            flexible_time_window=minute_window(),
            schedule_expression=yearly(plan.at),
            schedule_expression_timezone="UTC",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=f"arn:{stack.partition}:scheduler:::aws-sdk:sns:publish",
                role_arn=role.role_arn,
                input=stack.to_json_string(
                    {"TopicArn": topic.ref, "Subject": plan.subject, "Message": plan.message}
                ),
                retry_policy=retries_within(_REMINDED_FOR),
            ),
        )


# --- CloudWatch dashboards ------------------------------------------------------------------------


_COLUMNS = 24
_GRAPHS_IN_A_ROW = 2
_GRAPH_HEIGHT = 6
_TEXT_HEIGHT = 1
_INTRODUCTION_HEIGHT = 5


class Dashboard(Construct):
    """Defines a dashboard."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        sections: Sequence[SectionPlan],
        period_seconds: int,
        placeholders: Mapping[str, str],
    ) -> None:
        """Define the dashboard.

        Args:
            scope: Parent.
            id: Construct id.
            name: Name of the dashboard.
            sections: Sections of the dashboard.
            period_seconds: Shortest period of its graphs.
            placeholders: Values of placeholders among the dimensions' values.
        """
        super().__init__(scope, id)
        stack = Stack.of(self)
        widgets = [*_widgets(sections, stack.region, period_seconds, placeholders)]
        cloudwatch.CfnDashboard(
            self,
            "Resource",
            dashboard_name=name,
            dashboard_body=stack.to_json_string({"widgets": widgets}),
        )


def _widgets(
    sections: Sequence[SectionPlan],
    region: str,
    period_seconds: int,
    placeholders: Mapping[str, str],
) -> Iterator[Mapping[str, object]]:
    """Yield the widgets, from top to bottom.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """
    y = 0
    width = _COLUMNS // _GRAPHS_IN_A_ROW
    for section in sections:
        height = _INTRODUCTION_HEIGHT if y == 0 else _TEXT_HEIGHT
        yield {
            "type": "text",
            "x": 0,
            "y": y,
            "width": _COLUMNS,
            "height": height,
            "properties": {"markdown": section.text},
        }
        y += height
        for index, graph in enumerate(section.graphs):
            row, column = divmod(index, _GRAPHS_IN_A_ROW)
            yield {
                "type": "metric",
                "x": column * width,
                "y": y + row * _GRAPH_HEIGHT,
                "width": width,
                "height": _GRAPH_HEIGHT,
                "properties": {
                    "region": region,
                    "period": period_seconds,
                    **_graph(graph, placeholders),
                },
            }
        y += -(-len(section.graphs) // _GRAPHS_IN_A_ROW) * _GRAPH_HEIGHT


def _graph(graph: GraphPlan, placeholders: Mapping[str, str]) -> Mapping[str, object]:
    marks = [
        {"label": label, "value": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
        for label, moment in graph.marks.items()
    ]
    limits = [{"label": label, "value": value} for label, value in graph.limits.items()]
    annotations = {
        **({"vertical": marks} if marks else {}),
        **({"horizontal": limits} if limits else {}),
    }
    return {
        "title": graph.title,
        "view": "timeSeries",
        "stacked": graph.stacked,
        "metrics": [
            entry
            for number, line in enumerate(graph.lines)
            for entry in _line_metrics(line, number, placeholders)
        ],
        "yAxis": {"left": {"label": graph.unit, "showUnits": False, "min": 0}},
        **({"annotations": annotations} if annotations else {}),
    }


def _line_metrics(
    line: LinePlan, number: int, placeholders: Mapping[str, str]
) -> Iterator[Sequence[object]]:
    """Yield the metrics of a line and the expression over them; ids are unique in the graph."""
    shown = line.expression is None
    for name, metric in line.metrics.items():
        options = {"id": f"{name}{number}", "stat": metric.statistic}
        yield [
            *_metric(metric, placeholders),
            {**options, "label": line.label} if shown else {**options, "visible": False},
        ]
    if line.expression is not None:
        names = "|".join(line.metrics)
        expression = re.sub(rf"\b({names})\b", rf"\g<1>{number}", line.expression)
        yield [{"expression": expression, "label": line.label, "id": f"e{number}"}]


def _metric(metric: MetricPlan, placeholders: Mapping[str, str]) -> Iterator[str]:
    yield metric.namespace
    yield metric.name
    for key, value in metric.dimensions.items():
        yield key
        yield placeholders.get(value, value)


# --- The write canary of the API server, with its objective and alarms ----------------------------


_Slo = applicationsignals.CfnServiceLevelObjective
# Shortest period of a metric of standard resolution.
_PERIOD_SECONDS = 60


class WriteLatency(Construct):
    """Defines the canary that writes each second, the objective for its writes, and their alarms.

    The function has no reserved concurrency: accounts start with as few as ten executions, of which
    none can be reserved. Of two simultaneous runs only one writes.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: WriteLatencyPlan, cluster: ClusterContext
    ) -> None:
        super().__init__(scope, id)
        name = cluster.name
        canary = ScheduledFunction(
            self,
            "Canary",
            plan=plan.function,
            cluster=cluster,
            handler="lambdas.write_canary.handler.on_event",
            description=f"Writes to the API server of {name} each second",
            purpose="Keeps the write canary going",
        )
        objective = _objective(self, plan.objective)
        alarms = Construct(self, "Alarms")
        for alarm in plan.alarms:
            # Defined last: an alarm before the function and its schedule would take its silence for
            # a fault.
            define_alarm(alarms, alarm, name, {}).node.add_dependency(canary, objective)


def _objective(scope: Construct, plan: ObjectivePlan) -> _Slo:
    """Define the service level objective.

    Application Signals creates its service-linked role with the first objective of an account.
    Source: https://docs.aws.amazon.com/applicationsignals/latest/APIReference/API_CreateServiceLevelObjective.html
    """
    metric = _Slo.RequestBasedSliMetricProperty(
        monitored_request_count_metric=_Slo.MonitoredRequestCountMetricProperty(
            good_count_metric=[_query("good", plan.good)]
        ),
        total_request_count_metric=[_query("total", plan.total)],
    )
    return _Slo(
        scope,
        "Objective",
        name=plan.name,
        description=plan.description,
        request_based_sli=_Slo.RequestBasedSliProperty(request_based_sli_metric=metric),
        goal=_Slo.GoalProperty(
            attainment_goal=plan.goal_percent,
            interval=_Slo.IntervalProperty(
                rolling_interval=_Slo.RollingIntervalProperty(
                    duration=plan.interval_days, duration_unit="DAY"
                )
            ),
        ),
        burn_rate_configurations=[
            _Slo.BurnRateConfigurationProperty(look_back_window_minutes=minutes)
            for minutes in plan.burn_rate_minutes
        ],
    )


def _query(id: str, metric: MetricPlan) -> _Slo.MetricDataQueryProperty:
    return _Slo.MetricDataQueryProperty(
        id=id,
        return_data=True,
        metric_stat=_Slo.MetricStatProperty(
            metric=_Slo.MetricProperty(
                namespace=metric.namespace,
                metric_name=metric.name,
                dimensions=[
                    _Slo.DimensionProperty(name=key, value=value)
                    for key, value in metric.dimensions.items()
                ],
            ),
            period=_PERIOD_SECONDS,
            stat=metric.statistic,
        ),
    )


# --- The rights of the function that writes the ledger --------------------------------------------


def allow_ledger(role: iam.Role, plan: LedgerPlan, bucket: Bucket) -> None:
    """Let a function write the ledger, and read the reservations that it counts."""
    use_key = ["kms:Decrypt", "kms:GenerateDataKey"]
    statements = [
        # Without it S3 refuses what is not there yet, as if it were forbidden.
        iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]),
        iam.PolicyStatement(
            actions=["s3:GetObject", "s3:PutObject"], resources=[bucket.objects_arn]
        ),
        iam.PolicyStatement(
            actions=use_key, resources=[bucket.key_arn], conditions=bucket.key_conditions
        ),
    ]
    if plan.reads_reservations:
        describe = [
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeCapacityBlockExtensionHistory",
            "ec2:GetGroupsForCapacityReservation",
        ]
        statements.append(iam.PolicyStatement(actions=describe, resources=["*"]))
        acknowledge_wildcards(role, {"*": "what only describes cannot be limited to one resource"})
    if plan.training_plans:
        asked = ["sagemaker:DescribeTrainingPlan", "sagemaker:DescribeTrainingPlanExtensionHistory"]
        statements.append(iam.PolicyStatement(actions=asked, resources=[*plan.training_plans]))
    for statement in statements:
        role.add_to_policy(statement)
    bucket.acknowledge_objects(role, "the bucket holds the ledger alone")
