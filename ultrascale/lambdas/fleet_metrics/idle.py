"""Jobs that leave accelerators idle: their nodes and exporters, their annotation and their end."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from sys import intern
from typing import TYPE_CHECKING

from ..idle_jobs import LABEL, NOTICE_SECONDS, Look, Stretch, follow, take_turns
from ..kubernetes import MERGE_PATCH, KubernetesApi, KubernetesError
from .settings import IdleSettings

if TYPE_CHECKING:
    from ..events import Json
    from ..kubernetes_objects import Object

# Kueue's marks of its jobs and Workloads; it would resume what is only suspended.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/constants/constants.go
_QUEUE, _JOB_UID = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/job-uid"
_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/cli/util/util.go
_VOLCANO, _COMMANDS = "batch.volcano.sh", "bus.volcano.sh/v1alpha1"
_KIND, _WITH_OWN_RULES = "app.kubernetes.io/component", ("service", "dev")


class IdleJobs:
    """Jobs on nodes with an exporter, by namespace and name; collected while a call reads them."""

    def __init__(self, settings: IdleSettings) -> None:
        self.stretches: Mapping[str, Stretch] = {}
        self.idle: Sequence[str] = ()
        self._settings = settings
        self._jobs: dict[str, Look] = {}
        self._pods: dict[tuple[str, str], str] = {}
        self._nodes: dict[str, tuple[str, int]] = {}

    def add_node(self, name: str, pool: str, accelerators: int) -> None:
        """Add a node."""
        if pool in self._settings.pools:
            self._nodes[name] = pool, accelerators

    def add_pod(self, pod: "Object", accelerators: float) -> None:
        """Add a pod of a job that was sent with `ultrascale`, unless it may be idle."""
        metadata, status, node = pod["metadata"], pod["status"], pod["spec"].get("nodeName", "")
        labels, namespace = metadata.get("labels", {}), metadata.get("namespace", "")
        name = labels.get(self._settings.job_label)
        if name is None or LABEL in labels or labels.get(_KIND) in _WITH_OWN_RULES:
            return
        job = self._jobs.setdefault(key := intern(f"{namespace}/{name}"), Look())
        start = status.get("startTime") if status.get("phase") == "Running" else None
        if start is None or node not in self._nodes:
            # Nobody sees what it does on a node without an exporter.
            job.started = math.inf
        else:
            job.started = max(job.started, datetime.fromisoformat(start).timestamp())
        if node in self._nodes:
            job.nodes[node] = job.nodes.get(node, 0) + accelerators
            self._pods[namespace, metadata["name"]] = key

    def ask(self, now: float) -> set[str]:
        """Return the nodes to ask at ``now``."""
        jobs = (self._jobs[name] for name in sorted(self._jobs))
        take_turns(jobs, int(now) // self._settings.every, self._settings.most)
        return {node for job in self._jobs.values() for node in job.asked}

    def add_answer(self, node: str, uses: Iterable[tuple[str, str, float]]) -> None:
        """Add an exporter's answer: namespace and name of the pod that has a GPU, and its use."""
        percents: dict[str, list[float]] = {}
        for namespace, pod, percent in uses:
            if (name := self._pods.get((namespace, pod))) is not None:
                percents.setdefault(name, []).append(percent)
        for name, values in percents.items():
            job = self._jobs[name]
            job.busy |= max(values) >= self._settings.below_percent
            if len(values) >= job.nodes.get(node, 0) and node in job.asked:
                job.answered.append(node)

    def follow(self, before: Mapping[str, Stretch], last: int, now: int) -> None:
        """Take all answers together; ``last`` is the time of the call before."""
        settings = self._settings
        missed = max(round((now - last) / settings.every) - 1, 0)
        seconds = settings.seconds - (NOTICE_SECONDS if settings.ends else 0)
        # Also where the call did not come so far.
        self.ask(now)
        self.stretches = {
            name: follow(before.get(name), job, seconds, now, missed)
            for name, job in self._jobs.items()
            if job.nodes
        }
        self.idle = [name for name, stretch in self.stretches.items() if stretch.notice > 0]

    def act(self, api: KubernetesApi, hourly: Mapping[str, float], now: int) -> None:
        """Annotate idle jobs, end those whose time is over, and take back what no longer holds.

        ``hourly`` has prices of a node-hour by pool, where they are known.
        """
        for name, stretch in self.stretches.items():
            # Several calls take an annotation back, as one may fail.
            if stretch.notice > 0 or now + stretch.notice < NOTICE_SECONDS:
                try:
                    self._mark(api, name, stretch, hourly, now)
                except (KubernetesError, OSError) as error:
                    # Others have their turn.
                    print(f"{name} is idle: {error}")

    def _mark(
        self, api: KubernetesApi, name: str, stretch: Stretch, hourly: Mapping[str, float], now: int
    ) -> None:
        """Annotate the objects of a job, and end each once it has shown the notice."""
        since, nodes = _text(stretch.since), len(self._jobs[name].nodes)
        for path, manifest in self._objects(api, name):
            before = _note_of(manifest)
            shown: Mapping[str, Json] = before if before.get("since") == since else {}
            ends = str(shown.get("ends", _text(now + NOTICE_SECONDS)))
            may_end = stretch.notice > 0 and self._settings.ends
            over = may_end and ends <= _text(now) and stretch.is_known(nodes)
            note = self._note(name, since, hourly) if stretch.notice > 0 else {}
            if may_end:
                note |= {"ends": ends, "ended": ends} if over else {"ends": ends}
            # A job that was ended keeps its note while its pods go.
            if before != note and "ended" not in (shown if note else before):
                change = {"metadata": {"annotations": {LABEL: json.dumps(note) if note else None}}}
                api.patch(path, change, kind=MERGE_PATCH)
            if over:
                _end(api, path, manifest)

    def _note(self, name: str, since: str, hourly: Mapping[str, float]) -> "dict[str, Json]":
        held = [(*self._nodes[node], n) for node, n in self._jobs[name].nodes.items()]
        known = all(pool in hourly for pool, _, _ in held)
        usd = sum(hourly[pool] * n / whole for pool, whole, n in held) if known else None
        return {"since": since, "accelerators": sum(n for _, _, n in held), "usd_per_hour": usd}

    def _objects(self, api: KubernetesApi, name: str) -> "Iterator[tuple[str, Object]]":
        namespace, _, job = name.partition("/")
        for group, plural, version in self._settings.kinds:
            path = f"/apis/{group}/{version}/namespaces/{namespace}/{plural}"
            for manifest in api.list(path, labelSelector=f"{self._settings.job_label}={job}"):
                yield f"{path}/{manifest['metadata']['name']}", manifest


def _note_of(job: "Object") -> "Mapping[str, Json]":
    """Return the note of a job's object; empty where somebody else wrote it."""
    try:
        note: Json = json.loads(job["metadata"].get("annotations", {}).get(LABEL) or "{}")
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _end(api: KubernetesApi, path: str, job: "Object") -> None:
    """End a job so that its engine can resume it, and keep its objects."""
    metadata = job["metadata"]
    namespace, name, uid = metadata.get("namespace", ""), metadata["name"], metadata["uid"]
    _, _, group, version, *_ = path.split("/")
    if _QUEUE in metadata.get("labels", {}):
        workloads = _WORKLOADS.format(namespace)
        for entry in api.list(workloads, labelSelector=f"{_JOB_UID}={uid}"):
            entry_path = f"{workloads}/{entry['metadata']['name']}"
            api.patch(entry_path, {"spec": {"active": False}}, kind=MERGE_PATCH)
    elif group == _VOLCANO:
        target = {"apiVersion": f"{group}/{version}", "kind": "Job", "name": name, "uid": uid}
        about = {"name": f"{name}-idle", "namespace": namespace, "ownerReferences": [target]}
        command = {"apiVersion": _COMMANDS, "kind": "Command", "metadata": about, "target": target}
        # Refused by its name while Volcano has not yet taken the one before.
        where = f"/apis/{_COMMANDS}/namespaces/{namespace}/commands"
        api.create(where, {**command, "action": "AbortJob"})
    else:
        api.patch(path, {"spec": {"suspend": True}}, kind=MERGE_PATCH)


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
