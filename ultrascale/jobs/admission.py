"""Reasons for which Kueue lets a job wait, by its Workload.

Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/workload_types.go
"""

from collections.abc import Iterable, Sequence

from ultrascale.catalog.kueue import JOB_UID_LABEL
from ultrascale.cluster_api.kinds import KUEUE_WORKLOAD
from ultrascale.cluster_api.objects import Object, condition, label, name, uid
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.errors import RefusedError
from ultrascale.frozen import Frozen
from ultrascale.plan.names import QUEUE_LABEL

_LATE = "PodsReadyTimeout"
_NONE: Object = {}


class HeldBack(Frozen):
    """Reason for which Kueue lets jobs wait."""

    reason: str = ""  # Why they wait, as a sentence without its end; empty where nothing is known
    given_up: bool = False  # Whether Kueue admits one of them no more by itself


def held_back(cluster: Cluster, namespace: str, jobs: Iterable[Object]) -> HeldBack:
    """Return why Kueue lets ``jobs`` wait.

    Nothing is known of a job in no queue, and where the user may not read Workloads.
    """
    workloads = [each for job in jobs for each in _workloads(cluster, namespace, job)]
    return HeldBack(
        reason="; ".join(dict.fromkeys(told for each in workloads if (told := reason(each)))),
        given_up=any(_is_given_up(each) for each in workloads),
    )


def _workloads(cluster: Cluster, namespace: str, job: Object) -> Sequence[Object]:
    if not label(job, QUEUE_LABEL):
        return ()
    query = {"labelSelector": f"{JOB_UID_LABEL}={uid(job)}"}
    try:
        return cluster.collection(KUEUE_WORKLOAD, namespace, query)
    except RefusedError:
        # Its queue and that it is suspended are known all the same.
        return ()


def reason(workload: Object) -> str:
    """Return why Kueue lets the job of ``workload`` wait; empty where it does not."""
    if condition(workload, "Finished"):
        return ""
    if _is_given_up(workload):
        return (
            f"Kueue has given it up{_because(condition(workload, 'Evicted'))}: cancel it, or set "
            f"spec.active of Workload {name(workload)} to true"
        )
    if condition(workload, "Admitted"):
        return _without_pods(workload)
    queue = text(workload, "spec", "queueName")
    if condition(workload, "QuotaReserved"):
        waiting = [
            text(each, "name")
            for each in objects(workload, "status", "admissionChecks")
            if text(each, "state") != "Ready"
        ]
        return f"has its quota in queue {queue}, and waits for {', '.join(waiting) or 'admission'}"
    missing = text(_any(workload, "QuotaReserved"), "message")
    why = f"waits in queue {queue}{f': {missing}' if missing else ''}"
    evicted = _evicted(workload)
    return f"{evicted}; {why}" if evicted else why


def is_waiting(workload: Object) -> bool:
    """Return whether a Workload stands in its queue."""
    return not (
        condition(workload, "Finished")
        or condition(workload, "QuotaReserved")
        or _is_given_up(workload)
    )


def _is_given_up(workload: Object) -> bool:
    inactive = look_up(workload, "spec", "active") is False
    return inactive and not condition(workload, "Finished")


def _without_pods(workload: Object) -> str:
    """Return since when an admitted job waits for its pods: no node may be had for them."""
    ready = _any(workload, "PodsReady")
    if not ready or text(ready, "status") == "True":
        return ""
    flavors = ", ".join(_flavors(workload))
    since = text(condition(workload, "Admitted"), "lastTransitionTime")
    if text(ready, "reason") == "WaitForRecovery":
        return f"runs on {flavors}, and waits for pods that it has lost"
    return (
        f"admitted on {flavors} at {since}, and its pods are not all ready: while nodes are "
        "missing, those that have come are paid for; Kueue ends that after its time limit and "
        "tries the same nodes again"
    )


def _evicted(workload: Object) -> str:
    evicted = condition(workload, "Evicted")
    if not evicted:
        return ""
    if text(evicted, "reason") != _LATE:
        preempted = condition(workload, "Preempted")
        return f"was put back{_because(preempted or evicted)}"
    count = number(workload, "status", "requeueState", "count")
    again = text(workload, "status", "requeueState", "requeueAt")
    times = f" {count} times" if count > 1 else ""
    return (
        f"was put back{times}, as its pods were not all ready in time (nodes did not come, or the "
        f"program did not start){f'; tried again from {again}' if again else ''}"
    )


def _flavors(workload: Object) -> Iterable[str]:
    """Return the flavors of its pods, each once; a flavor is called as its pool."""
    assigned = objects(workload, "status", "admission", "podSetAssignments")
    return dict.fromkeys(
        str(flavor) for each in assigned for flavor in mapping(each, "flavors").values()
    )


def _because(found: Object) -> str:
    told = ": ".join(part for part in (text(found, "reason"), text(found, "message")) if part)
    return f" ({told})" if told else ""


def _any(manifest: Object, kind: str) -> Object:
    """Return a condition whatever its status."""
    found = objects(manifest, "status", "conditions")
    return next((each for each in found if text(each, "type") == kind), _NONE)
