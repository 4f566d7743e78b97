"""Function of the cluster that deletes network interfaces of ended nodes."""

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan.model import InterfaceCleanerPlan
from ultrascale_constructs.acknowledgment import acknowledge_wildcards, shown_account
from ultrascale_constructs.lambda_function import (
    define_function,
    function_role,
    minute_window,
    scheduler_role,
)
from ultrascale_constructs.log_group import define_log_group


class InterfaceCleaner(Construct):
    """Defines the function and its schedule.

    The function replaces the VPC CNI's search, by which every node lists all interfaces. It may
    delete only interfaces with the cluster's tag.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: InterfaceCleanerPlan, cluster_name: str
    ) -> None:
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=plan.log_retention_days)
        function = define_function(
            self,
            "Function",
            description="Deletes network interfaces that ended nodes left",
            handler="lambdas.left_interfaces.handler.on_event",
            role=self._role(group, plan, cluster_name),
            group=group,
            timeout=Duration.seconds(plan.timeout_seconds),
            # The next call of the schedule is the retry.
            retry_attempts=0,
        )
        role = scheduler_role(
            self,
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.function_arn]
            ),
        )
        scheduler.CfnSchedule(
            self,
            "Schedule",
            description="Deletes network interfaces that ended nodes left",
            flexible_time_window=minute_window(),
            schedule_expression=f"rate({plan.interval_minutes} minutes)",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=role.role_arn,
                input=Stack.of(self).to_json_string(
                    {
                        "Cluster": cluster_name,
                        "ClusterTag": plan.cluster_tag,
                        "MadeTag": plan.made_tag,
                        "LeastMinutes": plan.least_minutes,
                        "Most": plan.most,
                    }
                ),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )

    def _role(
        self, group: logs.LogGroup, plan: InterfaceCleanerPlan, cluster_name: str
    ) -> iam.Role:
        stack = Stack.of(self)
        role = function_role(self, group)
        interfaces = stack.format_arn(
            service="ec2",
            resource="network-interface",
            resource_name="*",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        role.add_to_policy(
            iam.PolicyStatement(actions=["ec2:DescribeNetworkInterfaces"], resources=["*"])
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["ec2:DeleteNetworkInterface"],
                resources=[interfaces],
                conditions={"StringEquals": {f"aws:ResourceTag/{plan.cluster_tag}": cluster_name}},
            )
        )
        shown = (
            f"arn:{stack.partition}:ec2:{stack.region}:{shown_account(stack)}:network-interface/*"
        )
        acknowledge_wildcards(
            role,
            {
                "*": "EC2 takes no resource for listing interfaces",
                shown: "the plugin makes them; the condition on its tag leaves this cluster's",
            },
        )
        return role
