"""Repair veto: an annotation that keeps Karpenter from repairing a node.

Source: https://karpenter.sh/v1.15/reference/annotations/
"""

from ultrascale.catalog import karpenter
from ultrascale.cluster_api.kinds import NODE
from ultrascale.cluster_api.objects import Object, label
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import mapping
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.operate.node_pools import OF_NODE_POOL
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import NodesPlan

_ANNOTATIONS = "/metadata/annotations"
# JSON pointers write a slash within a key as ``~1``.
# Source: https://www.rfc-editor.org/rfc/rfc6901#section-3
_KEY = karpenter.DO_NOT_REPAIR.replace("/", "~1")


class Veto(Frozen):
    """Result of setting or lifting a repair veto."""

    node: str  # Name of the node
    pool: str  # Its pool in the cluster file
    held: bool  # Whether nothing repairs the node now
    changed: bool  # Whether the call changed that
    repairs: str  # What the pool's repair does to a broken node


def set_veto(plan: ClusterPlan, cluster: Cluster, node: str, *, held: bool) -> Veto:
    """Forbid Karpenter to repair a node, or allow it again.

    Args:
        plan: The cluster.
        cluster: The cluster's API server.
        node: Name of the node.
        held: Whether repair is forbidden.

    Raises:
        QuestionError: There is no such node, or Karpenter does not repair it.
        ClusterError: The API server refuses, or cannot be reached.
    """
    manifest = cluster.find(NODE.path(name=node))
    if manifest is None:
        raise QuestionError([f"NODE: no node {node!r}; `kubectl get nodes` lists them"])
    pool = _pool_of_node(plan.name, plan.nodes, manifest, node)
    annotations = mapping(manifest, "metadata", "annotations")
    stands = annotations.get(karpenter.DO_NOT_REPAIR) == "true"
    if stands is not held:
        operation: Object
        if not held:
            operation = {"op": "remove", "path": f"{_ANNOTATIONS}/{_KEY}"}
        elif annotations:
            operation = {"op": "add", "path": f"{_ANNOTATIONS}/{_KEY}", "value": "true"}
        else:
            value = {karpenter.DO_NOT_REPAIR: "true"}
            operation = {"op": "add", "path": _ANNOTATIONS, "value": value}
        cluster.patch(NODE.path(name=node), [operation])
    (repair,) = (each for each in plan.nodes.repairs if each.pool == pool)
    return Veto(node=node, pool=pool, held=held, changed=stands is not held, repairs=repair.action)


def _pool_of_node(cluster_name: str, nodes: NodesPlan, manifest: Object, node: str) -> str:
    """Return the name of the pool of a node that Karpenter launched.

    Raises:
        QuestionError: Something else launched the node, or its version of Karpenter ignores vetoes.
    """
    name = label(manifest, OF_NODE_POOL)
    found = [
        each
        for each in nodes.node_pools
        if each.name == name and each.node_class_kind == "EC2NodeClass"
    ]
    if not found or nodes.karpenter is None:
        raise QuestionError(
            [
                f"NODE: {node} is no node of a Karpenter pool of {cluster_name}, and Karpenter "
                "alone heeds a veto; write repair: none in its pool where its provisioner takes "
                "that"
            ]
        )
    version, needed = nodes.karpenter.version, karpenter.FEATURES["repair"]
    if karpenter.release(version) < karpenter.release(needed):
        raise QuestionError(
            [f"NODE: Karpenter {version} repairs no node here, and heeds no veto before {needed}"]
        )
    return found[0].pool
