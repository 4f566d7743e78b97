"""The queues of the cluster file as Kueue's objects.

All fields but `stopPolicy` are written, so that no version of Kueue sets other defaults; a queue
that a user holds by `stopPolicy` stays held when it is applied again.

Sources:
    https://kueue.sigs.k8s.io/docs/concepts/
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/apis/kueue/v1beta2
"""

from ultrascale.documents import Json
from ultrascale.plan.model import (
    ClusterQueuePlan,
    CohortPlan,
    FlavorPlan,
    ResourceGroupPlan,
    Taint,
    TopologyLevelsPlan,
    WorkloadPriorityPlan,
)
from ultrascale_k8s._admission import NAMESPACE_LABEL

API_VERSION = "kueue.x-k8s.io/v1beta2"

# Largest value of an int32.
_LEAST_PRIORITY = -(2**31)

Manifest = dict[str, Json]


def topology(plan: TopologyLevelsPlan) -> Manifest:
    """Return a Topology with levels from the broadest to the narrowest."""
    return _object("Topology", plan.name, {"levels": [{"nodeLabel": key} for key in plan.levels]})


def resource_flavor(plan: FlavorPlan) -> Manifest:
    """Return the ResourceFlavor of a pool.

    Kueue adds the flavor's labels to pods as node selectors, and its tolerations.
    """
    spec: Manifest = {"nodeLabels": dict(plan.node_labels)}
    if plan.tolerated:
        spec["tolerations"] = [_toleration(taint) for taint in plan.tolerated]
    if plan.topology is not None:
        spec["topologyName"] = plan.topology
    return _object("ResourceFlavor", plan.name, spec)


def cohort(plan: CohortPlan) -> Manifest:
    """Return the Cohort, with the quota that its queues may borrow."""
    return _object("Cohort", plan.name, {"resourceGroups": [_group(each) for each in plan.groups]})


def cluster_queue(plan: ClusterQueuePlan, *, cohort: str) -> Manifest:
    """Return the ClusterQueue of a queue.

    A job takes free quota of the first flavor, its queue's own or borrowed, then of the next
    flavor. If no flavor has enough, it preempts jobs of lower priority in its own queue, and jobs
    that borrow its queue's guarantee, if the guarantee is all that it needs.

    Sources:
        https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavorfungibility
        https://kueue.sigs.k8s.io/docs/concepts/preemption/

    Args:
        plan: The queue.
        cohort: The Cohort of all queues.
    """
    here: Json = {
        "key": NAMESPACE_LABEL,
        "operator": "In",
        "values": list(plan.namespaces),
    }
    spec: Manifest = {
        "cohortName": cohort,
        "namespaceSelector": {"matchExpressions": [here]},
        # A large waiting job does not keep smaller jobs from quota that is too small for it.
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            # With `Never`, a job beyond its queue's guarantee could preempt no job, not even in its
            # own queue. No job of another queue has a priority below this one.
            # Source: canPreemptWhileBorrowing of
            # https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
            "borrowWithinCohort": {
                "policy": "LowerPriority",
                "maxPriorityThreshold": _LEAST_PRIORITY,
            },
        },
        "resourceGroups": [_group(group) for group in plan.groups],
    }
    if plan.fair_share_weight is not None:
        spec["fairSharing"] = {"weight": str(plan.fair_share_weight)}
    return _object("ClusterQueue", plan.name, spec)


def local_queues(plan: ClusterQueuePlan) -> list[Manifest]:
    """Return the LocalQueues of a queue, one in each of its namespaces; jobs name a LocalQueue."""
    return [
        _object("LocalQueue", plan.name, {"clusterQueue": plan.name}, namespace=namespace)
        for namespace in plan.namespaces
    ]


def workload_priority(plan: WorkloadPriorityPlan) -> Manifest:
    """Return a WorkloadPriorityClass; its fields are outside of a ``spec``."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": plan.name},
        "value": plan.value,
    }


def _object(kind: str, name: str, spec: Manifest, *, namespace: str | None = None) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _group(plan: ResourceGroupPlan) -> Json:
    flavors: list[Json] = []
    for quota in plan.quotas:
        # Quantities as text: the API server would return a number as text, which would differ.
        resource: Manifest = {"name": plan.resource, "nominalQuota": str(quota.nominal)}
        if quota.borrowing_limit is not None:
            resource["borrowingLimit"] = str(quota.borrowing_limit)
        flavors.append({"name": quota.flavor, "resources": [resource]})
    return {"coveredResources": [plan.resource], "flavors": flavors}


def _toleration(taint: Taint) -> Json:
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
