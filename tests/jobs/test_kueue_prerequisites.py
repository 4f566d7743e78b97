"""A job for a queue of Kueue is sent only where that queue can admit it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.cluster_api.objects import CLUSTER_QUEUE, LOCAL_QUEUE
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.prerequisites import check
from ultrascale.parts.kueue.workloads import JOBSET

QUEUE = "foundation"
UNUSABLE = "Can't submit new workloads to clusterQueue"
LACKING = "Can't admit new workloads: references missing ResourceFlavor(s): spot."
JOB = given.manifests(objects=(given.indexed_job(),), queue=None, local_queue=QUEUE)


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.groups = {group for group in server.groups if "volcano" not in group}
    given.furnish(server)
    with serve(server) as running:
        yield running


def put_queues(stub: StubApiServer, **local: Any) -> None:
    stub.put(LOCAL_QUEUE.path("training", QUEUE), queue(**local))
    stub.put(CLUSTER_QUEUE.path(name=QUEUE), queue("False", LACKING))


def queue(active: str = "True", told: str = "", **spec: Any) -> Object:
    conditions = [{"type": "Active", "status": active, "message": told}]
    return {
        "metadata": {"name": QUEUE},
        "spec": {"clusterQueue": QUEUE, **spec},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("local", "told"),
    [
        ({"active": "True"}, None),
        ({"active": "False", "told": UNUSABLE}, LACKING),
        (
            {"active": "False", "told": "LocalQueue is stopped", "stopPolicy": "Hold"},
            "LocalQueue is stopped",
        ),
    ],
)
def test_a_queue_that_admits_nothing_is_told_with_its_reason_before_anything_waits_in_it(
    stub: StubApiServer, cluster: Cluster, local: dict[str, Any], told: str | None
) -> None:
    put_queues(stub, **local)

    if told is None:
        assert check(cluster, JOB) == ()
        return
    with pytest.raises(ClusterError) as error:
        check(cluster, JOB)
    assert str(error.value) == (
        f"bert: queue {QUEUE} admits no job ({told}); deploy the cluster file's stacks, or see "
        f"`kubectl describe clusterqueue {QUEUE}`"
    )


def test_who_may_not_read_the_cluster_queue_is_told_what_its_local_queue_says(
    stub: StubApiServer, cluster: Cluster
) -> None:
    put_queues(stub, active="False", told=UNUSABLE)
    stub.refuse("GET", "/clusterqueues/", Refusal(403, "clusterqueues is forbidden"))

    with pytest.raises(ClusterError, match=UNUSABLE):
        check(cluster, JOB)


def test_a_cluster_without_kueue_is_told_apart_from_a_missing_queue(
    stub: StubApiServer, cluster: Cluster
) -> None:
    with pytest.raises(ClusterError, match=f"queue {QUEUE} does not exist in namespace training"):
        check(cluster, JOB)

    stub.groups.discard(LOCAL_QUEUE.group_path)

    with pytest.raises(ClusterError, match="Kueue is not installed"):
        check(cluster, JOB)


def test_a_service_of_somebody_else_would_leave_the_pods_of_a_jobset_without_names(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """JobSet takes a Service of its name for its own, whatever pods that selects."""
    put_queues(stub)
    jobset = given.indexed_job() | {"apiVersion": JOBSET.api_version, "kind": JOBSET.kind}
    job = given.manifests(objects=(jobset,), queue=None, local_queue=QUEUE)
    assert check(cluster, job) == ()

    stub.put(f"{given.SERVICES}/bert", {"kind": "Service", "metadata": {"name": "bert"}})

    with pytest.raises(ClusterError, match="Service bert exists already"):
        check(cluster, job)

    stub.groups.discard(JOBSET.group_path)

    with pytest.raises(ClusterError, match="JobSet is not installed"):
        check(cluster, job)
