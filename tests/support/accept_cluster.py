"""A cluster in memory that runs the jobs of an acceptance, and fails where a test says so."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import urllib3
from kubernetes.client.exceptions import ApiException
from msgspec.structs import replace

from tests.support.accept_runs import make_run
from tests.support.operate_cluster import FakeCluster, Time
from tests.support.pools import LUSTRE, POOL, SYSTEM_POOL, as_json, make_document
from tests.support.stub_api_server import Object, Request
from ultrascale import plan
from ultrascale.accept.model import Run
from ultrascale.cluster_api.connection import Transport
from ultrascale.cluster_api.server import Cluster

ARN = "arn:aws:eks:us-west-2:111122223333:cluster/research"
TRAINING = "/api/v1/namespaces/training"
JOBS = "/apis/batch/v1/namespaces/training/jobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/workloads"
QUOTA = 1
_STEPS_A_LOOK = 4


def write_file(folder: Path, queueing: str) -> Path:
    """Write a cluster file of one pool for CPU jobs, with a file system and a built image."""
    claim = {"namespace": "training", "name": "training", "mount_path": "/data"}
    nodes = {"max": 1} if queueing == "kueue" else {"static": 2}
    work = POOL | {"name": "work", "instance_types": ["c7i.2xlarge"], "nodes": nodes}
    queues = [{"name": "main", "guarantee": {"work": QUOTA}, "prefer": ["work"]}]
    document = make_document(
        account="111122223333",
        pools=[SYSTEM_POOL, work],
        storage={"lustre": [LUSTRE | {"claim": claim}]},
        images={"repositories": ["trainer"], "builds": {"trainer": "cpu"}},
        scheduling={"queueing": queueing, **({"queues": queues} if queueing == "kueue" else {})},
    )
    path = folder / f"{queueing}.yaml"
    path.write_text(as_json(document))
    return path


class Killed(BaseException):
    """The process of the run is gone: it sends no request any more."""


@dataclass
class Fault:
    """A fault of one request of a run."""

    number: int  # Which request, from 0
    kind: str  # A status, `timeout`, `sigint` or `sigkill`
    after: bool  # Whether the server carries it out all the same


@dataclass
class Jobs:
    """Controllers of jobs, of Kueue and of nodes: they act at each look of the clock."""

    stub: FakeCluster
    saved: int = 0  # Step of the newest checkpoint
    data: bool = False  # Whether a volume has data of a run
    held: float = 0.0  # Node-minutes that pods have held
    promised: float = 0.0  # Node-minutes that the deadlines of all jobs allow
    _steps: dict[str, int] = field(default_factory=dict[str, int])

    def created(self, path: str, job: Object) -> None:
        """Let Kueue suspend a job of its queues, as its webhook does."""
        if not path.startswith(JOBS):
            return
        spec, queued = job["spec"], "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]
        assert spec["activeDeadlineSeconds"]
        assert spec["ttlSecondsAfterFinished"]
        fits = spec["parallelism"] <= QUOTA or not queued
        self.promised += spec["parallelism"] * spec["activeDeadlineSeconds"] / 60 if fits else 0
        if queued:
            self.stub.update(path, spec={"suspend": True})
            owner = [
                {"kind": "Job", "uid": job["metadata"]["uid"], "name": job["metadata"]["name"]}
            ]
            self.stub.put(
                f"{WORKLOADS}/job-{job['metadata']['name']}",
                {"metadata": {"ownerReferences": owner}, "spec": {"active": True}, "status": {}},
            )

    def act(self, seconds: float) -> None:
        for path, job in [*self.stub.objects.items()]:
            if path.startswith(f"{JOBS}/") and "template" in job["spec"]:
                self._admit(path, job)
                self._run(path, seconds)

    def _admit(self, path: str, job: Object) -> None:
        workload = self.stub.find(f"{WORKLOADS}/job-{job['metadata']['name']}")
        if workload is None:
            return
        admitted = workload["spec"]["active"] and job["spec"]["parallelism"] <= QUOTA
        self.stub.update(path, spec={"suspend": not admitted})
        state = [] if admitted else [{"type": "Suspended", "status": "True"}]
        self.stub.update(path, status={"conditions": state})

    def _run(self, path: str, seconds: float) -> None:
        job = self.stub.objects[path]
        name, uid, spec = job["metadata"]["name"], job["metadata"]["uid"], job["spec"]
        pods = [f"{TRAINING}/pods/{name}-{index}" for index in range(spec["parallelism"])]
        if spec.get("suspend"):
            for pod in pods:
                if self.stub.find(pod):
                    self.stub.remove(pod)
                    self._steps.pop(uid, None)
            return
        if any(
            state["type"] == "Complete" for state in job.get("status", {}).get("conditions", ())
        ):
            return
        self.held += len(pods) * seconds / 60
        flags = " ".join(spec["template"]["spec"]["containers"][0]["command"])
        deletes = "--delete" in flags
        if uid not in self._steps:
            self._steps[uid] = 0 if deletes else self.saved
            for index, pod in enumerate(pods):
                self._start(pod, job, index, deletes=deletes)
            return
        self._steps[uid] += _STEPS_A_LOOK
        if deletes:
            self.data = False
        else:
            self.saved = self._steps[uid]
            self.stub.write(pods[0], *_stamped(f"progress step={self.saved}/1000000 loss=1"))
        if deletes or "--steps-this-run" in flags:
            done = [{"type": "Complete", "status": "True"}]
            self.stub.update(path, status={"conditions": done, "succeeded": len(pods)})
            for pod in pods:
                self.stub.update(pod, status={"phase": "Succeeded"})

    def _start(self, pod: str, job: Object, index: int, *, deletes: bool) -> None:
        template = job["spec"]["template"]
        owner = {"kind": "Job", "uid": job["metadata"]["uid"], "name": job["metadata"]["name"]}
        labels = template["metadata"]["labels"] | {
            "batch.kubernetes.io/job-name": job["metadata"]["name"],
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        running: dict[str, Any] = {"name": "worker", "state": {"running": {}}}
        self.stub.put(
            pod,
            {
                "metadata": {"labels": labels, "ownerReferences": [owner]},
                "spec": {"nodeName": f"node-{index}", "containers": [{"name": "worker"}]},
                "status": {"phase": "Running", "containerStatuses": [running]},
            },
        )
        if not deletes:
            self.data = True
            workers = job["spec"]["parallelism"]
            self.stub.write(
                pod,
                *_stamped("volume /data/accept/r1: 1048576 bytes written and read"),
                *_stamped(
                    f"worker 0: starts at step {self.saved} of 1000000 with {workers} workers"
                ),
            )


def _stamped(line: str) -> Iterator[str]:
    yield f"2026-12-05T12:00:00Z {line}"


@dataclass
class _Response:
    data: bytes
    lines: bytes

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self.lines

    def close(self) -> None:
        pass


class _Transport:
    user_agent = ""

    def __init__(self, stub: FakeCluster, faults: list[Fault]) -> None:
        self._stub, self._faults, self.count, self._dead = stub, faults, 0, False

    def call_api(
        self,
        resource_path: str,
        method: str,
        *,
        query_params: list[tuple[str, str]],
        header_params: dict[str, str],
        body: Any,
        **_: object,
    ) -> Any:
        if self._dead:
            raise Killed
        number, self.count = self.count, self.count + 1
        fault = next((each for each in self._faults if each.number == number), None)
        headers = {name.lower(): value for name, value in header_params.items()}
        request = Request(method, resource_path, dict(query_params), headers, json_copy(body))
        if fault is not None:
            if fault.after:
                self._stub.respond(request)
            self._fail(fault)
        reply = self._stub.respond(request)
        if reply.status >= 300:
            raise _refusal(reply.status, json.dumps(reply.answer))
        lines = b"".join(reply.lines) if reply.lines is not None else b""
        text = lines or json.dumps(reply.answer).encode()
        return _Response(text, lines)

    def _fail(self, fault: Fault) -> None:
        match fault.kind:
            case "timeout":
                raise urllib3.exceptions.ReadTimeoutError(cast("Any", None), "/", "timed out")
            case "sigint":
                raise KeyboardInterrupt
            case "sigkill":
                self._dead = True
                raise Killed
            case status:
                raise _refusal(int(status), json.dumps({"message": "refused", "code": int(status)}))


def json_copy(body: Any) -> Any:
    return json.loads(json.dumps(body))


def _refusal(status: int, body: str) -> ApiException:
    error: Any = ApiException(status=status)
    error.body = body
    return error


@dataclass
class Stage:
    """A cluster, its controllers, and a run against it."""

    run: Run
    stub: FakeCluster
    jobs: Jobs
    transport: _Transport

    def again(self) -> Run:
        """Return the same run by another process, without faults."""
        cluster = Cluster(cast("Transport", _Transport(self.stub, [])), ARN)
        return replace(self.run, cluster=cluster)


def stage(file: Path, faults: list[Fault] | None = None) -> Stage:
    """Return a cluster of a file, with somebody else's job in it, and a run."""
    stub = FakeCluster()
    stub.groups |= {"/apis/scheduling.k8s.io/v1"}
    jobs = Jobs(stub)
    stub.on_create = jobs.created
    time = Time()
    run_clock = time.clock

    def sleep(seconds: float) -> None:
        run_clock.sleep(seconds)
        jobs.act(seconds)

    for path in (
        f"{TRAINING}/persistentvolumeclaims/training",
        "/apis/scheduling.k8s.io/v1/priorityclasses/preemptible",
        "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/localqueues/main",
    ):
        stub.put(path, {"status": {"phase": "Bound"}})
    other = {"ultrascale.dev/job": "other", "ultrascale.dev/acceptance": "r2"}
    for path in (f"{JOBS}/other", f"{TRAINING}/pods/other-0", f"{TRAINING}/configmaps/accept-r2"):
        stub.put(path, {"metadata": {"labels": other}, "spec": {"parallelism": 0}, "data": {}})
    transport = _Transport(stub, faults or [])
    cluster = Cluster(cast("Transport", transport), ARN)
    run = replace(
        make_run(cluster, file.parent, plan=plan.load(file)),
        file=file,
        clock=replace(run_clock, sleep=sleep),
    )
    return Stage(run=run, stub=stub, jobs=jobs, transport=transport)
