"""Progress of a job: the state of its pods, and the reason for a delay."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support import job_manifests as given
from tests.support import soak
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.objects import DEPLOYMENT, INDEXED_JOB
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.progress import Followed, Progress, follow
from ultrascale.parts.volcano.workloads import VOLCANO_JOB

JOB = f"{given.VOLCANO_JOBS}/bert"
POD = f"{given.PODS}/bert-worker0-0"
FOLLOWED = Followed(name="bert", namespace="training", kinds=(VOLCANO_JOB,))


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.put(JOB, given.volcano_job(pods=1))
    with serve(server):
        yield server


class Following:
    """Follows a job in a thread of its own."""

    def __init__(
        self,
        cluster: Cluster,
        job: Followed = FOLLOWED,
        until: Callable[[Progress], bool] = lambda progress: progress.up,
    ) -> None:
        self.seen: list[Progress] = []
        self.error: ClusterError | None = None
        self._thread = threading.Thread(target=self._run, args=(cluster, job, until))
        self._thread.start()

    def _run(self, cluster: Cluster, job: Followed, until: Callable[[Progress], bool]) -> None:
        try:
            follow(cluster, job, until=until, report=self.seen.append, timeout_seconds=60)
        except ClusterError as error:
            self.error = error

    def sees(self, what: Callable[[Progress], bool]) -> Progress:
        """Wait until a progress is as said, and return it."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for progress in self.seen:
                if what(progress):
                    return progress
            time.sleep(0.02)
        raise AssertionError(f"never seen; last: {self.seen[-1:]}, {self.error}")

    def ends(self) -> Progress:
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.seen[-1]


def start(stub: StubApiServer, *, pods: int = 1) -> None:
    """Let Volcano and the kubelets start all pods."""
    for index in range(pods):
        path = f"{given.PODS}/bert-worker0-{index}"
        stub.put(path, given.pod(path.rpartition("/")[2], index=index, **given.running()))
    stub.update(JOB, status={"state": {"phase": "Running"}, "running": pods})


def test_a_job_is_followed_from_its_queue_to_running(stub: StubApiServer, cluster: Cluster) -> None:
    following = Following(cluster)
    following.sees(lambda each: each.state.phase == "Pending" and each.pods["pending"] == 0)

    stub.put(POD, given.pod("bert-worker0-0"))
    following.sees(lambda each: each.pods["pending"] == 1)
    stub.update(POD, spec={"nodeName": "node-1"})
    following.sees(lambda each: each.pods["scheduled"] == 1)
    stub.update(POD, **given.waiting("ContainerCreating"))
    following.sees(lambda each: each.pods["pulling"] == 1)
    start(stub)

    progress = following.ends()
    assert progress.pods["running"] == 1
    assert progress.waiting == ()


def volcano_group(stub: StubApiServer) -> None:
    conditions = [{"type": "Unschedulable", "status": "True", "message": "quota insufficient"}]
    group = {
        "metadata": {"labels": {given.JOB_LABEL: "bert"}},
        "spec": {"queue": "research", "minMember": 1},
        "status": {"phase": "Pending", "conditions": conditions},
    }
    stub.put(f"{given.POD_GROUPS}/bert-uid", group)


def refused_by_quota(stub: StubApiServer) -> None:
    of = {"kind": "Job", "name": "bert", "uid": stub.objects[JOB]["metadata"]["uid"]}
    event = {"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    stub.put(f"{given.NAMESPACE}/events/bert.1", event | {"involvedObject": of})


def pods_without_room(stub: StubApiServer) -> None:
    for index in range(3):
        pod = given.pod(f"bert-worker0-{index}", index=index, **given.unschedulable("no room"))
        stub.put(f"{given.PODS}/bert-worker0-{index}", pod)


# The commonest reason is told once for all its pods.
@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (volcano_group, "Volcano: quota insufficient"),
        (refused_by_quota, "FailedCreate: exceeded quota: gpus"),
        (pods_without_room, "3 pods: Unschedulable: no room"),
    ],
)
def test_why_no_pod_starts_is_told(
    stub: StubApiServer, cluster: Cluster, happens: Callable[[StubApiServer], None], told: str
) -> None:
    happens(stub)
    following = Following(cluster)
    following.sees(lambda each: each.waiting == (told,))
    start(stub)
    following.ends()


REASONS = [
    (given.unschedulable("0/8 nodes are available: 8 Insufficient nvidia.com/gpu."), "8 Insuff"),
    (given.waiting("ImagePullBackOff", 'image "bert:v9" not found'), '"bert:v9" not found'),
    (given.waiting("CreateContainerConfigError", 'secret "s" not found'), 'secret "s" not found'),
]


@pytest.mark.parametrize(("fields", "told"), REASONS)
def test_what_keeps_a_pod_from_running_is_told(
    stub: StubApiServer, cluster: Cluster, fields: dict[str, object], told: str
) -> None:
    following = Following(cluster)
    stub.put(POD, given.pod("bert-worker0-0"))

    stub.update(POD, **fields)

    following.sees(lambda each: any(told in reason for reason in each.waiting))
    start(stub)
    following.ends()


def test_what_happened_to_a_deleted_job_of_the_same_name_is_not_told_of_this_one(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Events stay for an hour, and pods and PodGroups until the garbage collector comes."""
    event = {"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    of_the_old = {"kind": "Job", "name": "bert", "uid": "uid-of-the-old"}
    stub.put(f"{given.NAMESPACE}/events/bert.1", {**event, "involvedObject": of_the_old})
    old_pod = given.pod("bert-worker0-9", index=9, **given.unschedulable("0/8 nodes"))
    old_pod["metadata"]["ownerReferences"] = [of_the_old]
    stub.put(f"{given.PODS}/bert-worker0-9", old_pod)
    metadata = {"labels": {given.JOB_LABEL: "bert"}, "ownerReferences": [of_the_old]}
    group = {"metadata": metadata, "spec": {"queue": "research", "minMember": 8}}
    group["status"] = {"phase": "Pending"}
    stub.put(f"{given.POD_GROUPS}/bert-uid-of-the-old", group)
    following = Following(cluster)
    seen = following.sees(lambda each: each.state.phase == "Pending")
    assert seen.waiting == ()
    assert sum(seen.pods.values()) == 0
    start(stub)
    assert sum(following.ends().pods.values()) == 1


def test_a_job_is_not_up_before_its_least_pods_run(stub: StubApiServer, cluster: Cluster) -> None:
    stub.put(JOB, given.volcano_job(pods=3, minAvailable=2))
    following = Following(cluster)

    start(stub, pods=1)
    following.sees(lambda each: each.pods["running"] == 1)
    time.sleep(0.7)
    assert not following.seen[-1].up

    start(stub, pods=2)
    assert following.ends().up


def test_a_watch_whose_past_is_gone_lists_anew(stub: StubApiServer, cluster: Cluster) -> None:
    following = Following(cluster)
    following.sees(lambda _: True)
    stub.put(POD, given.pod("bert-worker0-0"))
    following.sees(lambda each: each.pods["pending"] == 1)

    stub.remove(POD)
    stub.compact()

    following.sees(lambda each: each is following.seen[-1] and each.pods["pending"] == 0)
    start(stub)
    following.ends()


def test_a_connection_that_breaks_loses_nothing(stub: StubApiServer, cluster: Cluster) -> None:
    # A server that fails for a while is asked again, and who may not read events can still follow.
    stub.refuse("GET", "/pods$", Refusal(500, "etcdserver: leader changed", times=2))
    stub.refuse("GET", "/(events|podgroups)$", Refusal(403, "events is forbidden"))
    following = Following(cluster)
    following.sees(lambda _: True)
    for _ in range(3):
        stub.break_streams()
        time.sleep(0.1)
    start(stub)
    assert following.ends().up


def test_a_right_that_is_missing_ends_it_at_once(stub: StubApiServer, cluster: Cluster) -> None:
    told = 'User "me" cannot watch resource "pods"'
    stub.refuse("GET", "/pods$", Refusal(403, told))

    with pytest.raises(ClusterError, match=told):
        Following(cluster).ends()


def test_thousands_of_pods_are_listed_once_and_never_again(
    stub: StubApiServer, cluster: Cluster
) -> None:
    pods = 10_000 if soak.LONG else 2_000
    stub.put(JOB, given.volcano_job(pods=pods))
    for index in range(pods):
        name = f"bert-worker0-{index}"
        stub.put(f"{given.PODS}/{name}", given.pod(name, index=index))
    following = Following(cluster)
    following.sees(lambda each: each.pods["pending"] == pods)
    asked = len(stub.requests)

    for index in range(pods):
        stub.update(f"{given.PODS}/bert-worker0-{index}", **given.running())
    stub.update(JOB, status={"state": {"phase": "Running"}, "running": pods})

    assert following.ends().pods["running"] == pods
    lists = [each for each in stub.asked("GET", "/pods") if "watch" not in each.query]
    assert len(lists) == pods / 500
    watches = len([each for each in stub.requests[:asked] if "watch" in each.query])
    assert len(stub.requests) - asked <= 3 - watches + 1


def test_a_job_that_fails_is_not_waited_for(stub: StubApiServer, cluster: Cluster) -> None:
    state = {"phase": "Failed", "reason": "JobMaxRetryExceeded"}
    stub.update(JOB, status={"state": state, "retryCount": 10})

    progress = Following(cluster).ends()

    assert (progress.state.result, progress.state.reason) == ("failed", "JobMaxRetryExceeded")


def test_a_job_that_is_deleted_meanwhile_is_not_waited_for(
    stub: StubApiServer, cluster: Cluster
) -> None:
    following = Following(cluster)
    following.sees(lambda _: True)

    stub.remove(JOB)

    with pytest.raises(ClusterError, match="deleted meanwhile"):
        following.ends()


def test_nodes_that_stand_idle_while_their_gang_waits_are_told_with_the_way_out(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Karpenter takes them for free, and launches none for the pods that fit nowhere."""
    stub.update(JOB, spec=given.volcano_job(pods=4)["spec"])
    for index in range(3):
        fits = given.unschedulable(f"Pod can possibly be assigned to node-{index}")
        fits["status"]["conditions"][0]["reason"] = "Schedulable"
        stub.put(f"{given.PODS}/{index}", given.pod(f"bert-worker0-{index}", index=index, **fits))
    last = given.pod("bert-worker0-3", index=3, **given.unschedulable("no room"))
    stub.put(f"{given.PODS}/3", last)

    following = Following(cluster)
    progress = following.sees(lambda each: each.pods["pending"] == 4)
    stub.update(JOB, status={"state": {"phase": "Aborted"}})
    following.ends()

    assert progress.waiting[0] == "Unschedulable: no room"
    assert progress.waiting[1].startswith("3 of 4 pods fit on nodes that are there")
    assert "delete the nodes that stay idle" in progress.waiting[1]


def test_a_time_limit_tells_why_the_job_waits(stub: StubApiServer, cluster: Cluster) -> None:
    stub.put(POD, given.pod("bert-worker0-0", **given.unschedulable("no room")))

    with pytest.raises(ClusterError, match=r"Pending after 1 s \(Unschedulable: no room\)"):
        follow(
            cluster, FOLLOWED, until=lambda each: each.up, report=lambda _: None, timeout_seconds=1
        )


def test_an_indexed_job_is_followed_without_volcano(stub: StubApiServer, cluster: Cluster) -> None:
    stub.groups -= {"/apis/batch.volcano.sh/v1alpha1", "/apis/scheduling.volcano.sh/v1beta1"}
    path = f"{given.INDEXED_JOBS}/bert"
    stub.put(path, given.indexed_job(pods=1))
    stub.put(POD, given.pod("bert-0", **given.running()))
    stub.update(path, status={"active": 1, "ready": 1})

    progress = Following(
        cluster, Followed(name="bert", namespace="training", kinds=(INDEXED_JOB,))
    ).ends()

    assert (progress.state.phase, progress.up) == ("Running", True)


def test_a_service_is_up_when_the_new_pods_serve(stub: StubApiServer, cluster: Cluster) -> None:
    path = f"{given.DEPLOYMENTS}/bert"
    stub.put(path, given.deployment("bert", pods=1))
    before = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    stub.update(path, metadata={"generation": 2}, status=before)
    stub.put(POD, given.pod("bert-0", **given.running()))
    following = Following(cluster, Followed(name="bert", namespace="training", kinds=(DEPLOYMENT,)))
    assert not following.sees(lambda _: True).up

    stub.update(path, status={"observedGeneration": 2})

    assert following.ends().up


def test_following_ends_without_a_thread_left(stub: StubApiServer, cluster: Cluster) -> None:
    start(stub)

    for _ in range(5):
        follow(cluster, FOLLOWED, until=lambda each: each.up, report=lambda _: None)

        assert [each for each in threading.enumerate() if "_watch" in each.name] == []
