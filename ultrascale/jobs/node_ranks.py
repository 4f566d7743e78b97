"""Pods of a job by the rank of their node, where the pods compute their ranks themselves.

They do so before torchrun starts, and the first of them tells its log the order.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from ultrascale.cluster_api.kinds import JOBSET, POD, VOLCANO_JOB, Kind
from ultrascale.cluster_api.objects import Object
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import mapping, objects, text
from ultrascale.errors import ClusterError
from ultrascale.jobs.pods import Pod
from ultrascale.plan.names import NODE_READER, RANKS_TABLE

# What a container prints before: 16,000 indexes are 100 kB.
_HEAD_BYTES = "262144"
# The pods wait that long for each other. Later the beginning of the log may be gone: the kubelet
# keeps its last megabytes.
_MEETING_SECONDS = 1800.0
_TABLE = re.compile(re.escape(RANKS_TABLE).replace(r"\{\}", r"(\d+)") + r"([\d,-]+)")
_RUNNING = ("running", "terminating", "succeeded", "failed")


def are_computed(made: Iterable[tuple[Kind, Object]]) -> bool:
    """Return whether the pods of the workloads of a job compute the ranks of their nodes."""
    volumes = (volume for pod in _pods(made) for volume in objects(pod, "volumes"))
    return any(text(volume, "name") == NODE_READER for volume in volumes)


def _pods(made: Iterable[tuple[Kind, Object]]) -> Iterator[Object]:
    """Yield the specifications of the pods of a job that starts all of its pods together."""
    for kind, manifest in made:
        if kind == VOLCANO_JOB:
            for task in objects(manifest, "spec", "tasks"):
                yield mapping(task, "template", "spec")
        elif kind == JOBSET:
            for role in objects(manifest, "spec", "replicatedJobs"):
                yield mapping(role, "template", "spec", "template", "spec")


class NodeRanks:
    """Order of the pods of a job by node rank, read once for each start of its first pod.

    Args:
        cluster: Where the job runs.
        namespace: Its namespace.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._start: tuple[str, int] | None = None
        self._order: tuple[int, ...] | None = None

    def index(self, rank: int, first: Pod | None) -> int | None:
        """Return the index of the pod whose node has ``rank``; None before the pods have met.

        Args:
            rank: Rank of a node of a job whose ranks `are_computed`.
            first: The pod of index 0, which has rank 0 in every order.

        Raises:
            ClusterError: The log of the first pod no longer tells.
        """
        if rank == 0:
            return rank
        if first is None or first.state not in _RUNNING:
            return None
        start = first.uid, first.restarts
        if start != self._start:
            self._order = self._read(first)
            self._start = start if self._order is not None else None
        order = self._order
        if order is None:
            return None
        return order[rank] if rank < len(order) else rank

    def _read(self, first: Pod) -> tuple[int, ...] | None:
        path = POD.path(self._namespace, first.name)
        asked = {"container": first.container, "timestamps": "true", "limitBytes": _HEAD_BYTES}
        with self._cluster.stream(f"{path}/log", asked) as stream:
            for line in stream.lines():
                if order := read_table(line.decode(errors="replace")):
                    return order
        states = objects(self._cluster.find(path) or {}, "status", "containerStatuses")
        begun = (text(status, "state", "running", "startedAt") for status in states)
        if any(_seconds_since(time) > _MEETING_SECONDS for time in begun if time):
            raise ClusterError(
                f"the log of {first.name} no longer tells the ranks of nodes, which it did at its "
                "beginning: name the pod by --index or --pod"
            )
        return None


def read_table(line: str) -> tuple[int, ...]:
    """Return the indexes of pods in the order of their node ranks; none of another line.

    Args:
        line: A line of the log of a job's first pod. A part of one counts as another.
    """
    found = _TABLE.search(line)
    if found is None:
        return ()
    pods = int(found[1])
    order: list[int] = []
    for run in found[2].split(","):
        first, _, last = run.partition("-")
        if not first or len(order) > pods:
            return ()
        order += range(int(first), int(last or first) + 1)
    return tuple(order) if sorted(order) == [*range(pods)] else ()


def _seconds_since(time: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
