"""Logs of a job: each line once, through restarts of its pods."""

import threading
import time
from collections.abc import Iterator

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs import logs
from ultrascale.jobs.logs import Choice, read_table
from ultrascale.plan.names import NODE_READER

JOB = f"{given.VOLCANO_JOBS}/bert"
FIRST = Choice()
POD = f"{given.PODS}/bert-worker0-0"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LOOK", 0.05)


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.put(JOB, given.volcano_job(pods=2))
    for index in range(2):
        name = f"bert-worker0-{index}"
        server.put(f"{given.PODS}/{name}", given.pod(name, index=index, **given.running()))
    with serve(server):
        yield server


def at(second: int, text: str) -> str:
    return f"2026-11-21T12:00:{second:02}.000000001Z {text}"


def end(stub: StubApiServer, *pods: str) -> None:
    for pod in pods:
        stub.update(pod, status={"phase": "Succeeded"})
    stub.update(JOB, status={"state": {"phase": "Completed"}})


class Reading:
    """Follows one pod's log in a thread of its own."""

    def __init__(self, cluster: Cluster, choice: Choice = FIRST) -> None:
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._run, args=(cluster, choice))
        self._thread.start()

    def _run(self, cluster: Cluster, choice: Choice) -> None:
        for line in logs.lines(cluster, "training", "bert", choice, follow=True):
            self.lines.append(line)

    def sees(self, line: str) -> None:
        deadline = time.monotonic() + 10
        while line not in self.lines:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.01)

    def ends(self) -> list[str]:
        self._thread.join(timeout=10)
        assert not self._thread.is_alive()
        return self.lines


def read(cluster: Cluster, choice: Choice = FIRST) -> list[str]:
    return [*logs.lines(cluster, "training", "bert", choice, follow=False)]


def test_the_first_pod_is_read_unless_another_is_named(
    stub: StubApiServer, cluster: Cluster
) -> None:
    progress = "100%|█| loss=0.1"
    stub.write(POD, at(1, "step 1"), at(2, progress), at(3, ""))
    stub.write(f"{given.PODS}/bert-worker0-1", at(1, "from 1"))
    assert read(cluster) == ["step 1", progress, ""]
    assert read(cluster, Choice(tail=2)) == [progress, ""]
    # A rank is an index where pods compute no ranks.
    for choice in (Choice(index=1), Choice(rank=1), Choice(pod="bert-worker0-1")):
        assert read(cluster, choice) == ["from 1"]


def test_the_index_counts_through_tasks_and_parts_of_a_job(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.remove(JOB)
    for part in range(1, 12):
        owner = f"bert-{part}"
        job = given.volcano_job("bert", pods=2, tasks=2)
        job["metadata"]["name"] = owner
        stub.put(f"{given.VOLCANO_JOBS}/{owner}", job)
        for task in range(2):
            name = f"{owner}-worker{task}-0"
            fields = given.pod(name, owner=owner, task=f"worker{task}", **given.running())
            stub.put(f"{given.PODS}/{name}", fields)
            stub.write(f"{given.PODS}/{name}", at(1, name))

    assert read(cluster, Choice(index=0)) == ["bert-1-worker0-0"]
    assert read(cluster, Choice(index=3)) == ["bert-2-worker1-0"]
    assert read(cluster, Choice(index=20)) == ["bert-11-worker0-0"]
    with pytest.raises(ClusterError, match="has 22 pods"):
        read(cluster, Choice(index=22))


def test_a_job_is_followed_from_before_its_pods_exist_to_its_end(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.remove(POD)
    reading = Reading(cluster)
    time.sleep(0.2)

    stub.put(POD, given.pod("bert-worker0-0", **given.running()))
    stub.write(POD, at(1, "step 1"))
    reading.sees("step 1")
    stub.write(POD, at(2, "done"), ends=True)
    end(stub, POD)

    assert reading.ends() == ["step 1", "done"]


def test_a_container_that_is_started_again_is_followed_on(
    stub: StubApiServer, cluster: Cluster
) -> None:
    reading = Reading(cluster)
    stub.write(POD, at(1, "step 1"), ends=True)
    reading.sees("step 1")

    stub.restart_log(POD)
    stub.update(POD, **given.running(restarts=1))
    stub.write(POD, at(5, "resumed at step 1"))
    reading.sees("resumed at step 1")
    stub.write(POD, ends=True)
    end(stub, POD)

    assert reading.ends() == ["step 1", "--- bert-worker0-0 was started again", "resumed at step 1"]


def test_a_pod_that_volcano_makes_anew_is_followed_on(
    stub: StubApiServer, cluster: Cluster
) -> None:
    reading = Reading(cluster)
    stub.write(POD, at(1, "step 1"))
    reading.sees("step 1")

    stub.remove(POD)
    stub.break_streams()
    time.sleep(0.2)
    stub.put(POD, given.pod("bert-worker0-0", **given.running("node-2")))
    stub.write(POD, at(0, "resumed"))
    reading.sees("resumed")
    stub.write(POD, ends=True)
    end(stub, POD)

    assert reading.ends() == ["step 1", "--- bert-worker0-0 was started again", "resumed"]


def test_a_connection_that_breaks_neither_loses_nor_repeats_a_line(
    stub: StubApiServer, cluster: Cluster
) -> None:
    same = [at(7, "a"), at(7, "b"), at(7, "b")]
    stub.write(POD, at(6, "first"), *same)
    reading = Reading(cluster)
    reading.sees("b")

    stub.break_streams()
    stub.write(POD, at(7, "c"), at(8, "d"))
    reading.sees("d")
    stub.break_streams()
    stub.write(POD, at(9, "done"), ends=True)
    end(stub, POD)

    assert reading.ends() == ["first", "a", "b", "b", "c", "d", "done"]
    since = [each.query.get("sinceTime", "") for each in stub.asked("GET", "/log")]
    assert since[0] == ""
    assert all(since[1:])


def test_a_kubelet_that_does_not_answer_is_asked_again(
    stub: StubApiServer, cluster: Cluster
) -> None:
    told = "Get https://10.0.0.1:10250/containerLogs: dial tcp: i/o timeout"
    stub.refuse("GET", "/log$", Refusal(500, told, times=2))
    stub.write(POD, at(1, "step 1"), ends=True)
    end(stub, POD)

    assert Reading(cluster).ends() == ["step 1"]


def test_a_log_that_went_with_its_node_is_told_instead_of_waited_for(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("GET", "/log$", Refusal(500, "dial tcp: no route to host"))
    end(stub, POD)

    with pytest.raises(ClusterError, match="log of bert-worker0-0 cannot be read"):
        next(logs.lines(cluster, "training", "bert", FIRST, follow=True))


def test_pods_are_read_together_with_their_index(stub: StubApiServer, cluster: Cluster) -> None:
    other = f"{given.PODS}/bert-worker0-1"
    stub.write(POD, at(1, "x"), ends=True)
    stub.write(other, at(1, "y"), ends=True)
    end(stub, POD, other)

    choices = [Choice(index=0), Choice(index=1)]
    found = logs.interleaved(cluster, "training", "bert", choices)

    assert sorted((str(choice), line) for choice, line in found) == [("0", "x"), ("1", "y")]


WRONG = [
    (Choice(index=2), "has 2 pods"),
    (Choice(pod="other"), "no pod other"),
    (Choice(pod="stranger"), "none of job bert"),
]


@pytest.mark.parametrize(("choice", "told"), WRONG)
def test_a_pod_that_the_job_does_not_have_is_told(
    stub: StubApiServer, cluster: Cluster, choice: Choice, told: str
) -> None:
    stub.put(f"{given.PODS}/stranger", given.pod("stranger", "llama"))
    with pytest.raises(ClusterError, match=told):
        read(cluster, choice)


def test_a_job_that_is_not_there_or_has_too_many_pods_is_told(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="no job llama in namespace training"):
        next(logs.lines(cluster, "training", "llama", FIRST, follow=True))
    choices = [Choice(index=index) for index in range(65)]
    with pytest.raises(ClusterError, match="at most 64"):
        next(logs.interleaved(cluster, "training", "bert", choices))


# --- pods by the rank of their node ---------------------------------------------------------------


def ordering(stub: StubApiServer, *, pods: int = 3) -> None:
    """Let the pods of the job compute their ranks."""
    job = given.volcano_job(pods=pods)
    for task in job["spec"]["tasks"]:
        task["template"]["spec"]["volumes"] = [{"name": NODE_READER}]
    stub.put(JOB, job)
    for index in range(pods):
        name = f"bert-worker0-{index}"
        stub.put(f"{given.PODS}/{name}", given.pod(name, index=index, **given.running()))
        stub.write(f"{given.PODS}/{name}", at(1, f"from pod {index}"))


def test_the_pod_of_a_rank_is_found_in_the_order_that_the_first_pod_tells(
    stub: StubApiServer, cluster: Cluster
) -> None:
    ordering(stub)
    stub.write(POD, at(2, "ultrascale: 3 pods by node rank: 0,2,1"))

    assert read(cluster, Choice(rank=1)) == ["from pod 2"]
    assert read(cluster, Choice(rank=2)) == ["from pod 1"]
    assert read(cluster, Choice(index=2)) == ["from pod 2"]
    with pytest.raises(ClusterError, match="has 3 pods"):
        read(cluster, Choice(rank=3))


def test_a_rank_is_followed_into_the_order_of_the_next_start(
    stub: StubApiServer, cluster: Cluster
) -> None:
    ordering(stub)
    names = [f"{given.PODS}/bert-worker0-{index}" for index in range(3)]
    stub.write(POD, at(2, "ultrascale: 3 pods by node rank: 0,2,1"))
    reading = Reading(cluster, Choice(rank=1))
    reading.sees("from pod 2")

    for name in names:
        stub.restart_log(name)
        stub.update(name, **given.running(restarts=1))
    stub.write(names[1], at(9, "next start"))
    stub.write(names[0], at(8, "ultrascale: 3 pods by node rank: 0-2"))
    stub.break_streams()
    reading.sees("next start")
    for name in names:
        stub.write(name, ends=True)
    end(stub, *names)

    assert reading.ends() == ["from pod 2", "--- bert-worker0-1 was started again", "next start"]


def test_a_rank_that_is_not_known_yet_is_told(stub: StubApiServer, cluster: Cluster) -> None:
    ordering(stub)

    with pytest.raises(ClusterError, match="no pod of node rank 1 now, or its pods have not met"):
        read(cluster, Choice(rank=1))
    assert read(cluster, Choice(rank=0)) == ["from pod 0"]


def test_a_rank_whose_order_the_log_has_lost_is_told(stub: StubApiServer, cluster: Cluster) -> None:
    ordering(stub)
    running = given.running()
    state = {"running": {"startedAt": "2026-11-21T12:00:00Z"}}
    running["status"]["containerStatuses"][0]["state"] = state
    stub.update(POD, **running)

    with pytest.raises(ClusterError, match=r"no longer tells the ranks .*--index or --pod"):
        read(cluster, Choice(rank=1))


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("ultrascale: 4 pods by node rank: 0,2-3,1", (0, 2, 3, 1)),
        # The end of what was read.
        ("ultrascale: 512 pods by node rank: 0-51", ()),
        ("ultrascale: 4 pods by node rank: 0,2-", ()),
        ("ultrascale: 4 pods by node rank: ", ()),
        ("ultrascale: waiting for 3 of 5 pods: 1,3-4", ()),
        ("progress step=1", ()),
    ],
)
def test_the_order_of_pods_is_read_where_it_is_whole(line: str, order: tuple[int, ...]) -> None:
    assert read_table(line) == order
