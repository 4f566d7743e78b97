"""SQS queues that EventBridge rules fill."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cdk_types import anyone, service


class EventQueue(Construct):
    """Defines a queue for events that expire within minutes, and the rules that fill it."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        retention_seconds: int,
        patterns: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Define the queue.

        Args:
            scope: Parent.
            id: Construct id.
            name: Name of the queue.
            retention_seconds: How long an unread event is kept, in seconds.
            patterns: EventBridge pattern of each rule, by the rule's construct id.
        """
        super().__init__(scope, id)
        queue = sqs.CfnQueue(
            self,
            "Resource",
            queue_name=name,
            message_retention_period=retention_seconds,
            sqs_managed_sse_enabled=True,
        )
        acknowledge(
            queue,
            {
                "AwsSolutions::AwsSolutions-SQS3": (
                    "an event that was not handled in time is about an instance that is gone"
                )
            },
        )
        self.queue_arn = queue.attr_arn  # ARN of the queue
        rules = [
            events.CfnRule(
                self,
                id,
                event_pattern=pattern,
                # Without a role: the queue's policy admits EventBridge.
                # Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
                targets=[events.CfnRule.TargetProperty(id="Queue", arn=self.queue_arn)],
            )
            for id, pattern in patterns.items()
        ]
        sqs.CfnQueuePolicy(
            self,
            "Policy",
            queues=[queue.ref],
            policy_document=iam.PolicyDocument(
                statements=[self._from_rules(rules), self._over_tls_alone()]
            ),
        )

    def _from_rules(self, rules: Sequence[events.CfnRule]) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid="AllowRules",
            principals=[service("events.amazonaws.com")],
            actions=["sqs:SendMessage"],
            resources=[self.queue_arn],
            conditions={"ArnEquals": {"aws:SourceArn": [rule.attr_arn for rule in rules]}},
        )

    def _over_tls_alone(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid="DenyHttp",
            effect=iam.Effect.DENY,
            principals=[anyone()],
            actions=["sqs:*"],
            resources=[self.queue_arn],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
