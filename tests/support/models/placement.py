"""Pools whose nodes take the pods of a job, by the model of the scheduler."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.jobs import pod_spec
from tests.support.models.planned_nodes import cluster_of
from tests.support.models.scheduler import Node, Pod, admits
from tests.support.pools import as_text, loads_own
from ultrascale import plan
from ultrascale.jobs import JobManifests
from ultrascale.plan.model import ClusterPlan


@dataclass(frozen=True)
class Kind:
    """A kind of node, of which a cluster has one or many."""

    pool: str
    node: Node

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    def takes(self, spec: Mapping[str, Any]) -> bool:
        """Return whether a pod may run here, by its affinity to nodes and its tolerations.

        What it asks of other pods says how they spread, and not on which kinds of nodes.
        """
        own = {key: value for key, value in spec.items() if key != "topologySpreadConstraints"}
        affinity = {"nodeAffinity": spec.get("affinity", {}).get("nodeAffinity", {})}
        pod = Pod("pod", {**own, "affinity": affinity}, priority=0, preempts=False)
        return admits(pod, self.node)


def nodes(cluster: ClusterPlan) -> Iterator[Kind]:
    """Yield a node of each kind that a cluster's node groups, HyperPod and NodePools make."""
    scheduler = cluster_of(cluster)
    groups = {node.name.rpartition("/")[0]: node for node in scheduler.nodes}
    for node in (*groups.values(), *(each.node for each in scheduler.launchers)):
        yield Kind(node.labels["ultrascale.dev/pool"], node)


def plan_of(document: dict[str, Any]) -> ClusterPlan:
    return plan.plan_cluster(loads_own(as_text(document)))


def pools_wanted(job: JobManifests) -> list[str]:
    affinity = pod_spec(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (values,) = (
        rule["values"] for rule in term["matchExpressions"] if rule["key"] == "ultrascale.dev/pool"
    )
    return values
