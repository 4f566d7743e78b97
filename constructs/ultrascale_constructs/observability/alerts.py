"""Notifications of alarms, of events and of approaching dates."""

from collections.abc import Mapping
from datetime import timedelta

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.parts.observability.model import AlertsPlan, ReminderPlan
from ultrascale_constructs.alarm import define_alarm
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.key import key_of
from ultrascale_constructs.scheduled_function import (
    minute_window,
    retries_within,
    scheduler_role,
    yearly,
)
from ultrascale_constructs.topic import KEY_USE, allow_service, send_event

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
