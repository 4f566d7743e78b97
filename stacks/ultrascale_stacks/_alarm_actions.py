"""What becomes of the alarms of all stacks."""

from aws_cdk import App, Stack
from aws_cdk import aws_cloudwatch as cloudwatch

from ultrascale.plan.model import AlertsPlan
from ultrascale_constructs.alerts import alarm_action


def tell_of_alarms(app: App, plan: AlertsPlan | None) -> None:
    """Let each alarm of every stack tell the topic of ``plan``, if there is one.

    They name it by its ARN, not by an export, so that no stack has to wait for another.

    Args:
        app: The app, with all of its stacks.
        plan: Who is told.
    """
    if plan is None:
        return
    for construct in app.node.find_all():
        if isinstance(construct, cloudwatch.CfnAlarm):
            construct.alarm_actions = [alarm_action(Stack.of(construct), plan.topic)]
