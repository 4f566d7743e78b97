"""Choice of a job's tier of nodes, by the nodes that are free now."""

from collections.abc import Iterator, Sequence

from ultrascale.catalog.provisioners import installed_provisioners
from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import NODE, POD, Object, condition, label, name
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up, mapping, objects, text
from ultrascale.errors import RefusedError
from ultrascale.plan import names
from ultrascale.plan.jobs import tiers as job_tiers
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.tiers import Choice, Occupancy, Tier

# Ended pods hold nothing, and the scheduler places those without a node.
_HOLDING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_KEEPS_OFF = ("NoSchedule", "NoExecute")


def choose(cluster: Cluster, request: JobRequest, tiers: Sequence[Tier]) -> Choice:
    """Choose the tier of a job of several pods, by the nodes that are free now.

    No node is held for it: other pods may take the nodes first. Then its pods wait, or preempt
    pods of a lower priority.

    Raises:
        ClusterError: The API server refuses, for another reason than a missing right, or cannot be
            reached.
    """
    try:
        seen = {tier.name: occupancy_of(cluster, tier) for tier in tiers}
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        why = f"what is free may not be read ({error.message}), and it comes first"
        return Choice(tier=tiers[0].name, why=f"{why}; --tier chooses another")
    return job_tiers.choose(tiers, request.pods, seen)


def occupancy_of(cluster: Cluster, tier: Tier) -> Occupancy:
    """Return a tier's number of nodes for the job, and how many of them hold a whole pod.

    Raises:
        ClusterError: The API server refuses or cannot be reached.
    """
    selector = {"labelSelector": f"{names.NODE_TYPE_LABEL}={tier.name}"}
    # Pools of one node type may differ in their nodes.
    pools = {pool.pool for pool in tier.pools}
    every = cluster.items(NODE.path(), selector)
    nodes = [node for node in every if label(node, names.POOL_LABEL) in pools]
    usable = {name(node) for node in nodes if _is_usable(node, tier)}
    if usable:
        usable -= {*_occupied_nodes(cluster, tier)}
    return Occupancy(nodes=len(nodes), free=len(usable))


def _is_usable(node: Object, tier: Tier) -> bool:
    """Return whether the scheduler puts new pods on a node, and its provisioner calls it well."""
    if look_up(node, "spec", "unschedulable") or not condition(node, "Ready"):
        return False
    for facts in installed_provisioners().values():
        if facts.well is not None and label(node, facts.well[0]) not in ("", facts.well[1]):
            return False
    own = {(taint.key, taint.effect) for pool in tier.pools for taint in pool.taints}
    taints = (
        (text(taint, "key"), text(taint, "effect")) for taint in objects(node, "spec", "taints")
    )
    return not any(taint not in own and taint[1] in _KEEPS_OFF for taint in taints)


def _occupied_nodes(cluster: Cluster, tier: Tier) -> Iterator[str]:
    """Yield nodes with a pod that uses accelerators; on tiers without any, nodes with any pod."""
    resources = {pool.accelerator for pool in tier.pools} - {None}
    for pod in cluster.items(POD.path(), {"fieldSelector": _HOLDING}):
        if _holds(pod, resources) if resources else not _is_of_each_node(pod):
            yield text(pod, "spec", "nodeName")


def _holds(pod: Object, resources: set[str | None]) -> bool:
    containers = (*objects(pod, "spec", "containers"), *objects(pod, "spec", "initContainers"))
    return any(
        amount(str(quantity))
        for container in containers
        for key, quantity in mapping(container, "resources", "requests").items()
        if key in resources
    )


def _is_of_each_node(pod: Object) -> bool:
    owners = objects(pod, "metadata", "ownerReferences")
    return any(text(owner, "kind") == "DaemonSet" for owner in owners)
