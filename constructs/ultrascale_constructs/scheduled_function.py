"""Functions that a schedule calls, and that call the API server."""

from typing import cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan.model import FunctionPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.calendar_function import ClusterApi
from ultrascale_constructs.calendar_schedule import on_time, scheduler_role
from ultrascale_constructs.lambda_code import RUNTIME, lambda_code

_VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole"


class ScheduledFunction(Construct):
    """Defines the function, its access to the cluster, and its schedule.

    It runs in the VPC, for the API server may have no other endpoint. Its log events are its
    metrics: it needs no right to write any. What it may do within the cluster is said by a chart,
    which is applied by another stack.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: FunctionPlan,
        cluster: ClusterApi,
        handler: str,
        description: str,
        purpose: str,
    ) -> None:
        """Define the function.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The function.
            cluster: How it reaches the API server.
            handler: What is called, ``lambdas.<package>.<module>.<function>``.
            description: Description of the function.
            purpose: Description of the schedule.
        """
        super().__init__(scope, id)
        group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY)
        # The L2's own property takes a member of an enumeration, not a number.
        resource = cast("logs.CfnLogGroup", group.node.default_child)
        resource.retention_in_days = plan.log_retention_days
        role = self._role(group)
        function = lambda_.Function(
            self,
            "Resource",
            description=description,
            runtime=RUNTIME,
            code=lambda_code(),
            handler=handler,
            timeout=Duration.seconds(plan.timeout_seconds),
            memory_size=plan.memory_mib,
            role=cast("iam.IRole", role),
            log_group=cast("logs.ILogGroup", group),
            # The next call is the retry.
            retry_attempts=0,
            environment={
                "CLUSTER_ENDPOINT": cluster.address.endpoint,
                "CLUSTER_CERTIFICATE_AUTHORITY": cluster.address.certificate_authority,
            },
            vpc=cluster.vpc,
            vpc_subnets=self._subnets(cluster),
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(
                    self, "SecurityGroup", cluster.security_group_id
                )
            ],
        )
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.address.name,
            principal_arn=role.role_arn,
            type="STANDARD",
            kubernetes_groups=[plan.group],
        )
        self._schedule(plan, function, purpose).node.add_dependency(access)

    def _role(self, group: logs.LogGroup) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com")),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_VPC_POLICY)],
        )
        acknowledge_managed_policies(
            role, {_VPC_POLICY: "AWS keeps it in step with what Lambda calls"}
        )
        group.grant_write(cast("iam.IGrantable", role))
        return role

    def _subnets(self, cluster: ClusterApi) -> ec2.SubnetSelection:
        return ec2.SubnetSelection(
            subnets=[
                ec2.Subnet.from_subnet_id(self, f"Subnet{index}", subnet_id)
                for index, subnet_id in enumerate(cluster.subnet_ids)
            ]
        )

    def _schedule(
        self, plan: FunctionPlan, function: lambda_.Function, purpose: str
    ) -> scheduler.CfnSchedule:
        minutes = plan.interval_minutes
        role = scheduler_role(
            self,
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.function_arn]
            ),
        )
        return scheduler.CfnSchedule(
            self,
            "Schedule",
            description=purpose,
            flexible_time_window=on_time(),
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=role.role_arn,
                # Too long for environment variables, which hold 4 kB together.
                input=Stack.of(self).to_json_string(plan.input),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )
