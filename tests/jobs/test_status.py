"""Status of jobs and queues in one vocabulary."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.cluster_api.objects import DEPLOYMENT, INDEXED_JOB, Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.pods import read_pod
from ultrascale.jobs.queues import read_queues
from ultrascale.jobs.status import job_status, jobs_in
from ultrascale.jobs.workloads import read_workload
from ultrascale.parts.volcano.workloads import VOLCANO_JOB


def ended(reason: str, code: int, **more: str) -> Object:
    state = {"terminated": {"reason": reason, "exitCode": code, **more}}
    return {
        "status": {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{"name": "worker", "restartCount": 0, "state": state}],
        }
    }


def crashing() -> Object:
    fields = given.waiting("CrashLoopBackOff", "back-off 5m0s restarting")
    container = fields["status"]["containerStatuses"][0]
    container["lastState"] = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    return fields


EVICTED = {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}
_TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
PREEMPTED = {"status": {"phase": "Failed", "conditions": [_TARGET]}}


def before_program(state: Object, phase: str = "Pending") -> Object:
    """Return the fields of a pod whose command before the program is in ``state``."""
    fields = given.waiting("PodInitializing")
    fields["status"]["phase"] = phase
    fields["status"]["initContainerStatuses"] = [{"name": "before-program", "state": state}]
    return fields


PODS: list[tuple[Object, str, str]] = [
    ({}, "pending", ""),
    (given.unschedulable("no room"), "pending", "Unschedulable: no room"),
    ({"spec": {"nodeName": "n"}}, "scheduled", ""),
    (given.waiting("ContainerCreating"), "pulling", ""),
    (given.waiting("ErrImagePull", "not found"), "pulling", "ErrImagePull: not found"),
    (crashing(), "pulling", "CrashLoopBackOff: back-off 5m0s restarting: OOMKilled, exit code 137"),
    (given.running(), "running", ""),
    (ended("Completed", 0), "succeeded", ""),
    (ended("Error", 1, message="a\nlost NCCL\n"), "failed", "Error, exit code 1: lost NCCL"),
    (EVICTED, "failed", "Evicted: low on memory"),
    (PREEMPTED, "failed", "PreemptionByScheduler"),
    (before_program({"running": {}}), "pulling", "container before-program runs first"),
    (
        before_program({"terminated": {"reason": "Error", "exitCode": 3}}, "Failed"),
        "failed",
        "container before-program: Error, exit code 3",
    ),
]


@pytest.mark.parametrize(("fields", "state", "reason"), PODS)
def test_a_pod_is_as_far_as_its_status_says(fields: Object, state: str, reason: str) -> None:
    pod = read_pod(given.pod("p", **fields))

    assert (pod.state, pod.reason) == (state, reason)


def test_a_pod_that_is_being_deleted_counts_as_neither_running_nor_gone() -> None:
    found = given.pod("p", **given.running())
    found["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert read_pod(found).state == "terminating"


def test_a_sidecar_does_not_stand_for_the_container_of_the_job() -> None:
    found = given.pod("p", **given.waiting("ErrImagePull", "not found"))
    sidecar: Object = {"name": "istio-proxy", "restartCount": 3, "state": {"running": {}}}
    found["status"]["containerStatuses"].insert(0, sidecar)
    assert read_pod(found, container="worker").state == read_pod(found).state == "pulling"


def volcano(phase: str, **status: Any) -> Object:
    return {**given.volcano_job(), "status": {"state": {"phase": phase}, **status}}


def indexed(*conditions: str, **status: Any) -> Object:
    holding = [{"type": each, "status": "True"} for each in conditions]
    return {**given.indexed_job(), "status": {**status, "conditions": holding}}


WORKLOADS: list[tuple[Kind, Object, str, str | None, bool]] = [
    (VOLCANO_JOB, given.volcano_job(), "Pending", None, False),
    (VOLCANO_JOB, volcano("Running", running=1), "Running", None, False),
    (VOLCANO_JOB, volcano("Running", running=2), "Running", None, True),
    (VOLCANO_JOB, volcano("Restarting"), "Restarting", None, False),
    (VOLCANO_JOB, volcano("Completed"), "Completed", "succeeded", True),
    (VOLCANO_JOB, volcano("Failed"), "Failed", "failed", False),
    (VOLCANO_JOB, volcano("Aborted"), "Aborted", "failed", False),
    (VOLCANO_JOB, volcano("Terminated"), "Terminated", "failed", False),
    (INDEXED_JOB, given.indexed_job(), "Pending", None, False),
    (INDEXED_JOB, indexed(active=2, ready=0), "Pending", None, False),
    (INDEXED_JOB, indexed(active=2, ready=2), "Running", None, True),
    (INDEXED_JOB, indexed("Suspended"), "Suspended", None, False),
    (INDEXED_JOB, indexed("SuccessCriteriaMet", "Complete"), "Completed", "succeeded", True),
    (INDEXED_JOB, indexed("FailureTarget", "Failed"), "Failed", "failed", False),
    (DEPLOYMENT, given.deployment(), "Progressing", None, False),
]


@pytest.mark.parametrize(("kind", "found", "phase", "result", "up"), WORKLOADS)
def test_a_job_is_as_far_as_its_controller_says(
    kind: Kind, found: Object, phase: str, result: str | None, up: bool
) -> None:
    state = read_workload(kind, found)

    assert (state.phase, state.result, state.up) == (phase, result, up)


IDLE = {"since": "2026-12-03T10:00:00+00:00", "accelerators": 16, "usd_per_hour": 98.5}
ENDS = {"ends": "2026-12-03T12:15:00+00:00"}
ENDED = {"ended": "2026-12-03T12:15:00+00:00"}
SUSPEND = (
    """kubectl patch jobs.batch bert -n training --type=merge -p '{"spec":{"suspend":false}}'"""
)
COST = "16 accelerators not used since 2026-12-03 10:00 UTC: 32.0 accelerator-hours"
USD = ", $197.00"
END = "at 2026-12-03 12:15 UTC"
WAS = [f"{COST.replace('32.0', '36.0')}, $221.62", f"ended for it {END}"]
RESUMED = "vcctl job resume --namespace training --name bert"


@pytest.mark.parametrize(
    ("found", "mark", "lines"),
    [
        (volcano("Running", running=2), IDLE, [COST + USD]),
        (volcano("Running", running=2), IDLE | {"usd_per_hour": None}, [COST]),
        (
            indexed(active=2, ready=2),
            IDLE | ENDS,
            [COST + USD, f"ended {END} unless one of them is used; it can be resumed then"],
        ),
        (volcano("Aborted"), IDLE | ENDED, [*WAS, f"to go on: {RESUMED}"]),
        (indexed("Suspended"), IDLE | ENDED, [*WAS, f"to go on: {SUSPEND}"]),
        # An end that is over; resumed, and waiting; ended by itself; put back by its queue.
        (indexed(active=2, ready=2), IDLE | {"ends": "2026-12-03T11:00:00Z"}, [COST + USD]),
        (volcano("Running", running=2), IDLE | ENDED, []),
        (volcano("Pending"), IDLE | ENDED, []),
        (volcano("Completed"), IDLE, []),
        (indexed("Suspended"), IDLE, []),
        # Written by somebody else.
        (volcano("Running", running=2), {"since": "2026-12-03T10:00:00"}, []),
    ],
)
def test_status_says_what_idle_accelerators_cost_and_the_way_back(
    found: Object, mark: Object, lines: list[str], stub: StubApiServer, cluster: Cluster
) -> None:
    group = "batch.volcano.sh/v1alpha1" if "state" in found["status"] else "batch/v1"
    marked = {"ultrascale.dev/idle": json.dumps(mark)}
    found = {**found, "metadata": {**found["metadata"], "annotations": marked}}
    stub.put(f"/apis/{group}/namespaces/training/jobs/bert", found)
    idle = job_status(cluster, "training", "bert").idle
    now = datetime(2026, 12, 3, 12, tzinfo=UTC)
    assert ([] if idle is None else [*idle.lines(now)]) == lines


PER_INDEX = {"backoffLimit": 2_147_483_647, "backoffLimitPerIndex": 3}
RETRIES: list[tuple[Kind, Object, int, int]] = [
    (VOLCANO_JOB, volcano("Running"), 0, 9),
    (VOLCANO_JOB, volcano("Restarting", retryCount=9), 9, 9),
    # The tenth failure restarts nothing, and Volcano counts it all the same.
    (VOLCANO_JOB, volcano("Failed", retryCount=10), 9, 9),
    (INDEXED_JOB, indexed(active=2), 0, 6),
    (INDEXED_JOB, {**given.indexed_job(), "spec": PER_INDEX, "status": {"failed": 2}}, 2, 3),
]


@pytest.mark.parametrize(("kind", "found", "retries", "most"), RETRIES)
def test_as_many_retries_are_left_as_the_job_asked_for(
    kind: Kind, found: Object, retries: int, most: int
) -> None:
    state = read_workload(kind, found)

    assert (state.retries, state.most_retries) == (retries, most)


def test_jobs_of_every_kind_are_listed_the_newest_first(
    stub: StubApiServer, cluster: Cluster
) -> None:
    old = given.volcano_job("bert", pods=12)
    old["metadata"]["creationTimestamp"] = "2026-11-20T12:00:00Z"
    stub.put(f"{given.VOLCANO_JOBS}/bert", old)
    stub.put(f"{given.DEPLOYMENTS}/chat", given.deployment("chat"))
    stub.put(f"{given.DEPLOYMENTS}/stranger", {"kind": "Deployment"})
    for index in (10, 2, 0):
        pod = given.pod(f"p{index}", index=index, **given.running(f"node-{index}"))
        stub.put(f"{given.PODS}/p{index}", pod)
    chat, bert = jobs_in(cluster, "training")
    assert (chat.name, chat.kind) == ("chat", "Deployment.apps")
    assert (bert.name, bert.queue, bert.counts["running"]) == ("bert", "research", 3)
    assert {*bert.nodes} == {"node-0", "node-2", "node-10"}
    # Its pods are shown in the order of their index.
    assert [pod.index for pod in job_status(cluster, "training", "bert").pods] == [0, 2, 10]


def test_pods_that_a_deleted_job_of_the_same_name_left_are_not_shown_as_its_own(
    stub: StubApiServer, cluster: Cluster
) -> None:
    path = f"{given.VOLCANO_JOBS}/bert"
    stub.put(path, given.volcano_job(pods=1))
    uids = [stub.objects[path]["metadata"]["uid"], "of-the-old"]
    for index, uid in enumerate(uids):
        manifest = given.pod(f"bert-worker0-{index}", index=index, **given.running())
        manifest["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "bert", "uid": uid}]
        stub.put(f"{given.PODS}/bert-worker0-{index}", manifest)
    for job in (job_status(cluster, "training", "bert"), *jobs_in(cluster, "training")):
        assert [pod.name for pod in job.pods] == ["bert-worker0-0"]


def test_cancelling_deletes_what_carries_the_label_and_nothing_else(
    stub: StubApiServer, cluster: Cluster
) -> None:
    given.furnish(stub)
    stub.put(f"{given.CLAIMS}/data", {"metadata": {"labels": {given.JOB_LABEL: "bert"}}})
    for name in ("bert", "bert2"):
        stub.put(f"{given.VOLCANO_JOBS}/{name}", given.volcano_job(name))
        stub.put(f"{given.SERVICES}/{name}", dict(given.manifests(name).objects[0]))
    before = stub.paths()

    cancel(cluster, "training", objects_of(cluster, "training", "bert"))

    assert before - stub.paths() == {f"{given.VOLCANO_JOBS}/bert", f"{given.SERVICES}/bert"}
    for each in stub.asked("DELETE"):
        assert each.body["propagationPolicy"] == "Foreground"


def test_a_job_made_anew_meanwhile_is_not_cancelled_instead(
    stub: StubApiServer, cluster: Cluster
) -> None:
    path = f"{given.VOLCANO_JOBS}/bert"
    with pytest.raises(ClusterError, match="no job bert in namespace training"):
        objects_of(cluster, "training", "bert")
    stub.put(path, given.volcano_job())
    found = objects_of(cluster, "training", "bert")
    stub.remove(path)
    stub.put(path, given.volcano_job())
    with pytest.raises(ClusterError, match="precondition"):
        cancel(cluster, "training", found)
    assert stub.find(path) is not None
    # A right that is missing never hides a part of a job.
    stub.refuse("GET", "/services$", Refusal(403, "services is forbidden"))
    with pytest.raises(ClusterError, match="services is forbidden"):
        objects_of(cluster, "training", "bert")


def group(job: str, phase: str, *, priority: str = "", minute: int = 0) -> Object:
    created = {"creationTimestamp": f"2026-11-21T12:{minute:02}:00Z"}
    return {
        "metadata": {"labels": {given.JOB_LABEL: job}, **created},
        "spec": {"queue": "research", "minMember": 2, "priorityClassName": priority},
        "status": {"phase": phase},
    }


def test_queues_count_their_jobs_and_order_those_that_wait(
    stub: StubApiServer, cluster: Cluster
) -> None:
    given.furnish(stub)
    allocated = {"state": "Open", "allocated": {"aws.amazon.com/neuron": "32"}}
    capability = {"capability": {"aws.amazon.com/neuron": 64}, "weight": 4}
    stub.update(f"{given.QUEUES}/research", status=allocated, spec=capability)
    stub.put(f"{given.POD_GROUPS}/r", group("running", "Running"))
    stub.put(f"{given.POD_GROUPS}/u", group("in-part", "Unknown"))
    stub.put(f"{given.POD_GROUPS}/a", group("late", "Pending", minute=9))
    stub.put(f"{given.POD_GROUPS}/b", group("early", "Inqueue", minute=1))
    stub.put(f"{given.POD_GROUPS}/c", group("urgent", "Pending", priority="high", minute=30))

    queues = read_queues(cluster, "training")

    (research,) = queues.queues
    assert (research.weight, research.pending, research.running) == (4, 3, 2)
    assert research.capability == {"aws.amazon.com/neuron": "64"}
    assert research.allocated == {"aws.amazon.com/neuron": "32"}
    assert [each.job for each in queues.waiting] == ["urgent", "early", "late"]
    assert queues.namespace is None


def test_who_may_read_one_namespace_alone_is_told_that_others_are_missing(
    stub: StubApiServer, cluster: Cluster
) -> None:
    given.furnish(stub)
    stub.put(f"{given.POD_GROUPS}/a", group("mine", "Pending"))
    stub.refuse("GET", "v1beta1/podgroups$", Refusal(403, "podgroups is forbidden"))
    stub.refuse("GET", "/priorityclasses$", Refusal(403, "priorityclasses is forbidden"))
    queues = read_queues(cluster, "training")
    assert [each.job for each in queues.waiting] == ["mine"]
    assert queues.namespace == "training"
    # Queues of no engine are told apart from none.
    stub.groups -= {"/apis/scheduling.volcano.sh/v1beta1", "/apis/kueue.x-k8s.io/v1beta2"}
    with pytest.raises(ClusterError, match="Volcano and Kueue are not installed"):
        read_queues(cluster, "training")
