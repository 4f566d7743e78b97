"""Measures of pods, jobs and queues: running and waiting jobs, used and idle accelerators."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from .measures import NODE_TYPE, QUEUE, TEAM, Key, Measures
from .nodes import Nodes
from .quantities import whole
from .settings import Settings

if TYPE_CHECKING:
    from ..kubernetes_objects import Container, Object, Spec, Status

_OVER = frozenset({"Succeeded", "Failed"})
_RUNNING = "Running"
_WAITING_GROUPS = frozenset({"Pending", "Inqueue"})


class _State(IntEnum):
    """State of a job: a job runs as soon as one of its pods runs."""

    WAITING = 0
    RUNNING = 1


def measure_pods(
    pods: "Iterable[Object]", nodes: Nodes, settings: Settings, measures: Measures
) -> None:
    """Add up ``pods`` one by one: used and idle accelerators, running and waiting jobs."""
    _make_known(settings, measures)
    jobs: dict[tuple[str, str], tuple[_State, tuple[Key, ...]]] = {}
    idle = float(nodes.reserved)
    for pod in pods:
        if pod["status"].get("phase") in _OVER:
            continue
        place = nodes.places.get(pod["spec"].get("nodeName", ""))
        requested = _requested_accelerators(pod["spec"], settings)
        if requested == 0:
            continue
        keys = (*_keys(pod, place.node_type if place else None, settings),)
        if place is not None:
            measures.add("accelerators_in_use", requested, *keys)
            idle -= requested if place.idle_counts else 0
        running = pod["status"].get("phase") == _RUNNING
        measures.add("running_pods" if running else "pending_pods", 1, *keys)
        job = _job_name(pod, settings)
        state = _State(running)
        if job not in jobs or state > jobs[job][0]:
            jobs[job] = (state, keys)
    for state, keys in jobs.values():
        measures.add("running_jobs" if state else "waiting_jobs", 1, *keys)
    measures.add("reserved_idle", max(idle, 0), None)
    burst = measures.get("burst_nodes") or 0
    measures.add("reserved_idle_beside_burst", max(idle, 0) if burst else 0, None)


def measure_queues(entries: "Iterable[Object]", settings: Settings, measures: Measures) -> None:
    """Add up admitted and waiting entries of queues: Kueue's Workloads, Volcano's PodGroups.

    Sources:
        https://kueue.sigs.k8s.io/docs/concepts/workload/
        https://volcano.sh/en/docs/podgroup/
    """
    for measure in ("queue_running", "queue_waiting"):
        measures.add(measure, 0, *((QUEUE, name) for name in settings.queue_names))
    for entry in entries:
        volcano = "queue" in entry["spec"]
        queue = entry["spec"].get("queue" if volcano else "queueName", "")
        status: Status = entry.get("status", {})
        state = _group_state(status) if volcano else _workload_state(status)
        if state is not None and queue:
            measures.add("queue_running" if state else "queue_waiting", 1, (QUEUE, queue))


def _make_known(settings: Settings, measures: Measures) -> None:
    node_types: list[Key] = [(NODE_TYPE, name) for name in sorted({*settings.node_types.values()})]
    teams: list[Key] = [(TEAM, name) for name in sorted({*settings.teams.values()})]
    for measure in ("running_pods", "pending_pods", "running_jobs", "waiting_jobs"):
        measures.add(measure, 0, None, *node_types, *teams)
    measures.add("accelerators_in_use", 0, *teams)


def _keys(pod: "Object", node_type: str | None, settings: Settings) -> Iterator[Key]:
    yield None
    if (known := node_type or _wanted_node_type(pod["spec"], settings)) is not None:
        yield NODE_TYPE, known
    if (team := settings.teams.get(pod["metadata"].get("namespace", ""))) is not None:
        yield TEAM, team


def _wanted_node_type(spec: "Spec", settings: Settings) -> str | None:
    """Return the only node type that a waiting pod fits; None if several types fit."""
    wanted = {
        settings.node_types.get(pool, "") for pool in _accepted_values(spec, settings.pool_label)
    }
    wanted |= _accepted_values(spec, settings.node_type_label)
    return wanted.pop() if len(wanted) == 1 else None


def _accepted_values(spec: "Spec", label: str) -> set[str]:
    """Return the values of ``label`` that a pod accepts on its node."""
    if (value := (spec.get("nodeSelector") or {}).get(label)) is not None:
        return {value}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return {
        value
        for term in required.get("nodeSelectorTerms", ())
        for expression in term.get("matchExpressions", ())
        if expression["key"] == label and expression["operator"] == "In"
        for value in expression["values"]
    }


def _requested_accelerators(spec: "Spec", settings: Settings) -> float:
    """Return the accelerators that a pod requests; containers reuse those of init containers."""

    def of(container: "Container") -> float:
        limits = container.get("resources", {}).get("limits", {})
        names = settings.parts.keys() & limits.keys()
        return sum(whole(limits[name]) * settings.parts[name] for name in names)

    containers = sum(of(each) for each in spec["containers"])
    return max([containers, *(of(each) for each in spec.get("initContainers", ()))])


def _job_name(pod: "Object", settings: Settings) -> tuple[str, str]:
    """Return the namespace and name of a pod's job, by label, by owner, or the pod's own."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [metadata]
    label = metadata.get("labels", {}).get(settings.job_label)
    return metadata.get("namespace", ""), label or owners[0]["name"]


def _workload_state(status: "Status") -> _State | None:
    conditions = {
        condition["type"]: condition["status"] for condition in status.get("conditions", ())
    }
    if conditions.get("Finished") == "True":
        return None
    return _State(conditions.get("Admitted") == "True")


def _group_state(status: "Status") -> _State | None:
    phase = status.get("phase", "Pending")
    if phase in _WAITING_GROUPS:
        return _State.WAITING
    return _State.RUNNING if phase == _RUNNING else None
