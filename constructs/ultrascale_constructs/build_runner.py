"""A build of AWS CodeBuild that runs when a stack is deployed."""

from typing import cast

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale_constructs.lambda_code import RUNTIME, lambda_code

# The longest that AWS Lambda allows.
_FUNCTION_TIMEOUT = Duration.minutes(15)
# A minute for the answer of a function that ran that long.
_SERVICE_TIMEOUT = Duration.minutes(16)


class BuildRunner(Construct):
    """Defines what runs a build whenever ``revision`` changes, and fails the deploy if that fails.

    When it is deleted, nothing is run: what builds made stays.

    Attributes:
        resource: The custom resource: what depends on it waits for the build.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project_name: str,
        revision: str,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, id)
        group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY)
        # The L2's own property takes a member of an enumeration, not a number.
        cast("logs.CfnLogGroup", group.node.default_child).retention_in_days = log_retention_days
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com")),
        )
        group.grant_write(role)
        project = Stack.of(self).format_arn(
            service="codebuild", resource="project", resource_name=project_name
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "codebuild:BatchGetBuilds",
                    "codebuild:StartBuild",
                    "codebuild:StopBuild",
                ],
                resources=[project],
            )
        )
        function = lambda_.Function(
            self,
            "Function",
            description=f"Runs builds of {project_name}",
            runtime=RUNTIME,
            handler="lambdas.builds.handler.on_event",
            code=lambda_code(),
            memory_size=256,
            timeout=_FUNCTION_TIMEOUT,
            role=cast("iam.IRole", role),
            log_group=cast("logs.ILogGroup", group),
        )
        self.resource = CustomResource(
            self,
            "Resource",
            service_token=function.function_arn,
            resource_type="Custom::Build",
            service_timeout=_SERVICE_TIMEOUT,
            properties={"ProjectName": project_name, "Revision": revision},
        )
        # The function's policy is none of its own properties.
        self.resource.node.add_dependency(role)
