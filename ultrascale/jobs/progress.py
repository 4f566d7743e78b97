"""Progress of a job: watches its pods until they run, or until the job ends."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.cluster_api.objects import (
    EVENT,
    POD,
    POD_GROUP,
    Kind,
    Object,
    condition,
    name,
    owned_by,
    uid,
)
from ultrascale.cluster_api.server import Cluster
from ultrascale.cluster_api.watch import Change, Feed, Watched, feed, readable
from ultrascale.documents import number, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.pods import STATES, Pod, PodState, made_by, read_pod, slim
from ultrascale.jobs.queues import HeldBack, held_back
from ultrascale.jobs.workloads import WorkloadState, joint_state, read_workload
from ultrascale.plan.names import JOB_LABEL

# Seconds between two looks at changes, between two at Kueue's Workloads, and between two lists of
# warnings.
_TICK = 0.5
_WORKLOADS_EVERY = 5.0
_EVENTS_EVERY = 15.0
_MOST_REASONS = 4
# Volcano's message begins so for a pod that fits on a node, and waits for the rest of its gang.
# Karpenter and Cluster Autoscaler heed other pods alone, and treat that node as free. Source:
# https://github.com/volcano-sh/volcano/issues/3976
_FITS = "Schedulable: "


class Progress(Frozen):
    """Progress of a job."""

    name: str  # The job
    state: WorkloadState  # State of its workloads
    pods: Mapping[PodState, int]  # Number of pods in each state
    waiting: tuple[str, ...]  # Reasons of waiting pods, the most frequent first

    @property
    def up(self) -> bool:
        """Whether all pods that must run at once do, by their own state and their workload's."""
        alive = self.pods["running"] + self.pods["succeeded"]
        return self.state.up and alive >= self.state.least


class Followed(Frozen):
    """A job to follow."""

    name: str  # Its name
    namespace: str  # Its namespace
    kinds: tuple[Kind, ...]  # Kinds of its workloads
    container: str = ""  # Container that counts; the first if empty


class _View:
    """State of a job, kept up to date by its changes."""

    def __init__(self, cluster: Cluster, job: Followed) -> None:
        self._cluster = cluster
        self._job = job
        self._pods: dict[str, Pod] = {}
        self._groups: dict[str, Object] = {}
        self._workloads: dict[tuple[Kind, str], Object] = {}
        self._listed: set[str] = set()
        self._warnings: Counter[str] = Counter()
        self._warned = 0.0
        self._held = HeldBack()
        self._asked = 0.0
        self._sources = {kind.resource: kind for kind in (POD, POD_GROUP, *job.kinds)}
        self.gone = False

    def take(self, change: Change) -> None:
        kind = self._sources[change.source]
        if change.listed is not None:
            self._forget(kind)
            self._listed.add(change.source)
            for manifest in change.listed:
                self._put(kind, manifest)
        elif change.manifest is not None:
            self._put(kind, change.manifest, gone=change.gone)
        workloads_listed = self._listed.issuperset(kind.resource for kind in self._job.kinds)
        self.gone = workloads_listed and not self._workloads

    def _forget(self, kind: Kind) -> None:
        if kind == POD:
            self._pods.clear()
        elif kind == POD_GROUP:
            self._groups.clear()
        else:
            self._workloads = {
                key: value for key, value in self._workloads.items() if key[0] != kind
            }

    def _put(self, kind: Kind, manifest: Object, *, gone: bool = False) -> None:
        key = name(manifest)
        if kind == POD:
            if gone:
                self._pods.pop(key, None)
            else:
                self._pods[key] = read_pod(manifest, container=self._job.container)
        elif kind == POD_GROUP:
            self._groups[key] = {} if gone else manifest
        elif gone:
            self._workloads.pop((kind, key), None)
        else:
            self._workloads[(kind, key)] = manifest

    def progress(self) -> Progress | None:
        """Return the progress of the job; None before it is known."""
        if not self._workloads or POD.resource not in self._listed:
            return None
        state = joint_state(
            read_workload(kind, manifest) for (kind, _), manifest in self._workloads.items()
        )
        pods = [*made_by(self._pods.values(), self._workloads.values())]
        counts = Counter(pod.state for pod in pods)
        progress = Progress(
            name=self._job.name,
            state=state,
            pods={state: counts[state] for state in STATES},
            waiting=(),
        )
        if progress.up or state.result is not None:
            return progress
        held = self._held_back()
        if held.given_up:
            return replace(progress, state=replace(state, result="failed", reason=held.reason))
        return replace(progress, waiting=self._waiting(state, pods, held.reason))

    def _waiting(
        self, state: WorkloadState, pods: Sequence[Pod], held_back: str
    ) -> tuple[str, ...]:
        reasons = Counter(pod.reason for pod in pods if pod.reason)
        fitting = sum(count for reason, count in reasons.items() if reason.startswith(_FITS))
        others = Counter({key: reasons[key] for key in reasons if not key.startswith(_FITS)})
        lines = [
            reason if count == 1 else f"{count} pods: {reason}"
            for reason, count in others.most_common(_MOST_REASONS)
        ]
        if fitting:
            lines.append(
                f"{fitting} of {state.wanted} pods fit on nodes that are there, and wait for the "
                "rest of their gang; if no node comes for these, delete the nodes that stay idle "
                "(with Karpenter their NodeClaims), so that all are launched together"
            )
        lines += _group_reasons(self._own_groups())
        if wait := held_back or state.reason:
            lines.append(wait)
        if not pods:
            lines += self._workload_warnings()
        return tuple(dict.fromkeys(lines))

    def _held_back(self) -> HeldBack:
        now = time.monotonic()
        if now - self._asked >= _WORKLOADS_EVERY:
            self._asked = now
            workloads = self._workloads.values()
            self._held = held_back(self._cluster, self._job.namespace, workloads)
        return self._held

    def _own_groups(self) -> Iterator[Object]:
        """Yield the PodGroups of the job, without those of a deleted one of the same name."""
        for group in self._groups.values():
            owned = objects(group, "metadata", "ownerReferences")
            if not owned or any(owned_by(group, workload) for workload in self._workloads.values()):
                yield group

    def _workload_warnings(self) -> list[str]:
        """Return the warnings about the workloads, such as a quota that refuses pods."""
        now = time.monotonic()
        if now - self._warned >= _EVENTS_EVERY:
            self._warned = now
            self._warnings = Counter(
                f"{text(event, 'reason')}: {text(event, 'message')}"
                for workload in self._workloads.values()
                for event in self._events(workload)
            )
        return [reason for reason, _ in self._warnings.most_common(_MOST_REASONS)]

    def _events(self, workload: Object) -> Sequence[Object]:
        # By UID: events outlive their object by an hour, and a job may have its name again.
        about = f"involvedObject.uid={uid(workload)}"
        query = {"fieldSelector": about, "limit": "100"}
        try:
            events = objects(self._cluster.get(EVENT.path(self._job.namespace), query), "items")
            return [event for event in events if text(event, "type") == "Warning"]
        except RefusedError:
            # Events only add details. The job can be followed without them.
            return ()


def follow(
    cluster: Cluster,
    job: Followed,
    *,
    until: Callable[[Progress], bool],
    report: Callable[[Progress], None],
    timeout_seconds: float | None = None,
) -> Progress:
    """Watch a job until ``until`` holds, it ends or it is gone.

    Args:
        cluster: The job's cluster.
        job: The job to follow.
        until: Returns whether a progress ends the wait.
        report: Is called with each progress, at most twice a second.
        timeout_seconds: Longest wait; None for no limit.

    Raises:
        ClusterError: The job is gone, the time is over, or the API server stays unreachable. The
            job itself is left as it is.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    view = _View(cluster, job)
    progress: Progress | None = None
    with feed(cluster, _watched(cluster, job)) as watching:
        while True:
            _take(watching, view)
            if view.gone:
                raise ClusterError(f"job {job.name} is gone: it was deleted meanwhile")
            progress = view.progress()
            if progress is not None:
                report(progress)
                if progress.state.result is not None or until(progress):
                    return progress
            if deadline is not None and time.monotonic() >= deadline:
                raise ClusterError(_timeout_text(job, progress, timeout_seconds))


def _take(watching: Feed, view: _View) -> None:
    for change in watching.changes(_TICK):
        view.take(change)


def _watched(cluster: Cluster, job: Followed) -> Mapping[str, Watched]:
    selector = {"labelSelector": f"{JOB_LABEL}={job.name}"}
    kinds = [*job.kinds]
    if readable(cluster, POD_GROUP.path(job.namespace)):
        kinds.append(POD_GROUP)
    watched = {
        kind.resource: Watched(path=kind.path(job.namespace), query=selector) for kind in kinds
    }
    pods = Watched(path=POD.path(job.namespace), query=selector, slim=slim)
    return {**watched, POD.resource: pods}


def _group_reasons(groups: Iterable[Object]) -> list[str]:
    lines: list[str] = []
    for group in groups:
        if text(group, "status", "phase") not in ("Pending", "Inqueue"):
            continue
        unschedulable = condition(group, "Unschedulable")
        if message := text(unschedulable, "message"):
            lines.append(f"Volcano: {message}")
        elif text(group, "status", "phase") == "Pending":
            queue, needed = text(group, "spec", "queue"), number(group, "spec", "minMember")
            lines.append(f"Volcano: waits in queue {queue} for room for {needed} pods at once")
    return lines


def _timeout_text(job: Followed, progress: Progress | None, seconds: float | None) -> str:
    phase = progress.state.phase if progress else "unknown"
    why = f" ({'; '.join(progress.waiting)})" if progress and progress.waiting else ""
    return (
        f"job {job.name} is {phase} after {seconds:g} s{why}; it stays submitted: "
        f"`ultrascale status -n {job.namespace} {job.name}`, or `ultrascale cancel`"
    )
