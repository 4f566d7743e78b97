"""Measures of services: requests, tokens and answering pods of their model servers."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from ..kubernetes import KubernetesError
from ..serving import Reading, Traffic, read, traffic
from .measures import SERVICE, Measures
from .settings import Services

if TYPE_CHECKING:
    from ..kubernetes_objects import Object

Fetch = Callable[[str], str]
Readings = dict[str, Reading]
"""Readings by the UID of the pod."""

_AT_A_TIME = 32
_OVER = frozenset({"Succeeded", "Failed"})


class ServicePod(NamedTuple):
    """A pod that answers the requests of a service."""

    service: str  # Namespace and name of the service
    uid: str  # UID of the pod
    path: str | None  # Path of its metrics in the API server; None while it is not ready


class ServicePods:
    """The pods of services, collected from a stream of all pods; other pods are not kept."""

    def __init__(self, services: Services, job_label: str) -> None:
        self._services = services
        self._job_label = job_label
        self.found: list[ServicePod] = []  # The pods of services

    def among(self, pods: "Iterable[Object]") -> "Iterator[Object]":
        """Yield ``pods`` unchanged, and collect the pods of services among them."""
        for pod in pods:
            if (found := self._service_pod(pod)) is not None:
                self.found.append(found)
            yield pod

    def _service_pod(self, pod: "Object") -> ServicePod | None:
        metadata, status, own = pod["metadata"], pod.get("status", {}), self._services
        labels, namespace = metadata.get("labels", {}), metadata.get("namespace", "")
        job = labels.get(self._job_label)
        if job is None or labels.get(own.server_label) != own.server:
            return None
        if namespace not in own.namespaces or labels.get(own.leader_label, "0") != "0":
            return None
        ports = [
            each for container in pod["spec"]["containers"] for each in container.get("ports", ())
        ]
        port = next((each["containerPort"] for each in ports if each.get("name") == own.port), None)
        if port is None or status.get("phase") in _OVER:
            return None
        ready = "deletionTimestamp" not in metadata and any(
            (each["type"], each["status"]) == ("Ready", "True")
            for each in status.get("conditions", ())
        )
        path = f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}:{port}/proxy{own.path}"
        return ServicePod(f"{namespace}/{job}", metadata["uid"], path if ready else None)


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
    do not answer must not take the time of the other measures.

    Args:
        pods: The pods of services.
        services: Settings of the services: namespaces, labels and metrics.
        measures: The sums to add to.
        fetch: Returns the answer at a path of the API server.
        earlier: Readings of the call before.
        now: Returns the time, in seconds since 1970.
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
        readings = {pod.uid: found for pod, found in answers if found is not None}
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
        return read(fetch(pod.path), services.names, at=now())
    except (KubernetesError, OSError) as error:
        # Pods come and go during a call; a metric says how many pods answered.
        print(f"{pod.path}: {error}")
        return None


def _add_traffic(found: Traffic, service: str, weight: float, measures: Measures) -> None:
    """Add the measures of a service; each pod asked stands for ``weight`` pods.

    A service that does not answer adds only its number of pods: zeros would look like an idle
    service.
    """
    key = (SERVICE, service)
    measures.add("service_replicas", found.replicas * weight, key)
    if not found.replicas:
        return
    for measure, value in (
        ("service_waiting", found.waiting),
        ("service_running", found.running),
        ("service_prompt_tokens", found.prompt_tokens_per_second),
        ("service_generated_tokens", found.generated_tokens_per_second),
    ):
        if value is not None:
            measures.add(measure, value * weight, key)
    for measure, value in (
        ("service_cache", found.cache_percent),
        ("service_first_token_half", found.first_token_half),
        ("service_first_token_most", found.first_token_most),
    ):
        if value is not None:
            measures.add(measure, value, key)


def _order(pod: ServicePod) -> int:
    return zlib.crc32(pod.uid.encode())
