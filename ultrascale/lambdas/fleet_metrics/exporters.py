"""GPU measures, of a sample of the fleet's GPU exporters."""

import re
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from .measures import NODE_TYPE, TEAM, Key, Measures
from .nodes import Nodes
from .settings import Exporters, Settings

if TYPE_CHECKING:
    from ..kubernetes_objects import Object

Fetch = Callable[[str], str]

_TIMEOUT_SECONDS = 3
_AT_A_TIME = 32
# A line of the text format: ``name{label="value",…} number``.
# Source: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
_SAMPLE = re.compile(r'^(\w+)\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\} ([-+.\deE]+)', re.MULTILINE)
_NAMESPACE = re.compile(r'(?:^|,)namespace="([^"]*)"')


class Sample(NamedTuple):
    """A value of one GPU.

    Attributes:
        measure: Name of the measure.
        namespace: Namespace of the pod that uses the GPU; empty where none does.
        value: The value.
    """

    measure: str
    namespace: str
    value: float


def measure_gpus(
    pods: "Iterable[Object]",
    nodes: Nodes,
    settings: Settings,
    measures: Measures,
    fetch: Fetch | None = None,
) -> None:
    """Add the averages of the GPUs by node type and team, over a sample of the exporters.

    The checksums of their names choose the sample: it depends on no zone or pool, and is the same
    at each call.

    Args:
        pods: Pods of the exporters.
        nodes: The nodes.
        settings: The cluster.
        measures: The sums to add to.
        fetch: Returns the answer of a URL.
    """
    assert settings.exporters is not None
    running = (pod for pod in pods if pod["status"].get("podIP") and pod["spec"].get("nodeName"))
    asked = nsmallest(settings.exporters.most, running, key=_order)
    read = Reader(settings.exporters, fetch or _fetch)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        answers = [*pool.map(read, asked)]
    sums: dict[tuple[str, Key], list[float]] = {}
    for pod, samples in zip(asked, answers, strict=True):
        place = nodes.places.get(pod["spec"]["nodeName"])
        if place is None or samples is None:
            continue
        measures.add("gpu_nodes_measured", 1, None)
        for sample in samples:
            keys: list[Key] = [(NODE_TYPE, place.node_type)]
            if (team := settings.teams.get(sample.namespace)) is not None:
                keys.append((TEAM, team))
            for key in keys:
                sums.setdefault((sample.measure, key), []).append(sample.value)
    for (measure, key), values in sums.items():
        measures.add(measure, sum(values) / len(values), key)


class Reader:
    """Reads an exporter's answer."""

    def __init__(self, exporters: Exporters, fetch: Fetch) -> None:
        self._exporters = exporters
        self._fetch = fetch

    def __call__(self, pod: "Object") -> list[Sample] | None:
        """Return the samples of the exporter in ``pod``; None where it does not answer."""
        url = f"http://{pod['status']['podIP']}:{self._exporters.port}/metrics"
        try:
            text = self._fetch(url)
        except OSError as error:
            # Nodes come and go meanwhile; a metric says how many answered.
            print(f"{url}: {error}")
            return None
        return [*self._samples(text)]

    def _samples(self, text: str) -> Iterator[Sample]:
        for name, labels, number in _SAMPLE.findall(text):
            if name in self._exporters.metrics:
                measure, times = self._exporters.metrics[name]
                namespace = _NAMESPACE.search(labels)
                yield Sample(measure, namespace[1] if namespace else "", float(number) * times)


def _order(pod: "Object") -> int:
    return zlib.crc32(pod["metadata"]["name"].encode())


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_TIMEOUT_SECONDS) as answer:
        return answer.read().decode()
