"""NodePools: their nodes, their NodeClaims, and the replicas of a static NodePool.

Sources:
    https://karpenter.sh/docs/concepts/nodepools/
    https://karpenter.sh/docs/concepts/nodeclaims/
"""

from collections.abc import Sequence

from ultrascale.catalog import addons, karpenter
from ultrascale.cluster_api.objects import (
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    POD,
    Object,
    condition,
    label,
    name,
)
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.errors import ClusterError, QuestionError, RefusedError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.model import NodesPlan, PoolPlan

# Label on each node and NodeClaim of a NodePool.
OF_NODE_POOL = karpenter.NODE_POOL_LABEL
_SOFT = "PreferNoSchedule"
# Source: https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/templates/daemonset.yaml
_AGENT = f"app.kubernetes.io/name={addons.MONITORING_AGENT}"
_UNPROCESSABLE = 422


class NodePool(Frozen):
    """A NodePool of Karpenter or EKS Auto Mode."""

    cluster: Cluster  # API server of its cluster
    name: str  # Its name
    pool: PoolPlan  # The pool of the cluster file

    def replicas(self) -> int:
        """Return the number of nodes that a static NodePool is set to.

        Raises:
            ClusterError: There is no such NodePool, it is not static, or the API server cannot be
                reached.
        """
        count = look_up(self._manifest(), "spec", "replicas")
        if not isinstance(count, int):
            raise ClusterError(f"{self.name}: the NodePool has no fixed count, unlike the file")
        return count

    def limit(self) -> int | None:
        """Return the maximum number of nodes; None without a maximum.

        Raises:
            ClusterError: There is no such NodePool, or the API server cannot be reached.
        """
        limits = mapping(self._manifest(), "spec", "limits")
        return _count(limits, "nodes") if "nodes" in limits else None

    def _manifest(self) -> Object:
        manifest = self.cluster.find(NODE_POOL.path(name=self.name))
        if manifest is None:
            raise ClusterError(f"{self.name}: there is no such NodePool; deploy it first")
        return manifest

    def set_replicas(self, count: int, *, was: int) -> None:
        """Set the number of nodes, unless it is no longer ``was``.

        Raises:
            ClusterError: Somebody else has changed it, or the API server refuses or cannot be
                reached.
        """
        at = "/spec/replicas"
        try:
            self.cluster.patch(
                NODE_POOL.path(name=self.name),
                [
                    {"op": "test", "path": at, "value": was},
                    {"op": "replace", "path": at, "value": count},
                ],
            )
        except RefusedError as error:
            # For a failed `test` operation the server only says that the request is wrong.
            if error.status != _UNPROCESSABLE or (now := self.replicas()) == was:
                raise
            raise changed_meanwhile(self.name, was, now) from error

    def claims(self) -> Sequence[Object]:
        """Return the NodePool's NodeClaims, the oldest first."""
        claims = self.cluster.items(
            NODE_CLAIM.path(), {"labelSelector": f"{OF_NODE_POOL}={self.name}"}
        )
        return sorted(
            claims, key=lambda claim: (text(claim, "metadata", "creationTimestamp"), name(claim))
        )

    def nodes(self) -> Sequence[Object]:
        """Return the NodePool's nodes."""
        nodes = self.cluster.items(NODE.path(), {"labelSelector": f"{OF_NODE_POOL}={self.name}"})
        return [*nodes]

    def waiting_for(self, count: int) -> str:
        """Return why not exactly ``count`` nodes take work yet; empty once they do."""
        return waiting_for_nodes(self.nodes(), count, self.pool, self.name)

    def trouble(self) -> str:
        """Return why NodeClaims do not start or join; empty if no reason is known."""
        reasons: dict[str, list[str]] = {}
        for claim in self.claims():
            if why := trouble(claim):
                reasons.setdefault(why, []).append(name(claim))
        return "; ".join(
            f"NodeClaim {claims[0]}{_number_of_others(len(claims) - 1)}: {why}"
            for why, claims in reasons.items()
        )


def _number_of_others(others: int) -> str:
    return f" and {others} more" if others else ""


def changed_meanwhile(name: str, was: int, now: int) -> ClusterError:
    """Return the error for a size that somebody else has set since it was shown."""
    return ClusterError(
        f"{name}: somebody set it from {was} to {now} nodes meanwhile, and it stays at that; find "
        "out who, and run the command again"
    )


def nodes_of(cluster: Cluster, pool: PoolPlan) -> Sequence[Object]:
    """Return the nodes with the labels of a pool or of a shard."""
    keys = (names.POOL_LABEL, names.SHARD_LABEL)
    selector = ",".join(f"{key}={pool.labels[key]}" for key in keys if key in pool.labels)
    return [*cluster.items(NODE.path(), {"labelSelector": selector})]


def waiting_for_nodes(nodes: Sequence[Object], count: int, pool: PoolPlan, about: str) -> str:
    """Return why not exactly ``count`` nodes take work yet; empty once they do."""
    others = [f"{name(node)} is {why}" for node in nodes if (why := unfit(node, pool))]
    fit = len(nodes) - len(others)
    if fit == count == len(nodes):
        return ""
    going = f", {len(others)} not: {others[0]}" if others else ""
    return f"{about}: {fit} of {count} nodes ready{going}"


def unfit(node: Object, pool: PoolPlan) -> str:
    """Return why ``node`` takes no work of ``pool`` yet; empty if it takes work."""
    if not condition(node, "Ready"):
        return "not ready"
    if look_up(node, "spec", "unschedulable"):
        return "cordoned"
    for resource, wanted in _offers(pool).items():
        if (offered := _count(mapping(node, "status", "allocatable"), resource)) < wanted:
            return f"{offered} of {wanted} {resource}"
    # Startup taints go once their condition is met; the pool's own taints stay. A taint of effect
    # PreferNoSchedule, such as the Cluster Autoscaler's on an idle node, keeps no pod away.
    own = {taint.key for taint in pool.taints}
    others = [taint for taint in objects(node, "spec", "taints") if text(taint, "effect") != _SOFT]
    passing = [key for taint in others if (key := text(taint, "key")) not in own]
    return f"tainted {', '.join(passing)}" if passing else ""


def _offers(pool: PoolPlan) -> dict[str, int]:
    wanted = {names.EFA_INTERFACE: pool.efa_interfaces} if pool.efa_interfaces else {}
    if pool.accelerator is not None:
        wanted[pool.accelerator] = pool.accelerators_per_node
    return wanted


def _count(quantities: Object, resource: str) -> int:
    """Return the amount of a resource: a whole number, mostly written as text."""
    amount = text(quantities, resource)
    return int(amount) if amount.isdigit() else number(quantities, resource)


def trouble(claim: Object) -> str:
    """Return why a NodeClaim does not start or join; empty if no reason is known."""
    for kind in ("Launched", "Registered", "Initialized"):
        for entry in objects(claim, "status", "conditions"):
            if text(entry, "type") == kind and text(entry, "status") != "True":
                return text(entry, "message")
    return ""


# --- Verdicts of the node monitoring agent --------------------------------------------------------


def restart_agent(cluster: Cluster, node: str) -> None:
    """Restart the node monitoring agent on a node, so that it judges the node anew.

    Args:
        cluster: The cluster's API server.
        node: Name of the node.

    Raises:
        QuestionError: There is no such node, or the agent is no pod there.
        ClusterError: The API server refuses, or cannot be reached.

    Source: https://github.com/aws/eks-node-monitoring-agent/issues/266
    """
    if cluster.find(NODE.path(name=node)) is None:
        raise QuestionError([f"NODE: no node {node!r}; `kubectl get nodes` lists them"])
    query = {"labelSelector": _AGENT, "fieldSelector": f"spec.nodeName={node}"}
    pods = [*cluster.items(POD.path(names.SYSTEM_NAMESPACE), query)]
    if not pods:
        raise QuestionError(
            [
                f"NODE: no pod of the node monitoring agent runs on {node}; EKS Auto Mode and "
                "HyperPod have agents of their own, which the node brings along"
            ]
        )
    for pod in pods:
        cluster.delete(POD, names.SYSTEM_NAMESPACE, pod)


# --- Repair veto: an annotation that keeps Karpenter from repairing a node ------------------------
# Source: https://karpenter.sh/v1.15/reference/annotations/


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
