"""Placement of a job's pods: affinity and tolerations against the nodes of a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.jobs import pod_spec
from tests.support.pools import as_text, loads_own
from ultrascale import plan
from ultrascale.catalog import hyperpod
from ultrascale.jobs import JobManifests
from ultrascale.plan.model import ClusterPlan


class Node:
    """A node, as far as the scheduler looks at it."""

    def __init__(self, pool: str, labels: Mapping[str, str], taints: Any) -> None:
        self.pool = pool
        self.labels = dict(labels)
        self.taints = [(taint.key, taint.value, taint.effect) for taint in taints]

    def takes(self, spec: Mapping[str, Any]) -> bool:
        """Return whether a pod may run here, by its affinity and its tolerations."""
        affinity = spec["affinity"]["nodeAffinity"]
        terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        fits = any(
            all(self.labels.get(rule["key"]) in rule["values"] for rule in term["matchExpressions"])
            for term in terms
        )
        return fits and all(
            any(tolerates(each, taint) for each in spec.get("tolerations", []))
            for taint in self.taints
        )


def tolerates(toleration: Mapping[str, str], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    return (
        toleration["key"] == key
        and toleration.get("effect", effect) == effect
        and (toleration["operator"] == "Exists" or toleration["value"] == value)
    )


def nodes(cluster: ClusterPlan) -> Iterator[Node]:
    """Yield a node of each kind that a cluster's node groups and NodePools make."""
    for pool in (*cluster.system_pools, *cluster.pools):
        if pool.provisioner in ("managed-node-group", "self-managed"):
            yield Node(pool.pool, pool.labels, pool.taints)
        if pool.provisioner == "hyperpod":
            well = {hyperpod.HEALTH_STATUS: hyperpod.HEALTHY}
            yield Node(pool.pool, {**pool.labels, **well}, pool.taints)
    for node_pool in cluster.nodes.node_pools:
        yield Node(node_pool.pool, node_pool.labels, node_pool.taints)


def pools_of(job: JobManifests, cluster: ClusterPlan) -> set[str]:
    return {node.pool for node in nodes(cluster) if node.takes(pod_spec(job))}


def plan_of(document: dict[str, Any]) -> ClusterPlan:
    return plan.plan_cluster(loads_own(as_text(document)))


def pools_wanted(job: JobManifests) -> list[str]:
    affinity = pod_spec(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (values,) = (
        rule["values"] for rule in term["matchExpressions"] if rule["key"] == "ultrascale.dev/pool"
    )
    return values
