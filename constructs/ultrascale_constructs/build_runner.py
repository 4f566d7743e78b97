"""A CodeBuild build that runs when its stack is deployed."""

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group

# The longest that AWS Lambda allows.
_FUNCTION_TIMEOUT = Duration.minutes(15)
# A minute for the answer of a function that ran that long.
_SERVICE_TIMEOUT = Duration.minutes(16)


class BuildRunner(Construct):
    """Defines a custom resource that runs a build whenever ``revision`` changes.

    A build that fails makes the deployment fail. The deletion of the resource runs nothing: the
    results of builds stay.

    Attributes:
        resource: The custom resource; its dependents wait for the build.
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
        group = define_log_group(self, retention_days=log_retention_days)
        role = function_role(self, group)
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
        function = define_function(
            self,
            "Function",
            description=f"Runs builds of {project_name}",
            handler="lambdas.builds.handler.on_event",
            role=role,
            group=group,
            timeout=_FUNCTION_TIMEOUT,
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
