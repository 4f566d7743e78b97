"""The Lambda function behind the custom resources of node groups."""

from collections.abc import Mapping
from functools import cache

from aws_cdk import ArnFormat, CustomResource, Duration, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan import names
from ultrascale_constructs.acknowledgment import acknowledge_wildcards, shown_account
from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group


def ask(
    scope: Construct,
    id: str,
    *,
    kind: str,
    service_token: str,
    properties: Mapping[str, object],
) -> CustomResource:
    """Define a custom resource that the function of `NodeGroupFunctions` handles.

    Args:
        scope: Parent.
        id: Construct id.
        kind: The resource's type after `Custom::`.
        service_token: ARN of the function.
        properties: The properties of the resource.
    """
    return CustomResource(
        scope,
        id,
        service_token=service_token,
        resource_type=f"Custom::{kind}",
        service_timeout=_longest(),
        properties=properties,
    )


@cache
def _longest() -> Duration:
    """Return the longest time of a custom resource; without it a deployment waits for an hour."""
    return Duration.minutes(10)


class NodeGroupFunctions(Construct):
    """Defines the function that reads node groups' sizes and changes their Auto Scaling groups."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        log_retention_days: int,
        of_this_stack: bool = False,
    ) -> None:
        """Define the function.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Name of the cluster.
            log_retention_days: How long its log is kept, in days.
            of_this_stack: Whether only this stack uses the function, and not the stack of each
                pool.
        """
        super().__init__(scope, id)
        self._of_this_stack = of_this_stack
        group = define_log_group(self, retention_days=log_retention_days)
        role = function_role(self, group)
        self._grant(role, cluster_name)
        # ARN of the function, for `ask`
        self.service_token = define_function(
            self,
            "Function",
            description=f"Custom resources of the node groups of {cluster_name}",
            handler="lambdas.node_groups.handler.on_event",
            role=role,
            group=group,
            timeout=Duration.minutes(2),
        ).function_arn

    def _grant(self, role: iam.Role, cluster_name: str) -> None:
        """Let the function read this cluster's node groups and change their Auto Scaling groups."""
        stack = Stack.of(self)
        cluster = stack.format_arn(service="eks", resource="cluster", resource_name=cluster_name)
        groups = stack.format_arn(
            service="eks", resource="nodegroup", resource_name=f"{cluster_name}/*/*"
        )
        scaling_groups = stack.format_arn(
            service="autoscaling",
            resource="autoScalingGroup",
            resource_name="*:autoScalingGroupName/*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        pool_stack = names.stack(cluster_name, "*")
        stacks = (
            stack.stack_id
            if self._of_this_stack
            else stack.format_arn(
                service="cloudformation", resource="stack", resource_name=f"{pool_stack}/*"
            )
        )
        for statement in (
            iam.PolicyStatement(actions=["eks:ListNodegroups"], resources=[cluster]),
            iam.PolicyStatement(actions=["eks:DescribeNodegroup"], resources=[groups]),
            iam.PolicyStatement(actions=["autoscaling:DescribeAutoScalingGroups"], resources=["*"]),
            iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[stacks]),
            *(
                iam.PolicyStatement(
                    actions=["autoscaling:SuspendProcesses"],
                    resources=[scaling_groups],
                    conditions={"StringEquals": {f"autoscaling:ResourceTag/{key}": value}},
                )
                # EKS puts the first tag on its groups, we put the second on ours.
                for key, value in (
                    ("eks:cluster-name", cluster_name),
                    (f"kubernetes.io/cluster/{cluster_name}", "owned"),
                )
                # The key of a mapping cannot be a name that only CloudFormation knows.
                if not Token.is_unresolved(key)
            ),
            iam.PolicyStatement(
                actions=["autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags"],
                resources=[scaling_groups],
                conditions={
                    # EKS puts this tag on its groups.
                    "StringEquals": {"autoscaling:ResourceTag/eks:cluster-name": cluster_name},
                    "ForAllValues:StringLike": {
                        "aws:TagKeys": ["k8s.io/cluster-autoscaler/*", names.AUTOSCALED_TAG]
                    },
                },
            ),
        ):
            role.add_to_policy(statement)
        _acknowledge(role, stack, cluster_name, pool_stack)


def _acknowledge(role: iam.Role, stack: Stack, cluster_name: str, pool_stack: str) -> None:
    """Accept the wildcards in the function's rights for cdk-nag, each with the reason."""
    account = shown_account(stack)
    where = f"{stack.region}:{account}"
    shown_groups = f"arn:{stack.partition}:eks:{where}:nodegroup/{cluster_name}/*/*"
    shown_scaling_groups = (
        f"arn:{stack.partition}:autoscaling:{where}:autoScalingGroup:*:autoScalingGroupName/*"
    )
    shown_stacks = f"arn:{stack.partition}:cloudformation:{where}:stack/{pool_stack}/*"
    acknowledge_wildcards(
        role,
        {
            "*": "Auto Scaling groups can be described all or none",
            shown_groups: "names of node groups are CloudFormation's; the cluster is named",
            shown_scaling_groups: (
                "names of Auto Scaling groups are AWS's; the condition names the cluster"
            ),
            shown_stacks: ("the end of a stack's id is CloudFormation's; its state alone is read"),
        },
    )
