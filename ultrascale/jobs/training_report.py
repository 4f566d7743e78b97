"""Progress and failures of a training job, from its first pod's log and its pods' ends.

Our programs print them on rank 0, a line each: ``progress step=120/1000 loss=2.31 …``, and at each
start ``failed at=… node=… error="…"`` for the failure of the start before. The pods of that start
may be gone: a controller deletes them.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

from ultrascale import config
from ultrascale.cluster_api.objects import POD
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen
from ultrascale.jobs.pods import Pod
from ultrascale.jobs.status import JobStatus

_PROGRESS, _FAILED, _STRAGGLER = "progress", "failed", "straggler"
_FIELD = re.compile(r"[a-z_]+=")
# torchrun's, before lines that it writes to a file as well.
_PREFIX = re.compile(r"^\[\w+\]:")
# An interval of progress may have hundreds of lines of other libraries.
_TAIL_LINES = "500"
# Longest output of a program before its first steps.
_HEAD_BYTES = "262144"
_MOST_FAILURES = 8
_MOST_STRAGGLERS = 8
_WITH_A_LOG = ("running", "terminating", "succeeded", "failed")


class PodEnd(Frozen):
    """The last words of a container that has ended."""

    pod: str  # Its pod
    node: str  # Its node
    message: str  # Its termination message, such as a traceback


class TrainingReport(Frozen):
    """Progress and failures of a job."""

    progress: Mapping[str, str]  # Fields of the last line of progress; empty where there is none
    # Fields of each earlier failure that the program knows of at its start.
    failures: tuple[Mapping[str, str], ...]
    ends: tuple[PodEnd, ...]  # Last words of containers that have ended
    # Fields of the last report of each slow node.
    stragglers: tuple[Mapping[str, str], ...] = ()
    # Command that prints errors of pods that restarts have deleted; empty where there were none, or
    # their logs are not kept.
    earlier_logs: str = ""


def report_of(
    cluster: Cluster, job: JobStatus, file: config.Cluster | None = None
) -> TrainingReport:
    """Return the report of a job without unreadable parts.

    Args:
        cluster: The job's cluster.
        job: Its state.
        file: The cluster file; None where it is not known.
    """
    first = next((pod for pod in job.pods if pod.state in _WITH_A_LOG), None)
    progress: Mapping[str, str] = {}
    failures: tuple[Mapping[str, str], ...] = ()
    slow: Mapping[str, Mapping[str, str]] = {}
    if first is not None and first == job.pods[0] and job.state.array is None:
        tail = _lines(cluster, job.namespace, first, {"tailLines": _TAIL_LINES})
        steps = [fields for line in tail if (fields := _fields(line, _PROGRESS))]
        progress = steps[-1] if steps else {}
        stragglers = (fields for line in tail if (fields := _fields(line, _STRAGGLER)))
        slow = {fields.get("node", ""): fields for fields in stragglers}
        head = _lines(cluster, job.namespace, first, {"limitBytes": _HEAD_BYTES})
        failed = (fields for line in head if (fields := _fields(line, _FAILED)))
        failures = tuple(failed)[:_MOST_FAILURES]
    return TrainingReport(
        progress=progress,
        failures=failures,
        ends=tuple(_ends(job)),
        stragglers=tuple(slow.values())[-_MOST_STRAGGLERS:],
        earlier_logs="" if file is None else earlier_logs(file, job),
    )


def earlier_logs(cluster: config.Cluster, job: JobStatus) -> str:
    """Return the command that prints errors of pods that restarts have deleted.

    Empty where the job has not been restarted, or CloudWatch keeps no logs of pods. The command
    reads the whole log of a fleet, which takes long: the state of a job does not wait for it.

    Args:
        cluster: The cluster file.
        job: State of the job.
    """
    groups = [group for part in all_parts() if (group := part.logs_of_pods(cluster)) is not None]
    if not groups or not job.state.retries or job.state.array is not None:
        return ""
    pattern = (
        f'{{ $.kubernetes.namespace_name = "{job.namespace}" && '
        f'$.kubernetes.pod_name = "{job.name}-*" && $.log = "*Error*" }}'
    )
    since = f"{job.created:%Y-%m-%dT%H:%M:%SZ}"
    words = ("aws", "logs", "tail", groups[0], "--region", cluster.region, "--since", since)
    return shlex.join((*words, "--filter-pattern", pattern))


def _ends(job: JobStatus) -> Iterator[PodEnd]:
    """Yield the last words of the pods, each message once: ranks often fail alike."""
    seen: set[str] = set()
    for pod in job.pods:
        if pod.last_words and pod.last_words not in seen and len(seen) < _MOST_FAILURES:
            seen.add(pod.last_words)
            yield PodEnd(pod=pod.name, node=pod.node, message=pod.last_words)


def _lines(cluster: Cluster, namespace: str, pod: Pod, query: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines of a log; none where its node is gone, or the user has no right to logs.

    The state of a job does not need it.
    """
    path = f"{POD.path(namespace, pod.name)}/log"
    try:
        asked = {"timestamps": "true", "container": pod.container, **query}
        with cluster.stream(path, asked) as stream:
            stamped = (raw.decode(errors="replace") for raw in stream.lines())
            return tuple(line.partition(" ")[2].rstrip("\n") for line in stamped)
    except ClusterError:
        return ()


def _fields(line: str, kind: str) -> Mapping[str, str]:
    name, _, rest = _PREFIX.sub("", line.strip()).partition(" ")
    if name != kind or not _FIELD.match(rest):
        return {}
    try:
        words = shlex.split(rest)
    except ValueError:
        return {}
    pairs = (word.partition("=") for word in words if "=" in word)
    return {key: value for key, _, value in pairs}
