"""Jobs that leave accelerators idle: their nodes and exporters, their annotation and their end."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from sys import intern
from typing import TYPE_CHECKING

from ..idle_jobs import LABEL, NOTICE_SECONDS, Look, Stretch, follow, in_turn
from ..kubernetes import MERGE_PATCH, KubernetesApi, KubernetesError
from .settings import IdleSettings

if TYPE_CHECKING:
    from ..kubernetes_objects import Object

# Kueue's marks of its jobs and Workloads; it would resume what is only suspended.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/constants/constants.go
_QUEUE, _JOB_UID = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/job-uid"
_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/cli/util/util.go
_VOLCANO, _COMMANDS = "batch.volcano.sh", "bus.volcano.sh/v1alpha1"
_KIND, _WITH_OWN_RULES = "app.kubernetes.io/component", ("service", "dev")
_NOT_STARTED = "~"  # Sorts behind each time


@dataclass
class _Job:
    nodes: dict[str, float] = field(default_factory=dict[str, float])  # Its accelerators by node
    started: str = ""  # Latest start of its pods
    asked: Sequence[str] = ()
    answered: list[str] = field(default_factory=list[str])
    busy: bool = False


class IdleJobs:
    """Jobs on nodes with an exporter, by namespace and name; collected while a call reads them."""

    def __init__(self, settings: IdleSettings) -> None:
        self.stretches: Mapping[str, Stretch] = {}
        self._settings = settings
        self._before: Mapping[str, Stretch] = {}
        self._jobs: dict[str, _Job] = {}
        self._pods: dict[tuple[str, str], str] = {}
        self._nodes: dict[str, tuple[str, int]] = {}

    def add_node(self, name: str, pool: str, accelerators: int) -> None:
        """Add a node."""
        if pool in self._settings.pools:
            self._nodes[name] = pool, accelerators

    def add_pod(self, pod: "Object", name: str, accelerators: float) -> None:
        """Add a pod of a job that was sent with `ultrascale`, unless it may be idle."""
        metadata, status, node = pod["metadata"], pod["status"], pod["spec"].get("nodeName", "")
        labels, namespace = metadata.get("labels", {}), metadata.get("namespace", "")
        exempt = LABEL in labels or labels.get(_KIND) in _WITH_OWN_RULES
        if exempt or name != labels.get(self._settings.job_label):
            return
        job = self._jobs.setdefault(key := intern(f"{namespace}/{name}"), _Job())
        # Nobody sees what it does on a node without an exporter.
        runs = status.get("phase") == "Running" and node in self._nodes
        job.started = max(job.started, status.get("startTime", "") if runs else _NOT_STARTED)
        if node in self._nodes:
            job.nodes[node] = job.nodes.get(node, 0) + accelerators
            self._pods[namespace, metadata["name"]] = key

    def ask(self, now: float) -> set[str]:
        """Return the nodes to ask at ``now``."""
        jobs = {name: [*job.nodes] for name, job in self._jobs.items() if job.nodes}
        for name, nodes in in_turn(jobs, int(now) // self._settings.every, self._settings.most):
            self._jobs[name].asked = nodes
        return {node for job in self._jobs.values() for node in job.asked}

    def add_answer(self, node: str, uses: Iterable[tuple[str, str, float]]) -> None:
        """Add an exporter's answer: namespace and name of the pod that has a GPU, and its use."""
        known: dict[str, list[float]] = {}
        for namespace, pod, percent in uses:
            if (name := self._pods.get((namespace, pod))) is not None:
                known.setdefault(name, []).append(percent)
        for name, percents in known.items():
            job = self._jobs[name]
            job.busy |= max(percents) >= self._settings.below_percent
            if len(percents) >= job.nodes.get(node, 0) and node in job.asked:
                job.answered.append(node)

    def follow(self, before: Mapping[str, Stretch], last: int, now: int) -> None:
        """Take all answers together; ``last`` is the time of the call before."""
        own, self._before = self._settings, before
        missed = max(round((now - last) / own.every) - 1, 0)
        seconds = own.seconds - (NOTICE_SECONDS if own.ends else 0)
        # Also where the call did not come so far.
        self.ask(now)
        self.stretches = {
            name: follow(before.get(name), look, seconds, now, missed)
            for name, look in self._looks(now)
        }

    def _looks(self, now: int) -> Iterator[tuple[str, Look]]:
        for name, job in self._jobs.items():
            if job.nodes:
                runs = job.started not in ("", _NOT_STARTED)
                started = int(datetime.fromisoformat(job.started).timestamp()) if runs else now
                seen = len(job.nodes), len(job.asked), job.answered, job.busy
                yield name, Look(started, *seen)

    @property
    def idle(self) -> Sequence[str]:
        """The jobs that are idle."""
        return [name for name, own in self.stretches.items() if own.told]

    def act(self, api: KubernetesApi, hourly: Mapping[str, float], now: int) -> None:
        """Annotate idle jobs, end those whose time is over, and take back what no longer holds.

        Args:
            api: The API server.
            hourly: Prices of a node-hour by pool, where they are known.
            now: The time.
        """
        for name, stretch in self.stretches.items():
            if not stretch.told and not self._before.get(name, stretch).told:
                continue
            over = self._settings.ends and 0 < stretch.told <= now - NOTICE_SECONDS
            note = self._note(name, stretch, hourly, over=over) if stretch.told else None
            try:
                for path, found in self._objects(api, name):
                    if found["metadata"].get("annotations", {}).get(LABEL) != note:
                        change = {"metadata": {"annotations": {LABEL: note}}}
                        api.patch(path, change, kind=MERGE_PATCH)
                    if over:
                        _end(api, path, found)
            except (KubernetesError, OSError) as error:
                # Others have their turn.
                print(f"{name} is idle: {error}")

    def _note(self, name: str, stretch: Stretch, hourly: Mapping[str, float], *, over: bool) -> str:
        held = [(*self._nodes[node], n) for node, n in self._jobs[name].nodes.items()]
        known = all(pool in hourly for pool, _, _ in held)
        usd = sum(hourly[pool] * n / whole for pool, whole, n in held) if known else None
        ends = {"ended" if over else "ends": _text(stretch.told + NOTICE_SECONDS)}
        return json.dumps(
            {
                "since": _text(stretch.since),
                "accelerators": sum(n for _, _, n in held),
                "usd_per_hour": usd,
                **(ends if self._settings.ends else {}),
            }
        )

    def _objects(self, api: KubernetesApi, name: str) -> "Iterator[tuple[str, Object]]":
        namespace, _, job = name.partition("/")
        for group, plural, version in self._settings.kinds:
            path = f"/apis/{group}/{version}/namespaces/{namespace}/{plural}"
            for found in [*api.list(path, labelSelector=f"{self._settings.job_label}={job}")]:
                yield f"{path}/{found['metadata']['name']}", found


def _end(api: KubernetesApi, path: str, job: "Object") -> None:
    """End a job by what its engine takes back, and keep its objects."""
    metadata = job["metadata"]
    namespace, name, uid = metadata.get("namespace", ""), metadata["name"], metadata["uid"]
    _, _, group, version, *_ = path.split("/")
    if _QUEUE in metadata.get("labels", {}):
        entries = _WORKLOADS.format(namespace)
        for entry in api.list(entries, labelSelector=f"{_JOB_UID}={uid}"):
            own = f"{entries}/{entry['metadata']['name']}"
            api.patch(own, {"spec": {"active": False}}, kind=MERGE_PATCH)
    elif group == _VOLCANO:
        target = {"apiVersion": f"{group}/{version}", "kind": "Job", "name": name, "uid": uid}
        about = {"name": f"{name}-idle", "namespace": namespace, "ownerReferences": [target]}
        command = {"apiVersion": _COMMANDS, "kind": "Command", "metadata": about, "target": target}
        try:
            where = f"/apis/{_COMMANDS}/namespaces/{namespace}/commands"
            api.create(where, {**command, "action": "AbortJob"})
        except KubernetesError as error:
            # Volcano has not yet taken the one before.
            if error.status != HTTPStatus.CONFLICT:
                raise
    else:
        api.patch(path, {"spec": {"suspend": True}}, kind=MERGE_PATCH)


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
