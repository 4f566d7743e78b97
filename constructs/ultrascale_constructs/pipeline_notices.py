"""Who hears that a pipeline needs somebody."""

from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.alerts import KEY_USE, allow_service, tell_of_event
from ultrascale_constructs.cdk_types import as_topic
from ultrascale_constructs.key import Key


class Notices(Construct):
    """Defines the topic of a pipeline, with its one subscriber, and what is published there.

    Attributes:
        topic: The topic.
    """

    def __init__(self, scope: Construct, id: str, *, plan: PipelinePlan, email: str) -> None:
        """Define the topic.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The pipeline.
            email: Who subscribes to it.
        """
        super().__init__(scope, id)
        key = Key(self, "Key", description=f"Notices of {plan.name}").key
        topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        sns.CfnSubscription(
            self, "Email", topic_arn=topic.topic_arn, protocol="email", endpoint=email
        )
        # EventBridge tells neither SNS nor KMS its rule or its account: see `Alerts`.
        topic.add_to_resource_policy(allow_service("events", ["sns:Publish"], topic.topic_arn, {}))
        key.add_to_resource_policy(allow_service("events", KEY_USE, "*", {}))
        for event in plan.events:
            tell_of_event(self, event, topic.topic_arn)
        self.topic = as_topic(topic)
