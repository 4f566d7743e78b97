"""Logs of a job's pods, read once or followed through restarts until the job ends."""

import queue
import re
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from ultrascale.cluster_api.objects import POD, Kind, Object, label
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.pods import Pod, by_rank, made_by, place_of, read_pod
from ultrascale.jobs.status import Made, workloads_of
from ultrascale.jobs.workloads import joint_state, read_workload, workload_of
from ultrascale.plan.names import JOB_LABEL, NODE_READER, RANKS_TABLE

# --- Pods of a job by the rank of their node, where the pods compute their ranks themselves -------
# They do so before torchrun starts, and the first of them prints the order.


# Longest output before it: 16,000 indexes are 100 kB.
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
        yield from (task.template for task in workload_of(kind).tasks(manifest))


class NodeRanks:
    """Order of the pods of a job by node rank, read once for each start of its first pod.

    Args:
        cluster: The job's cluster.
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
            ClusterError: The log of the first pod no longer has the order.
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
    """Return the indexes of pods in the order of their node ranks; none from any other line.

    Args:
        line: A line of the log of a job's first pod. A part of one counts as another.
    """
    match = _TABLE.search(line)
    if match is None:
        return ()
    pods = int(match[1])
    order: list[int] = []
    for run in match[2].split(","):
        first, _, last = run.partition("-")
        if not first or len(order) > pods:
            return ()
        order += range(int(first), int(last or first) + 1)
    return tuple(order) if sorted(order) == [*range(pods)] else ()


def _seconds_since(time: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()


# Seconds between two looks at a pod that does not write yet, or was started again.
_LOOK = 2.0
# Tries to read the log of an ended job: its node may be gone for good.
_TRIES = 5
# kubectl follows 5 by default; each is a connection to the API server and on to a node.
MOST_FOLLOWED = 64
_BAD_REQUEST = 400
# The kubelet does not answer.
_SERVER_FAULT = 500


class Choice(Frozen):
    """A choice of one log."""

    index: int = 0  # Index of the pod in the job
    rank: int | None = None  # Rank of the pod's node among those of the job, instead
    pod: str = ""  # Name of the pod, instead
    container: str = ""  # Its container; the first if empty
    previous: bool = False  # Read the log before the last restart
    tail: int | None = None  # Number of lines at the end; None for all

    def __str__(self) -> str:
        return self.pod or str(self.index if self.rank is None else self.rank)


def lines(
    cluster: Cluster, namespace: str, job: str, choice: Choice, *, follow: bool
) -> Iterator[str]:
    """Yield the lines of one pod.

    Followed, it goes on with the pod's successor, and ends with the job.

    Raises:
        ClusterError: There is no such job, pod or log.
    """
    if follow:
        yield from _Follower(cluster, namespace, job, choice).lines()
        return
    made = workloads_of(cluster, namespace, job)
    pod = _chosen(cluster, namespace, job, made, choice, NodeRanks(cluster, namespace))
    if pod is None:
        which = choice.pod or f"of {'index' if choice.rank is None else 'node rank'} {choice}"
        why = ", or its pods have not met yet" if choice.rank else ""
        raise ClusterError(
            f"job {job} has no pod {which} now{why}; `ultrascale status -n {namespace} {job}` "
            "says why"
        )
    yield from (line for _, line in _read(cluster, namespace, pod, choice, follow=False))


def first_of_role(cluster: Cluster, namespace: str, job: str, role: str) -> int:
    """Return the index in its job of the first pod of a role.

    Raises:
        ClusterError: There is no such job, or no such role in it.
    """
    starts, start = dict[str, int](), 0
    for kind, manifest in workloads_of(cluster, namespace, job):
        for task in workload_of(kind).tasks(manifest):
            starts.setdefault(task.role or task.name, start)
            start += task.pods
    if role not in starts:
        raise ClusterError(f"job {job} has no role {role}; it has {', '.join(starts) or 'none'}")
    return starts[role]


def interleaved(
    cluster: Cluster, namespace: str, job: str, choices: Sequence[Choice]
) -> Iterator[tuple[Choice, str]]:
    """Yield the lines of several pods as they come, followed until the job has ended.

    Raises:
        ClusterError: A pod's log cannot be read, or these are more than can be followed at once.
    """
    if len(choices) > MOST_FOLLOWED:
        raise ClusterError(
            f"{len(choices)} pods: at most {MOST_FOLLOWED} can be followed at once; "
            "name some by --rank, or leave --follow out"
        )
    told: queue.SimpleQueue[tuple[Choice, str | ClusterError | None]] = queue.SimpleQueue()

    def tell(choice: Choice) -> None:
        try:
            for line in _Follower(cluster, namespace, job, choice).lines():
                told.put((choice, line))
        except ClusterError as error:
            told.put((choice, error))
        else:
            told.put((choice, None))

    for choice in choices:
        threading.Thread(target=tell, args=(choice,), daemon=True).start()
    left = len(choices)
    while left:
        choice, line = told.get()
        if isinstance(line, ClusterError):
            raise line
        if line is None:
            left -= 1
        else:
            yield choice, line


class _Follower:
    """Reads one pod's log, and then its successor's."""

    def __init__(self, cluster: Cluster, namespace: str, job: str, choice: Choice) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._job = job
        self._choice = choice
        self._ranks = NodeRanks(cluster, namespace)
        # The last time stamp, and the number of lines with it.
        self._last = ""
        self._same = 0

    def lines(self) -> Iterator[str]:
        reading: tuple[str, int] | None = None
        complete: tuple[str, int] | None = None
        tries = 0
        while True:
            made = workloads_of(self._cluster, self._namespace, self._job)
            state = joint_state(read_workload(kind, manifest) for kind, manifest in made)
            pod = _chosen(
                self._cluster, self._namespace, self._job, made, self._choice, self._ranks
            )
            done = state.array is not None and pod is not None and pod.state == "succeeded"
            # The other indexes of an array may take hours longer.
            ended = state.result is not None or done
            over = pod is None or pod.state in ("succeeded", "failed")
            if pod and pod.state not in ("pending", "scheduled"):
                run = (pod.uid, pod.restarts)
                if reading not in (None, run):
                    yield f"--- {pod.name} was started again"
                    # A new log, perhaps by the clock of another node.
                    self._last, self._same = "", 0
                reading = run
                if run != complete and (yield from self._new_lines(pod)) and over:
                    complete = run
            if ended and over:
                if pod is None or reading == complete:
                    return
                tries += 1
                if tries == _TRIES:
                    raise ClusterError(f"the rest of the log of {pod.name} cannot be read")
            time.sleep(_LOOK)

    def _new_lines(self, pod: Pod) -> Generator[str, None, bool]:
        """Yield the lines after the last one; return whether the log was read to its end."""
        skip = self._same
        try:
            for stamp, line in _read(
                self._cluster, self._namespace, pod, self._choice, follow=True, since=self._last
            ):
                if stamp < self._last:
                    continue
                if stamp == self._last and skip:
                    skip -= 1
                    continue
                self._same = self._same + 1 if stamp == self._last else 1
                self._last = stamp
                yield line
        except RefusedError as error:
            # Its container does not run yet, or it or its node is gone.
            if error.status not in (_BAD_REQUEST, NOT_FOUND) and error.status < _SERVER_FAULT:
                raise
            return False
        except ClusterError:
            # The connection broke: the next look shows whether the pod or the server is gone.
            return False
        return True


def _chosen(
    cluster: Cluster, namespace: str, job: str, made: Made, choice: Choice, ranks: NodeRanks
) -> Pod | None:
    """Return the chosen pod; None where it does not exist now.

    Raises:
        ClusterError: The job never has such a pod.
    """
    if choice.pod:
        manifest = cluster.find(POD.path(namespace, choice.pod))
        if manifest is not None and label(manifest, JOB_LABEL) != job:
            raise ClusterError(f"pod {choice.pod} is none of job {job}")
        return read_pod(manifest, container=choice.container) if manifest else None
    index = choice.index
    if choice.rank is not None:
        of_rank: int | None = choice.rank
        if choice.rank and are_computed(made):
            first = _pod_of_index(cluster, namespace, job, made, 0, container="")
            of_rank = ranks.index(choice.rank, first)
        if of_rank is None:
            return None
        index = of_rank
    return _pod_of_index(cluster, namespace, job, made, index, container=choice.container)


def _pod_of_index(
    cluster: Cluster, namespace: str, job: str, made: Made, index: int, *, container: str
) -> Pod | None:
    try:
        place = place_of(index, made)
    except LookupError:
        wanted = joint_state(read_workload(kind, manifest) for kind, manifest in made).wanted
        raise ClusterError(f"job {job} has {wanted} pods, from index 0 on") from None
    selector = ",".join(f"{key}={value}" for key, value in {JOB_LABEL: job, **place}.items())
    manifests = cluster.items(POD.path(namespace), {"labelSelector": selector})
    listed = (read_pod(manifest, container=container) for manifest in manifests)
    pods = by_rank(made_by(listed, (manifest for _, manifest in made)), made)
    if place:
        # An Indexed Job keeps the pods of a failed index: the newest is meant.
        return max(pods, key=lambda pod: pod.created, default=None)
    return pods[index] if index < len(pods) else None


def _read(
    cluster: Cluster,
    namespace: str,
    pod: Pod,
    choice: Choice,
    *,
    follow: bool,
    since: str = "",
) -> Iterator[tuple[str, str]]:
    query = {"timestamps": "true", "container": choice.container or pod.container}
    if choice.previous:
        query["previous"] = "true"
    if follow:
        query["follow"] = "true"
    if since:
        query["sinceTime"] = since
    elif choice.tail is not None:
        query["tailLines"] = str(choice.tail)
    path = f"{POD.path(namespace, pod.name)}/log"
    with cluster.stream(path, query) as stream:
        for raw in stream.lines():
            stamp, _, line = raw.decode(errors="replace").partition(" ")
            yield stamp, line
