"""NodePools of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping, Sequence

import cdk8s
from constructs import Construct

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import Budget, NodeClassPlan, NodePoolPlan, Requirement, Taint
from ultrascale.plan.names import INSTANCE_TYPE_LABEL
from ultrascale_k8s._api_objects import define_object
from ultrascale_k8s.node_classes import GROUPS, node_class_manifest

Spec = JsonObject

# Karpenter sets this label on its nodes, and matches overlays by it.
_NODE_POOL_LABEL = "karpenter.sh/nodepool"


class NodePoolsChart(cdk8s.Chart):
    """Defines the node class of one pool, or of one of its shards, and the NodePools on it.

    Each node class has a chart of its own, so that a pool that leaves the cluster file is deleted,
    and no manifest exceeds the size that CloudFormation passes on.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        node_class: NodeClassPlan,
        node_pools: Sequence[NodePoolPlan],
    ) -> None:
        """Define the node class and its NodePools.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            node_class: The node class.
            node_pools: The NodePools that launch from it.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_object(self, "NodeClass", node_class_manifest(node_class))
        for node_pool in node_pools:
            if node_pool.unseen_resources:
                id = f"{node_pool.name}-overlay"
                define_object(self, id, node_overlay_manifest(node_pool))
        for node_pool in node_pools:
            define_object(self, node_pool.name, node_pool_manifest(node_pool))


def node_overlay_manifest(plan: NodePoolPlan) -> JsonObject:
    """Return the NodeOverlay with the resources of nodes that Karpenter does not know by itself.

    The overlay covers only this NodePool: of two overlays for the same nodes, one would be ignored.

    Source: https://karpenter.sh/docs/concepts/nodeoverlays/
    """
    types = next(r for r in plan.requirements if r.key == INSTANCE_TYPE_LABEL)
    own = Requirement(key=_NODE_POOL_LABEL, values=(plan.name,))
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": plan.name},
        "spec": {
            "requirements": [_requirement(own), _requirement(types)],
            "capacity": dict(plan.unseen_resources),
        },
    }


def node_pool_manifest(plan: NodePoolPlan) -> JsonObject:
    """Return the NodePool."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": plan.name},
        "spec": node_pool_spec(plan),
    }


def node_pool_spec(plan: NodePoolPlan) -> Spec:
    """Return the ``spec`` of a NodePool, which is static if the plan has replicas.

    Source: https://karpenter.sh/docs/concepts/nodepools/
    """
    spec: dict[str, Json] = {}
    if plan.replicas is not None:
        spec["replicas"] = plan.replicas
    if plan.weight is not None:
        spec["weight"] = plan.weight
    return {
        **spec,
        "limits": _limits(plan),
        "disruption": {
            "consolidationPolicy": plan.consolidation_policy,
            "consolidateAfter": plan.consolidate_after,
            "budgets": [_budget(budget) for budget in plan.budgets],
        },
        "template": {"metadata": {"labels": dict(plan.labels)}, "spec": _node_claim_spec(plan)},
    }


def _limits(plan: NodePoolPlan) -> Mapping[str, str]:
    nodes = {"nodes": str(plan.max_nodes)}
    return nodes if plan.max_vcpus is None else {**nodes, "cpu": str(plan.max_vcpus)}


def _node_claim_spec(plan: NodePoolPlan) -> Spec:
    spec: dict[str, Json] = {
        "nodeClassRef": {
            "group": GROUPS[plan.node_class_kind],
            "kind": plan.node_class_kind,
            "name": plan.node_class,
        },
        "requirements": [_requirement(each) for each in plan.requirements],
        "expireAfter": plan.expire_after,
    }
    if plan.termination_grace_period is not None:
        spec["terminationGracePeriod"] = plan.termination_grace_period
    if plan.taints:
        spec["taints"] = [_taint(taint) for taint in plan.taints]
    if plan.startup_taints:
        spec["startupTaints"] = [_taint(taint) for taint in plan.startup_taints]
    return spec


def _requirement(requirement: Requirement) -> Spec:
    return {"key": requirement.key, "operator": "In", "values": list(requirement.values)}


def _taint(taint: Taint) -> Spec:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _budget(budget: Budget) -> Spec:
    if budget.reasons:
        return {"nodes": budget.nodes, "reasons": list(budget.reasons)}
    return {"nodes": budget.nodes}
