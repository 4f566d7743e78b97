"""Function of the fleet metrics; a schedule calls it every few minutes."""

import json
import re
import time
import urllib.request
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nsmallest
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kubernetes import KubernetesApi, KubernetesError, api_of
from ..ledger import MEASURED, day_of
from .idle import IdleJobs
from .ledger import forecasts, idle_spend, record
from .measures import NODE_TYPE, POOL, REASON, TEAM, Key, Measures, log_events
from .nodes import Nodes, measure_missing, measure_nodes
from .paid import Paid
from .pods import Readings, ServicePods, measure_pods, measure_queues, measure_services
from .settings import Exporters, Settings, Topology

if TYPE_CHECKING:
    from ..events import Context
    from ..kubernetes_objects import Object


# --- Missing HyperNodes: Volcano makes them once it looks at all nodes again ----------------------
# Volcano's controllers look at all nodes when a node with a label of the network comes, changes or
# goes, and when a HyperNode goes, at no other time. A HyperNode that the API server refused once is
# missing until then, and gangs spread over groups that look like none. So this function makes a
# HyperNode without nodes, and deletes it again.
#
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/discovery/label/label.go


_API_VERSION = "topology.volcano.sh/v1alpha1"


def measure_hyper_nodes(
    hyper_nodes: "Iterable[Object]", nodes: Nodes, topology: Topology, measures: Measures
) -> int:
    """Return the number of network groups that lack a HyperNode, or whose HyperNode lacks nodes."""
    members: dict[tuple[str, str], int] = {}
    for hyper_node in hyper_nodes:
        labels = hyper_node["metadata"].get("labels", {})
        for label in topology.labels:
            if label in labels:
                members[label, labels[label]] = len(hyper_node["spec"].get("members", ()))
    missing = sum(
        group not in members or (group[0] == topology.labels[0] and members[group] < count)
        for group, count in nodes.groups.items()
    )
    measures.add("hyper_nodes_missing", missing, None)
    return missing


def look_again(api: KubernetesApi, topology: Topology) -> None:
    """Make and delete a HyperNode, so that Volcano's controllers look at all nodes again."""
    name = topology.touched
    member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
    without_nodes = {
        "apiVersion": _API_VERSION,
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": [member]},
    }
    try:
        api.create(topology.hyper_nodes, without_nodes)
    except KubernetesError as error:
        # The previous call left the HyperNode behind.
        if error.status != HTTPStatus.CONFLICT:
            raise
    api.delete(f"{topology.hyper_nodes}/{name}")


# --- GPU measures, of a sample of the fleet's GPU exporters ---------------------------------------


Fetch = Callable[[str], str]

_TIMEOUT_SECONDS = 3
_AT_A_TIME = 32
# A line of the text format: ``name{label="value",…} number``.
# Source: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
_SAMPLE = re.compile(r'^(\w+)\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\} ([-+.\deE]+)', re.MULTILINE)
_NAMESPACE = re.compile(r'(?:^|,)namespace="([^"]*)"')
_POD = re.compile(r'(?:^|,)pod="([^"]*)"')
_USE = "gpu_utilization"


class Sample(NamedTuple):
    """A value of one GPU."""

    measure: str  # Name of the measure
    namespace: str  # Namespace of the pod that uses the GPU; empty for an unused GPU
    pod: str  # Its name
    value: float  # The value


def measure_gpus(
    pods: "Iterable[Object]",
    nodes: Nodes,
    settings: Settings,
    measures: Measures,
    fetch: Fetch | None = None,
    *,
    idle: IdleJobs | None = None,
    now: float = 0,
) -> None:
    """Add the averages of the GPUs by node type and team, over a sample of the exporters.

    The checksums of the exporters' names choose the sample: it depends on no zone or pool, and is
    the same at each call. Where jobs are watched for idleness, their nodes come first, in turn.
    ``fetch`` returns the answer of a URL.
    """
    assert settings.exporters is not None
    first = idle.ask(now) if idle else ()
    running = (pod for pod in pods if pod["status"].get("podIP") and pod["spec"].get("nodeName"))
    asked = nsmallest(settings.exporters.most, running, key=partial(_order, first=first))
    read = partial(_read, exporters=settings.exporters, fetch=fetch or _fetch)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        answers = [*pool.map(read, asked)]
    sums: dict[tuple[str, Key], list[float]] = {}
    for pod, samples in zip(asked, answers, strict=True):
        place = nodes.places.get(pod["spec"]["nodeName"])
        if place is None or samples is None:
            continue
        measures.add("gpu_nodes_measured", 1, None)
        if idle is not None:
            idle.add_answer(
                pod["spec"]["nodeName"],
                ((one.namespace, one.pod, one.value) for one in samples if one.measure == _USE),
            )
        for sample in samples:
            keys: list[Key] = [(NODE_TYPE, place.node_type)]
            if (team := settings.teams.get(sample.namespace)) is not None:
                keys.append((TEAM, team))
            for key in keys:
                sums.setdefault((sample.measure, key), []).append(sample.value)
    for (measure, key), values in sums.items():
        measures.add(measure, sum(values) / len(values), key)


def _read(pod: "Object", exporters: Exporters, fetch: Fetch) -> list[Sample] | None:
    """Return the samples of the exporter in ``pod``; None if it does not answer."""
    url = f"http://{pod['status']['podIP']}:{exporters.port}/metrics"
    try:
        text = fetch(url)
    except OSError as error:
        # Nodes come and go during a call; a metric says how many exporters answered.
        print(f"{url}: {error}")
        return None
    return [*_samples(text, exporters)]


def _samples(text: str, exporters: Exporters) -> Iterator[Sample]:
    for name, labels, number in _SAMPLE.findall(text):
        if name in exporters.metrics:
            measure, times = exporters.metrics[name]
            matches = (label.search(labels) for label in (_NAMESPACE, _POD))
            namespace, pod = (match[1] if match else "" for match in matches)
            yield Sample(measure, namespace, pod, float(number) * times)


def _order(pod: "Object", first: Collection[str]) -> tuple[bool, int]:
    return pod["spec"]["nodeName"] not in first, zlib.crc32(pod["metadata"]["name"].encode())


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_TIMEOUT_SECONDS) as answer:
        return answer.read().decode()


_POD_SECONDS = 3
_MOST_NAMED = 20  # Nodes that a call names in the log
# Rates of services need the readings of the previous call. If Lambda has started the function anew
# since then, there are no readings, and the rates are missing for one call.
_earlier: Readings = {}
# Days whose forecast was written; if Lambda has started the function anew, it is written again.
_forecast_days: set[str] = set()


def on_event(event: Mapping[str, Any], context: "Context") -> None:
    """Write the metrics of one cluster to the log.

    Args:
        event: The settings.
        context: This call.

    Raises:
        Exception: Any error. Then no metric is written, which alarms count as a fault.
    """
    settings = Settings.parse(event)
    now = time.time()
    paid = None if settings.ledger is None else Paid(settings.ledger)
    api = api_of(settings.cluster)
    try:
        _write(measure(api, settings, now=now, earlier=_earlier, paid=paid), settings, now)
    finally:
        if paid is not None and paid.is_whole:
            _record(api, paid, settings, context, now)


def _write(measures: Measures, settings: Settings, now: float) -> None:
    for log_event in log_events(measures, settings, now=now):
        print(json.dumps(log_event, separators=(",", ":")))


def _record(
    api: KubernetesApi, paid: Paid, settings: Settings, context: "Context", now: float
) -> None:
    """Write the ledger; an alarm takes silence for a fault, and the metrics do not stop."""
    try:
        state = record(paid, settings.cluster, context.invoked_function_arn, now=int(now))
    except Exception as error:
        # Reason: whatever it is, the cluster's metrics are worth as much.
        print(f"the ledger is not written: {error!r}")
        return
    if state is None:
        print("the ledger is not written: another call was here meanwhile")
        return
    measures = Measures()
    measures.add("ledger_rows", state.ended, None)
    if paid.idle is not None:
        measures.add("idle_jobs", 0, None, *((TEAM, name) for name in settings.teams.values()))
        for name in paid.idle.idle:
            team = settings.teams.get(name.partition("/")[0])
            measures.add("idle_jobs", 1, None, *([] if team is None else [(TEAM, team)]))
    if settings.rates:
        measures.add("paid_idle", 0, None, *((REASON, name) for name in MEASURED))
        for reason, usd in idle_spend(paid, state, settings.rates):
            measures.add("paid_idle", usd, None, (REASON, reason))
    _write(measures, settings, now)
    if (day := day_of(state.at)) not in _forecast_days:
        _forecast_days.add(day)
        measures = Measures()
        for pool, outlook in forecasts(paid, state):
            # What will surely go unused: the lower end of the interval.
            measures.add("unused_ahead", 100 * outlook.low / outlook.hours, (POOL, pool))
        _write(measures, settings, now)
    if paid.idle is not None:
        paid.idle.act(api, settings.rates, int(now))


def measure(
    api: KubernetesApi,
    settings: Settings,
    *,
    now: float,
    earlier: Readings,
    paid: Paid | None = None,
) -> Measures:
    """Measure a cluster: read every object once, and keep none in memory.

    Readings of services replace those of the call before in ``earlier``.

    Raises:
        KubernetesError: The API server refused.
        OSError: The API server could not be reached.
    """
    measures = Measures()
    nodes = measure_nodes(api.stream("/api/v1/nodes"), settings, measures, now=now, paid=paid)
    for name, why in islice(nodes.uninitialized.items(), _MOST_NAMED):
        print(f"{name}: not initialized long after it joined, {why}")
    measure_missing(nodes, settings, measures, now=now)
    # The API server leaves out the pods of namespaces without accelerators: most pods belong to
    # DaemonSets.
    selector = ",".join(f"metadata.namespace!={name}" for name in settings.left_out)
    pods = api.stream("/api/v1/pods", fieldSelector=selector)
    serving = settings.services and ServicePods(settings.services, settings.job_label)
    measure_pods(serving.among(pods) if serving else pods, nodes, settings, measures, paid)
    if paid is not None:
        paid.is_whole = True
    if settings.queues is not None:
        measure_queues(_objects_if_installed(api, settings.queues), settings, measures, paid)
    if serving is not None:
        later = measure_services(
            serving.pods,
            serving.services,
            measures,
            fetch=lambda path: api.text(path, timeout=_POD_SECONDS),
            earlier=earlier,
            now=time.time,
        )
        earlier.clear()
        earlier.update(later)
    if settings.topology.hyper_nodes:
        _measure_hyper_nodes(api, settings.topology, nodes, measures)
    if settings.exporters is not None:
        exporters = settings.exporters
        exporter_pods = api.stream(exporters.path, labelSelector=exporters.selector)
        idle = None if paid is None else paid.idle
        measure_gpus(exporter_pods, nodes, settings, measures, idle=idle, now=now)
    return measures


def _measure_hyper_nodes(
    api: KubernetesApi, topology: Topology, nodes: Nodes, measures: Measures
) -> None:
    """Count the missing HyperNodes, and have them made; the next call repeats a failed step."""
    hyper_nodes = _objects_if_installed(api, topology.hyper_nodes)
    if not measure_hyper_nodes(hyper_nodes, nodes, topology, measures):
        return
    try:
        look_again(api, topology)
    except (KubernetesError, OSError) as error:
        print(f"HyperNodes are missing, and Volcano cannot be made to look again: {error}")


def _objects_if_installed(api: KubernetesApi, path: str) -> "Iterator[Object]":
    """Yield the objects at ``path``; nothing while their kind is not installed."""
    try:
        yield from api.stream(path)
    except KubernetesError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        print(f"not installed yet: {error}")
