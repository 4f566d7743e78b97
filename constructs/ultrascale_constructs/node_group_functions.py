"""The function behind the custom resources of node groups, and the guard that refuses losses."""

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256

from aws_cdk import ArnFormat, CustomResource, Duration, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import NodeGroupPlan, PoolPlan
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


# --- The guard of a node group: it refuses a deployment that would replace running nodes ----------


def guard(
    scope: Construct,
    *,
    plan: NodeGroupPlan,
    cluster_name: str,
    service_token: str,
    rolled_for: Mapping[str, object],
) -> CustomResource:
    """Define the `Guard` of a node group: with it, no deployment replaces running nodes.

    Each pool has a guard, whether managed or not and guarded or not: otherwise an edit that removes
    the reservation or the management would remove the guard before its check. The group and its
    launch template depend on it: a rollback creates another version of the template, which the
    group would follow.

    Args:
        scope: Parent, which stays when one group replaces another.
        plan: The node group.
        cluster_name: Name of the cluster.
        service_token: ARN of the function of `NodeGroupFunctions`.
        rolled_for: Values whose change makes EKS replace the nodes; empty for self-managed nodes.
    """
    return ask(
        scope,
        "Guard",
        kind="NodeGroupGuard",
        service_token=service_token,
        properties={
            "ClusterName": cluster_name,
            "Labels": pool_labels(plan.pool),
            "Guarded": "true" if plan.guarded else "false",
            "SizedBy": plan.pool.sized_by,
            "LaunchedFrom": {
                "Provisioner": plan.pool.provisioner,
                "Purchase": plan.pool.purchase,
                **rolled_for,
            },
        },
    )


def pool_labels(plan: PoolPlan) -> Mapping[str, str]:
    """Return the labels that identify the pool's managed group.

    Tags cannot identify the group: CloudFormation never changes tags together with the launch
    template of an existing group.
    """
    return {key: plan.labels.get(key, "") for key in (names.POOL_LABEL, names.SHARD_LABEL)}


def digest(scope: Construct, value: object) -> str:
    """Return a hash of ``value``, with tokens resolved in the stack of ``scope``.

    Tokens count as the logical ids of resources, which stay when a resource is replaced.
    """
    resolved = Stack.of(scope).resolve(value)
    return sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
