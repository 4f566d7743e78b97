"""The guard of a node group: it refuses a deployment that would replace running nodes."""

import json
from collections.abc import Mapping
from hashlib import sha256

from aws_cdk import CustomResource, Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.node_groups import is_guarded
from ultrascale_constructs.node_group_functions import ask


def guard(
    scope: Construct,
    *,
    plan: PoolPlan,
    cluster_name: str,
    service_token: str,
    rolled_for: Mapping[str, object],
) -> CustomResource:
    """Define what lets no deploy end the nodes of a managed group while any runs, as `Guard`.

    Every pool has one, whoever manages its nodes, and guarded or not: an edit that takes the
    reservation or the management away would take the guard with it, before it is asked. The group
    and its launch template depend on it: a rollback makes one more version of that, which the group
    would follow.

    Args:
        scope: Parent, which stays when a group takes another's place.
        plan: The pool.
        cluster_name: Name of the cluster.
        service_token: ARN of the function of `NodeGroupFunctions`.
        rolled_for: What EKS replaces the nodes for when it changes; empty where EKS does not
            manage them.
    """
    return ask(
        scope,
        "Guard",
        kind="NodeGroupGuard",
        service_token=service_token,
        properties={
            "ClusterName": cluster_name,
            "Labels": pool_labels(plan),
            "Guarded": "true" if is_guarded(plan) else "false",
            "SizedBy": plan.sized_by,
            "LaunchedFrom": {
                "Provisioner": plan.provisioner,
                "Purchase": plan.purchase,
                **rolled_for,
            },
        },
    )


def pool_labels(plan: PoolPlan) -> Mapping[str, str]:
    """Return the labels by which the pool's managed group is found.

    Not tags: those of a group that stands could never be set beside a new launch template.
    """
    return {key: plan.labels.get(key, "") for key in (names.POOL_LABEL, names.SHARD_LABEL)}


def digest(scope: Construct, value: object) -> str:
    """Return what changes whenever ``value`` does, tokens of the stack of ``scope`` included.

    These by the logical names of resources, which stay when what has them is replaced.
    """
    resolved = Stack.of(scope).resolve(value)
    return sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
