"""Measures of pods, jobs, queues and services: running, waiting, idle, requests and tokens."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from ..kubernetes import KubernetesError
from ..serving import MetricNames, Reading, Traffic, read, traffic
from .measures import NODE_TYPE, QUEUE, SERVICE, TEAM, Key, Measures, whole
from .nodes import Nodes, conditions_of
from .paid import Owner, Paid
from .settings import Services, Settings

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
    pods: "Iterable[Object]",
    nodes: Nodes,
    settings: Settings,
    measures: Measures,
    paid: Paid | None = None,
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
        if paid is not None:
            _add_owner(pod, job, requested, settings, paid)
        state = _State(running)
        if job not in jobs or state > jobs[job][0]:
            jobs[job] = (state, keys)
    for state, keys in jobs.values():
        measures.add("running_jobs" if state else "waiting_jobs", 1, *keys)
    measures.add("reserved_idle", max(idle, 0), None)
    burst = measures.get("burst_nodes") or 0
    measures.add("reserved_idle_beside_burst", max(idle, 0) if burst else 0, None)


def _add_owner(
    pod: "Object", job: tuple[str, str], requested: float, settings: Settings, paid: Paid
) -> None:
    node, metadata = pod["spec"].get("nodeName"), pod["metadata"]
    if paid.idle is not None:
        paid.idle.add_pod(pod, requested)
    if node is None:
        paid.add_waiting(job, requested, _usable_pools(pod["spec"], settings))
        return
    namespace, labels = metadata.get("namespace", ""), metadata.get("labels", {})
    queue = next((labels[key] for key in paid.settings.queues if key in labels), "")
    state = "running" if pod["status"].get("phase") == _RUNNING else "starting"
    owner = Owner(state, namespace, settings.teams.get(namespace, ""), queue, job[1])
    paid.add_pod(node, owner, requested, ends="deletionTimestamp" in metadata)


def _usable_pools(spec: "Spec", settings: Settings) -> Iterator[str]:
    """Yield the pools that a waiting pod could use."""
    limits = (one.get("resources", {}).get("limits", {}) for one in spec["containers"])
    # Nodes that offer devices of Neuron offer their cores as well.
    vendors = {_vendor(name) for own in limits for name in own.keys() & settings.parts.keys()}
    pools, types = (
        _accepted_values(spec, label) for label in (settings.pool_label, settings.node_type_label)
    )
    for pool, offers in settings.initialization.offers.items():
        if (
            vendors <= {*map(_vendor, offers)}
            and (not pools or pool in pools)
            and (not types or settings.node_types.get(pool) in types)
        ):
            yield pool


def _vendor(resource: str) -> str:
    return resource.partition("/")[0]


def _add_waiting(entry: "Object", settings: Settings, paid: Paid) -> None:
    """Add a waiting entry of a queue: its accelerators, and the pools that it could use."""
    spec, job = entry["spec"], _job_name(entry, settings)
    for role in spec.get("podSets", ()) if spec.get("active", True) else ():
        template = role.get("template", {})
        labels = template.get("metadata", {}).get("labels", {})
        name = job[0], labels.get(settings.job_label, job[1])
        pod = template.get("spec")
        if pod is not None and (requested := _requested_accelerators(pod, settings)):
            amount = role.get("count", 1) * requested
            paid.add_waiting(name, amount, _usable_pools(pod, settings), entry=True)
    least = spec.get("minResources", {})
    if devices := least.keys() & settings.parts.keys():
        one: Container = {"resources": {"limits": {name: least[name] for name in devices}}}
        gang: Spec = {"containers": [one]}
        amount = _requested_accelerators(gang, settings)
        paid.add_waiting(job, amount, _usable_pools(gang, settings), entry=True)


def measure_queues(
    entries: "Iterable[Object]",
    settings: Settings,
    measures: Measures,
    paid: Paid | None = None,
) -> None:
    """Add up admitted and waiting entries of queues: Kueue's Workloads, Volcano's PodGroups.

    Sources:
        https://kueue.sigs.k8s.io/docs/concepts/workload/
        https://volcano.sh/en/docs/podgroup/
    """
    measures.add("pods_held", 0, None)
    for measure in ("queue_running", "queue_waiting"):
        measures.add(measure, 0, *((QUEUE, name) for name in settings.queue_names))
    for entry in entries:
        volcano = "queue" in entry["spec"]
        queue = entry["spec"].get("queue" if volcano else "queueName", "")
        status: Status = entry.get("status", {})
        state = _group_state(status) if volcano else _workload_state(status)
        if state is _State.RUNNING and not volcano and _waits_for_lost_pods(status):
            held = sum(role.get("count", 1) for role in entry["spec"].get("podSets", ()))
            measures.add("pods_held", held, None)
        if paid is not None and state is _State.WAITING:
            _add_waiting(entry, settings, paid)
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

    return max(sum(map(of, spec["containers"])), *map(of, spec.get("initContainers", ())), 0)


def _job_name(pod: "Object", settings: Settings) -> tuple[str, str]:
    """Return the namespace and name of a pod's job, by label, by owner, or the pod's own."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [metadata]
    label = metadata.get("labels", {}).get(settings.job_label)
    return metadata.get("namespace", ""), label or owners[0]["name"]


def _workload_state(status: "Status") -> _State | None:
    conditions = conditions_of(status)
    if conditions.get("Finished") == "True":
        return None
    return _State(conditions.get("Admitted") == "True")


def _waits_for_lost_pods(status: "Status") -> bool:
    """Return whether an admitted Workload has run, and lacks pods now.

    Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/workload_types.go
    """
    return any(
        condition["type"] == "PodsReady"
        and condition["status"] == "False"
        and condition.get("reason") == "WaitForRecovery"
        for condition in status.get("conditions", ())
    )


def _group_state(status: "Status") -> _State | None:
    phase = status.get("phase", "Pending")
    if phase in _WAITING_GROUPS:
        return _State.WAITING
    return _State.RUNNING if phase == _RUNNING else None


# --- Measures of services: requests, tokens and answering pods of their model servers -------------


Fetch = Callable[[str], str]
Readings = dict[str, Reading]
"""Readings by the UID of the pod."""

_AT_A_TIME = 32


class ServicePod(NamedTuple):
    """A pod that answers the requests of a service."""

    service: str  # Namespace and name of the service
    uid: str  # UID of the pod
    path: str | None  # Path of its metrics in the API server; None while it is not ready


class ServicePods:
    """The pods of services, collected from a stream of all pods; other pods are not kept.

    Attributes:
        services: Settings of the services.
        pods: Their pods.
    """

    def __init__(self, services: Services, job_label: str) -> None:
        self.services = services
        self.pods: list[ServicePod] = []
        self._job_label = job_label

    def among(self, pods: "Iterable[Object]") -> "Iterator[Object]":
        """Yield ``pods`` unchanged, and collect the pods of services among them."""
        for pod in pods:
            if (answers := self._service_pod(pod)) is not None:
                self.pods.append(answers)
            yield pod

    def _service_pod(self, pod: "Object") -> ServicePod | None:
        metadata, status, services = pod["metadata"], pod.get("status", {}), self.services
        labels, namespace = metadata.get("labels", {}), metadata.get("namespace", "")
        job = labels.get(self._job_label)
        if job is None or labels.get(services.server_label) != services.server:
            return None
        leads = labels.get(services.leader_label, "0") == "0"
        if namespace not in services.namespaces or not leads:
            return None
        ports = [
            port["containerPort"]
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
            if port.get("name") == services.port
        ]
        if not ports or status.get("phase") in _OVER:
            return None
        ready = conditions_of(status).get("Ready") == "True"
        ready = ready and "deletionTimestamp" not in metadata
        path = f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}:{ports[0]}/proxy"
        return ServicePod(
            f"{namespace}/{job}", metadata["uid"], path + services.path if ready else None
        )


def measure_services(
    pods: Iterable[ServicePod],
    services: Services,
    measures: Measures,
    *,
    fetch: Fetch,
    earlier: Mapping[str, Reading],
    now: Callable[[], float],
) -> Readings:
    """Add the traffic of services, and return the readings for the next call's rates.

    Among many pods, the same sample is asked at each call and stands for the other pods. Pods that
    do not answer must not take the time of the other measures. ``fetch`` returns the answer at a
    path of the API server.
    """
    by_service: dict[str, list[ServicePod]] = {}
    for pod in pods:
        by_service.setdefault(pod.service, []).append(pod)
    most = max(services.most // max(len(by_service), 1), 1)
    ready = {name: [pod for pod in own if pod.path is not None] for name, own in by_service.items()}
    asked = {name: nsmallest(most, own, key=_order) for name, own in ready.items()}
    ask = partial(_reading, services=services, fetch=fetch, now=now)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        every = [pod for own in asked.values() for pod in own]
        answers = zip(every, pool.map(ask, every), strict=True)
        readings = {pod.uid: reading for pod, reading in answers if reading is not None}
    for name, own in asked.items():
        later = {pod.uid: readings[pod.uid] for pod in own if pod.uid in readings}
        weight = len(ready[name]) / max(len(own), 1)
        _add_traffic(traffic(later, earlier), name, weight, measures)
    return readings


def _reading(
    pod: ServicePod, services: Services, fetch: Fetch, now: Callable[[], float]
) -> Reading | None:
    assert pod.path is not None
    try:
        return read(fetch(pod.path), MetricNames(**services.names), at=now())
    except (KubernetesError, OSError) as error:
        # Pods come and go during a call; a metric says how many pods answered.
        print(f"{pod.path}: {error}")
        return None


def _add_traffic(total: Traffic, service: str, weight: float, measures: Measures) -> None:
    """Add the measures of a service; each pod asked stands for ``weight`` pods.

    A service that does not answer adds only its number of pods: zeros would look like an idle
    service.
    """
    key = (SERVICE, service)
    measures.add("service_replicas", total.replicas * weight, key)
    if not total.replicas:
        return
    for measure, value, times in (
        ("service_waiting", total.waiting, weight),
        ("service_running", total.running, weight),
        ("service_prompt_tokens", total.prompt_tokens_per_second, weight),
        ("service_generated_tokens", total.generated_tokens_per_second, weight),
        ("service_cache", total.cache_percent, 1),
        ("service_first_token_half", total.first_token_half, 1),
        ("service_first_token_most", total.first_token_most, 1),
    ):
        if value is not None:
            measures.add(measure, value * times, key)


def _order(pod: ServicePod) -> int:
    return zlib.crc32(pod.uid.encode())
