"""The function that measures the fleet, and the schedule that calls it."""

from typing import cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan.model import FleetMetricsPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.calendar_function import ClusterApi
from ultrascale_constructs.calendar_schedule import on_time, scheduler_role
from ultrascale_constructs.lambda_code import RUNTIME, lambda_code

_VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole"


class FleetMetrics(Construct):
    """Defines the function, its right to read the cluster, and its schedule.

    It runs in the VPC, for the API server may have no other endpoint, and asks the GPU exporters
    at the addresses of their pods. Its log events are its metrics: it needs no right to write any.

    Its rights within the cluster are the chart's, which is applied by another stack.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: FleetMetricsPlan, cluster: ClusterApi
    ) -> None:
        super().__init__(scope, id)
        group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY)
        # The L2's own property takes a member of an enumeration, not a number.
        resource = cast("logs.CfnLogGroup", group.node.default_child)
        resource.retention_in_days = plan.log_retention_days
        role = self._role(group)
        function = self._function(plan, cluster, role, group)
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.address.name,
            principal_arn=role.role_arn,
            type="STANDARD",
            kubernetes_groups=[plan.group],
        )
        self._schedule(plan, function).node.add_dependency(access)

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

    def _function(
        self, plan: FleetMetricsPlan, cluster: ClusterApi, role: iam.Role, group: logs.LogGroup
    ) -> lambda_.Function:
        subnets = [
            ec2.Subnet.from_subnet_id(self, f"Subnet{index}", subnet_id)
            for index, subnet_id in enumerate(cluster.subnet_ids)
        ]
        return lambda_.Function(
            self,
            "Resource",
            description=f"Metrics of the fleet of {cluster.address.name}",
            runtime=RUNTIME,
            code=lambda_code(),
            handler="lambdas.fleet_metrics.handler.on_event",
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
            vpc_subnets=ec2.SubnetSelection(subnets=subnets),
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(
                    self, "SecurityGroup", cluster.security_group_id
                )
            ],
        )

    def _schedule(
        self, plan: FleetMetricsPlan, function: lambda_.Function
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
            description="Measures the fleet",
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
