"""A PyTorchJob is followed, read and taken away as any other job is."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.job_manifests import PYTORCH_JOBS, pytorch_job, pytorch_pod
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs import logs, submission
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.pods import place_of
from ultrascale.jobs.status import job_status, jobs_in
from ultrascale.jobs.workloads import read_workload
from ultrascale.parts.hyperpod.workloads import PYTORCH_JOB

QUEUE = "hyperpod-ns-research-localqueue"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/localqueues"


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.groups |= {"/apis/kubeflow.org/v1", "/apis/kueue.x-k8s.io/v1beta2"}
    given.furnish(server)
    with serve(server) as running:
        yield running


def conditions(*held: str, told: str = "") -> dict[str, Any]:
    """Return a status in which ``held`` hold: the operator keeps those of before, as False."""
    before = [{"type": "Created", "status": "True", "reason": "PyTorchJobCreated"}]
    now = [{"type": each, "status": "True", "message": told} for each in held]
    return {"conditions": [*before, {"type": "Restarting", "status": "False"}, *now]}


@pytest.mark.parametrize(
    ("status", "active", "phase", "result", "up", "reason"),
    [
        ({}, 0, "Pending", None, False, ""),
        (conditions(), 0, "Pending", None, False, ""),
        (conditions("Running"), 1, "Running", None, False, ""),
        (conditions("Running"), 2, "Running", None, True, ""),
        (conditions("Succeeded"), 0, "Succeeded", "succeeded", True, ""),
        (conditions("Failed", told="backoff limit"), 0, "Failed", "failed", False, "backoff limit"),
        (conditions("Suspended", told="is suspended"), 0, "Suspended", None, False, "is suspended"),
    ],
)
def test_how_far_a_pytorchjob_is_is_what_its_conditions_say(
    status: dict[str, Any], active: int, phase: str, result: str | None, up: bool, reason: str
) -> None:
    workers = {"Worker": {"active": active}} if active else {}
    state = read_workload(PYTORCH_JOB, pytorch_job(**status, replicaStatuses=workers))
    assert (state.phase, state.result, state.up, state.reason) == (phase, result, up, reason)
    assert (state.wanted, state.least) == (2, 2)
    # One that its team's quota holds back says which queue it waits in.
    held = read_workload(PYTORCH_JOB, pytorch_job(queue=QUEUE, **conditions("Suspended")))
    assert held.reason == f"waits in queue {QUEUE} for quota for all of it"


def test_its_pods_are_in_the_order_of_their_index(stub: StubApiServer, cluster: Cluster) -> None:
    stub.put(f"{PYTORCH_JOBS}/bert", pytorch_job(pods=11, queue=QUEUE))
    for index in (10, 2, 0):
        pod = pytorch_pod(f"bert-worker-{index}", index=index, **given.running())
        stub.put(f"{given.PODS}/bert-worker-{index}", pod)

    found = job_status(cluster, "training", "bert")

    assert [pod.index for pod in found.pods] == [0, 2, 10]
    assert (found.kind, found.queue) == ("PyTorchJob.kubeflow.org", QUEUE)
    assert [job.name for job in jobs_in(cluster, "training")] == ["bert"]


def test_the_log_of_one_rank_is_read(stub: StubApiServer, cluster: Cluster) -> None:
    stub.put(f"{PYTORCH_JOBS}/bert", pytorch_job())
    for index in range(2):
        path = f"{given.PODS}/bert-worker-{index}"
        stub.put(path, pytorch_pod(path, index=index, **given.running()))
        stub.put(path, pytorch_pod(f"bert-worker-{index}", index=index, **given.running()))
        stub.write(path, f"2026-11-21T12:00:00Z rank {index}", ends=True)

    lines = logs.lines(cluster, "training", "bert", logs.Choice(index=1), follow=False)

    assert [*lines] == ["rank 1"]
    assert place_of(1, [(PYTORCH_JOB, pytorch_job())]) == {
        "training.kubeflow.org/replica-index": "1"
    }


def test_it_is_taken_away_with_its_service(stub: StubApiServer, cluster: Cluster) -> None:
    job = given.manifests(objects=(given.service("bert").objects[0], pytorch_job()), queue=None)
    submission.send(cluster, job)

    gone = cancel(cluster, "training", objects_of(cluster, "training", "bert"))

    assert sorted(str(each) for each in gone) == ["PyTorchJob bert", "Service bert"]
    assert stub.find(f"{PYTORCH_JOBS}/bert") is None


def test_without_the_training_operator_nothing_is_sent(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.groups.remove("/apis/kubeflow.org/v1")

    with pytest.raises(ClusterError) as error:
        submission.send(cluster, given.manifests(objects=(pytorch_job(),), queue=None))

    assert str(error.value) == (
        "bert: the cluster serves no pytorchjobs.kubeflow.org, so Kubeflow's training operator is "
        "not installed; deploy the cluster file's stacks, of which HyperPod's chart brings it"
    )


def test_a_queue_that_no_quota_has_made_yet_is_named(stub: StubApiServer, cluster: Cluster) -> None:
    job = given.manifests(objects=(pytorch_job(),), queue=None, local_queue=QUEUE)
    with pytest.raises(ClusterError, match=f"queue {QUEUE} does not exist in namespace training"):
        submission.send(cluster, job)
    stub.put(f"{QUEUES}/{QUEUE}", {"kind": "LocalQueue"})
    submission.send(cluster, job)
    assert stub.find(f"{PYTORCH_JOBS}/bert") is not None
    # A name that a PyTorchJob has is taken.
    stub.put(f"{PYTORCH_JOBS}/bert", pytorch_job(**conditions("Running")))
    with pytest.raises(ClusterError, match=r"PyTorchJob bert exists already \(Running\)"):
        submission.send(cluster, given.manifests(objects=(given.indexed_job(),), queue=None))


@pytest.mark.parametrize("served", [True, False])
def test_a_right_that_is_missing_counts_only_where_the_kind_is_installed(
    stub: StubApiServer, cluster: Cluster, served: bool
) -> None:
    """Rights are looked at first: without one, a kind that nobody installed is forbidden too."""
    stub.put(f"{given.INDEXED_JOBS}/bert", given.indexed_job())
    stub.refuse("GET", "/pytorchjobs$", Refusal(403, "pytorchjobs is forbidden"))
    if not served:
        stub.groups.remove("/apis/kubeflow.org/v1")
        assert [job.name for job in jobs_in(cluster, "training")] == ["bert"]
        return

    with pytest.raises(ClusterError, match="pytorchjobs is forbidden"):
        jobs_in(cluster, "training")
