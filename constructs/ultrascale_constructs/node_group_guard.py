"""The guard of a node group: it refuses a deployment that would replace running nodes."""

import json
from collections.abc import Mapping
from hashlib import sha256

from aws_cdk import CustomResource, Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import NodeGroupPlan, PoolPlan
from ultrascale_constructs.node_group_functions import ask


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
