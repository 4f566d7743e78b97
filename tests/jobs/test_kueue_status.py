"""Status of jobs under Kueue: how far a JobSet is, and why it waits."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.job_manifests import holding, workload
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.pods import place_of
from ultrascale.jobs.progress import Followed, Progress, follow
from ultrascale.jobs.queues import read_queues
from ultrascale.jobs.status import job_status, jobs_in
from ultrascale.jobs.workloads import read_workload
from ultrascale.parts.kueue import queues as admission
from ultrascale.parts.kueue.workloads import JOBSET


def roles(**state: int) -> list[Object]:
    return [{"name": "worker", **state}]


RESTARTING = holding("RestartingJobSet", "DefaultFailurePolicy")
STATES: list[tuple[Object, str, str | None, bool]] = [
    (given.jobset(), "Pending", None, False),
    (given.jobset(suspend=True), "Suspended", None, False),
    (given.jobset(replicatedJobsStatus=roles(active=1)), "Pending", None, False),
    (given.jobset(replicatedJobsStatus=roles(ready=1)), "Running", None, True),
    # What the status says of the pods before is not yet taken back.
    (
        given.jobset(replicatedJobsStatus=roles(ready=1), conditions=[RESTARTING]),
        "Restarting",
        None,
        False,
    ),
    (given.jobset(conditions=[holding("Completed")]), "Completed", "succeeded", True),
    (given.jobset(conditions=[holding("Failed", "ReachedMaxRestarts")]), "Failed", "failed", False),
]


@pytest.mark.parametrize(("found", "phase", "result", "up"), STATES)
def test_a_jobset_is_as_far_as_its_controller_says(
    found: Object, phase: str, result: str | None, up: bool
) -> None:
    state = read_workload(JOBSET, found)

    assert (state.phase, state.result, state.up, state.wanted) == (phase, result, up, 2)


def test_restarts_by_lost_nodes_are_told_and_count_towards_no_limit() -> None:
    state = read_workload(JOBSET, given.jobset(restarts=7, restartsCountTowardsMax=3))

    assert (state.retries, state.most_retries) == (3, 10)
    assert "restarted 4 times" in state.reason


LATE = holding("Evicted", "PodsReadyTimeout", "Exceeded the PodsReady timeout")
PENDING = holding("QuotaReserved", "Pending", "8 more needed", status=False)
ADMITTED: dict[str, Any] = {
    "admission": {
        "clusterQueue": "research",
        "podSetAssignments": [{"name": "worker", "flavors": {"nvidia.com/gpu": "burst"}}],
    }
}
NOT_READY = holding("PodsReady", "WaitForStart", status=False)
REASONS: dict[str, tuple[Object, tuple[str, ...]]] = {
    "too little quota": (workload(PENDING), ("waits in queue research: 8 more needed",)),
    "not looked at yet": (workload(), ("waits in queue research",)),
    "stock-out": (
        workload(holding("Admitted"), NOT_READY, **ADMITTED),
        ("admitted on burst at 2026-11-21T12:01:00Z", "paid for", "tries the same nodes again"),
    ),
    "a lost node": (
        workload(
            holding("Admitted"), holding("PodsReady", "WaitForRecovery", status=False), **ADMITTED
        ),
        ("runs on burst, and waits for pods that it has lost",),
    ),
    "put back by a stock-out": (
        workload(LATE, PENDING, requeueState={"count": 3, "requeueAt": "2026-11-21T12:09:00Z"}),
        ("put back 3 times", "nodes did not come", "again from 2026-11-21T12:09:00Z", "8 more"),
    ),
    "preempted": (
        workload(
            holding("Evicted", "Preempted"),
            holding("Preempted", "InCohortReclamation", "for workload x"),
            PENDING,
        ),
        ("was put back (InCohortReclamation: for workload x)", "8 more needed"),
    ),
    "given up": (
        workload(
            holding("Evicted", "DeactivatedDueToRequeuingLimitExceeded"), PENDING, active=False
        ),
        ("given it up (DeactivatedDueToRequeuingLimitExceeded)", '\'{"spec":{"active":true}}\''),
    ),
    "checks": (
        workload(
            holding("QuotaReserved"),
            admissionChecks=[
                {"name": "budget", "state": "Pending"},
                {"name": "x", "state": "Ready"},
            ],
        ),
        ("has its quota in queue research, and waits for budget",),
    ),
    "none": (workload(holding("Admitted"), holding("PodsReady"), **ADMITTED), ()),
    "ended": (workload(holding("Finished"), PENDING), ()),
}


@pytest.mark.parametrize("case", REASONS)
def test_a_job_tells_why_kueue_lets_it_wait(case: str) -> None:
    found, words = REASONS[case]

    said = admission.reason(found)

    assert all(word in said for word in words)
    assert bool(said) == bool(words)


def put(stub: StubApiServer, found: Object) -> str:
    """Put a JobSet, and return its UID."""
    path = f"{given.JOBSETS}/bert"
    stub.put(path, found)
    return str(stub.objects[path]["metadata"]["uid"])


def test_status_shows_the_reason_of_the_jobs_own_workload(
    stub: StubApiServer, cluster: Cluster
) -> None:
    uid = put(stub, given.jobset(suspend=True))
    stub.put(f"{given.WORKLOADS}/a", workload(PENDING, of=uid))
    stub.put(f"{given.WORKLOADS}/b", workload(LATE, of="of-another"))
    job = job_status(cluster, "training", "bert")
    assert (job.kind, job.queue) == ("JobSet.jobset.x-k8s.io", "research")
    assert job.state.reason == "waits in queue research: 8 more needed"
    # Who may not read workloads is told the queue.
    stub.refuse("GET", "/workloads", Refusal(403, "workloads is forbidden"))
    assert "waits in queue research" in job_status(cluster, "training", "bert").state.reason


@pytest.mark.parametrize(("running", "phase"), [(1, "Pending"), (2, "Running"), (3, "Running")])
def test_a_jobset_that_goes_on_with_fewer_pods_runs(
    stub: StubApiServer, cluster: Cluster, running: int, phase: str
) -> None:
    """JobSet counts its pods as ready only when none is missing."""
    uid = put(stub, given.jobset(pods=4, enough=2, replicatedJobsStatus=roles(active=1)))
    for index in range(running):
        name = f"bert-worker-0-{index}-x"
        pod = given.jobset_pod(name, index=index, of=uid, **given.running())
        stub.put(f"{given.PODS}/{name}", pod)

    assert job_status(cluster, "training", "bert").state.phase == phase


def test_pods_of_a_jobset_are_shown_by_index_and_those_of_a_deleted_one_are_not(
    stub: StubApiServer, cluster: Cluster
) -> None:
    uid = put(stub, given.jobset(pods=11, replicatedJobsStatus=roles(ready=1)))
    for index in (10, 2, 0):
        name = f"bert-worker-0-{index}-x"
        stub.put(f"{given.PODS}/{name}", given.jobset_pod(name, index=index, of=uid))
    stub.put(f"{given.PODS}/old", given.jobset_pod("old", index=1, of="of-the-old"))

    shown = job_status(cluster, "training", "bert").pods

    assert [pod.index for pod in shown] == [0, 2, 10]
    assert [len(job.pods) for job in jobs_in(cluster, "training")] == [3]


def test_the_log_of_a_pod_is_found_by_its_role_and_index() -> None:
    made = [(JOBSET, given.jobset(pods=4))]

    assert place_of(3, made) == {
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-completion-index": "3",
    }
    with pytest.raises(LookupError):
        place_of(4, made)


def followed(cluster: Cluster, until: Callable[[Progress], bool]) -> Progress:
    own = Followed(name="bert", namespace="training", kinds=(JOBSET,))
    return follow(cluster, own, until=until, report=lambda _: None, timeout_seconds=20)


def test_who_follows_a_job_reads_why_it_waits(stub: StubApiServer, cluster: Cluster) -> None:
    uid = put(stub, given.jobset(suspend=True))
    stub.put(f"{given.WORKLOADS}/a", workload(PENDING, of=uid))
    progress = followed(cluster, lambda progress: bool(progress.waiting))
    assert progress.waiting == ("waits in queue research: 8 more needed",)
    # Who waits for a job that Kueue has given up waits no longer.
    late = holding("Evicted", "DeactivatedDueToRequeuingLimitExceeded")
    stub.put(f"{given.WORKLOADS}/a", workload(late, PENDING, of=uid, active=False))
    progress = followed(cluster, lambda _: False)
    assert progress.state.result == "failed"
    assert "Kueue has given it up" in progress.state.reason


def test_cancelling_deletes_the_jobset_and_leaves_its_jobs_to_their_owner(
    stub: StubApiServer, cluster: Cluster
) -> None:
    put(stub, given.jobset())

    deleted = cancel(cluster, "training", objects_of(cluster, "training", "bert"))

    assert [str(each) for each in deleted] == ["JobSet bert"]


def queue(kind: str, **status: Any) -> Object:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": 24}]
    groups = [{"flavors": [{"name": "reserved", "resources": quota}]}]
    return {
        "kind": kind,
        "spec": {"resourceGroups": groups} if kind == "ClusterQueue" else {},
        "status": {
            "pendingWorkloads": 2,
            "admittedWorkloads": 1,
            "conditions": [holding("Active")],
            **status,
        },
    }


def waiting_in_queue(job: str, *conditions: Object, priority: int = 0, minute: int = 0) -> Object:
    found = workload(*conditions)
    found["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": job}]
    found["metadata"]["creationTimestamp"] = f"2026-11-21T12:{minute:02}:00Z"
    found["spec"]["priority"] = priority
    return found


def test_kueues_queues_tell_their_quota_what_they_borrow_and_who_waits(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups -= {"/apis/scheduling.volcano.sh/v1beta1"}
    used = {"name": "nvidia.com/gpu", "total": 32, "borrowed": 8}
    reserved = [{"name": "reserved", "resources": [used]}]
    stub.put(f"{given.CLUSTER_QUEUES}/a", queue("ClusterQueue", flavorsReservation=reserved))
    stub.put(f"{given.WORKLOADS}/late", waiting_in_queue("late", PENDING, minute=9))
    stub.put(f"{given.WORKLOADS}/early", waiting_in_queue("early", PENDING, minute=1))
    stub.put(f"{given.WORKLOADS}/urgent", waiting_in_queue("urgent", priority=9, minute=30))
    stub.put(f"{given.WORKLOADS}/runs", waiting_in_queue("runs", holding("QuotaReserved")))

    queues = read_queues(cluster, "training")

    (found,) = queues.queues
    assert (found.state, found.pending, found.running) == ("Active", 2, 1)
    assert found.capability == {"reserved nvidia.com/gpu": "24"}
    assert found.allocated == {"reserved nvidia.com/gpu": "32 (8 borrowed)"}
    assert [each.job for each in queues.waiting] == ["urgent", "early", "late"]
    assert (queues.waiting[1].pods, queues.namespace) == (2, None)
    assert "8 more needed" in queues.waiting[1].reason


def test_a_job_of_roles_that_starves_those_behind_it_is_named(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Kueue tries it without end, and gives the jobs behind it no condition."""
    stub.groups -= {"/apis/scheduling.volcano.sh/v1beta1"}
    ahead, behind = waiting_in_queue("rl", PENDING), waiting_in_queue("starved", minute=9)
    urgent = waiting_in_queue("urgent", priority=9, minute=9)
    ahead["spec"]["podSets"] *= 2
    for found in (ahead, behind, urgent, waiting_in_queue("seen", PENDING, minute=9)):
        stub.put(f"{given.WORKLOADS}/{found['metadata']['ownerReferences'][0]['name']}", found)

    reasons = {each.job: each.reason for each in read_queues(cluster, "training").waiting}

    assert [job for job, reason in reasons.items() if "cancel rl" in reason] == ["starved"]


def test_who_may_read_one_namespace_alone_sees_its_queues_of_kueue(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups -= {"/apis/scheduling.volcano.sh/v1beta1"}
    stub.put(f"{given.LOCAL_QUEUES}/a", queue("LocalQueue"))
    stub.put(f"{given.WORKLOADS}/mine", waiting_in_queue("mine"))
    stub.refuse("GET", "v1beta2/clusterqueues$", Refusal(403, "clusterqueues is forbidden"))
    stub.refuse("GET", "v1beta2/workloads$", Refusal(403, "workloads is forbidden"))

    queues = read_queues(cluster, "training")

    assert ([each.name for each in queues.queues], queues.namespace) == (["a"], "training")
    assert [each.job for each in queues.waiting] == ["mine"]
