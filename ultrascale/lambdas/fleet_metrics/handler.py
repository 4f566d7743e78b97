"""Function of the fleet metrics; a schedule calls it every few minutes."""

import json
import os
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.session import Session

from ..cluster import look_up
from ..kubernetes import KubernetesApi, KubernetesError, bearer_token, tls_context
from .exporters import measure_gpus
from .hyper_nodes import look_again, measure_hyper_nodes
from .measures import Measures, log_events
from .nodes import Nodes, measure_missing, measure_nodes
from .pods import measure_pods, measure_queues
from .services import Readings, ServicePods, measure_services
from .settings import Settings, Topology

if TYPE_CHECKING:
    from ..events import FleetInput
    from ..kubernetes_objects import Object

_POD_SECONDS = 3
# Rates of services need the readings of the call before. Where Lambda has started the function
# anew since, there are none, and the rates of one call are missing.
_earlier: Readings = {}


def on_event(event: "FleetInput", _context: object = None) -> None:
    """Write the metrics of one cluster to the log.

    Args:
        event: The settings.

    Raises:
        Exception: Any error. Nothing is written then, which alarms count as a fault.
    """
    settings = Settings.parse(event)
    now = time.time()
    measures = measure(_kubernetes(settings.cluster), settings, now=now, earlier=_earlier)
    for log_event in log_events(measures, settings, now=now):
        print(json.dumps(log_event, separators=(",", ":")))


def measure(api: KubernetesApi, settings: Settings, *, now: float, earlier: Readings) -> Measures:
    """Measure a cluster, reading every object once and holding none.

    Args:
        api: The API server.
        settings: The cluster.
        now: The time, in seconds since 1970.
        earlier: Readings of services by the call before; those of this call take their place.

    Raises:
        KubernetesError: The API server refused.
        OSError: It could not be reached.
    """
    measures = Measures()
    nodes = measure_nodes(api.stream("/api/v1/nodes"), settings, measures)
    measure_missing(nodes, settings, measures, now=now)
    # The API server leaves out namespaces without accelerators: most pods are of DaemonSets.
    selector = ",".join(f"metadata.namespace!={name}" for name in settings.left_out)
    pods = api.stream("/api/v1/pods", fieldSelector=selector)
    if settings.services is None:
        measure_pods(pods, nodes, settings, measures)
    else:
        serving = ServicePods(settings.services, settings.job_label)
        measure_pods(serving.among(pods), nodes, settings, measures)
        later = measure_services(
            serving.found,
            settings.services,
            measures,
            fetch=lambda path: api.text(path, timeout=_POD_SECONDS),
            earlier=earlier,
            now=time.time,
        )
        earlier.clear()
        earlier.update(later)
    if settings.queues is not None:
        measure_queues(_of_installed_kind(api, settings.queues), settings, measures)
    if settings.topology.hyper_nodes:
        _measure_hyper_nodes(api, settings.topology, nodes, measures)
    if settings.exporters is not None:
        exporters = settings.exporters
        exporter_pods = api.stream(exporters.path, labelSelector=exporters.selector)
        measure_gpus(exporter_pods, nodes, settings, measures)
    return measures


def _measure_hyper_nodes(
    api: KubernetesApi, topology: Topology, nodes: Nodes, measures: Measures
) -> None:
    """Count the missing HyperNodes, and have them made. What fails here, the next call repeats."""
    found = _of_installed_kind(api, topology.hyper_nodes)
    if not measure_hyper_nodes(found, nodes, topology, measures):
        return
    try:
        look_again(api, topology)
    except (KubernetesError, OSError) as error:
        print(f"HyperNodes are missing, and Volcano cannot be made to look again: {error}")


def _of_installed_kind(api: KubernetesApi, path: str) -> "Iterator[Object]":
    """Yield the objects at ``path``; none where their kind is not installed yet."""
    try:
        yield from api.stream(path)
    except KubernetesError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        print(f"not installed yet: {error}")


def _kubernetes(cluster: str) -> KubernetesApi:
    region = os.environ["AWS_REGION"]
    server = look_up(cluster)
    return KubernetesApi(
        endpoint=server.endpoint,
        context=tls_context(server.certificate_authority),
        token=bearer_token(Session(), cluster=cluster, region=region),
    )
