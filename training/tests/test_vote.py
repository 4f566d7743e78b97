"""The vote on whether to stop: workers as threads of this process, with real connections."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
import os
import pickle
import random
import re
import signal
import socket
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.no_torch import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
import torch.distributed as dist

from tests.support import voter
from tests.support.etcd_server import free_ports
from ultrascale.catalog import training_operator
from ultrascale_training import failures, hangs
from ultrascale_training.errors import VoteLost
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import Hang, Suspect
from ultrascale_training.progress import Progress
from ultrascale_training.stragglers import Stragglers, WorkClock
from ultrascale_training.vote import REPORT_EVERY, Place, StopVote

pytestmark = pytest.mark.training


def places(nodes: Sequence[int]) -> list[Place]:
    """Return the places of the workers of nodes with so many workers each."""
    return [
        Place(node=node, nodes=len(nodes), local_rank=local_rank, local_world=workers)
        for node, workers in enumerate(nodes)
        for local_rank in range(workers)
    ]


def everywhere(
    nodes: Sequence[int], work: Callable[[StopVote, int], Any], **options: Any
) -> list[Future[Any]]:
    """Return the outcome of ``work`` on the worker of each rank."""
    store, found = dist.HashStore(), places(nodes)
    options = {"timeout": timedelta(seconds=60), "address": "127.0.0.1"} | options

    def run(rank: int) -> Any:
        worker = StopVote(store, rank=rank, world=len(found), place=found[rank], **options)
        return work(worker, rank)

    def outcome(rank: int) -> Future[Any]:
        return _outcome(run, rank)

    with ThreadPoolExecutor(len(found)) as workers:
        return list(workers.map(outcome, range(len(found))))


def _outcome(run: Callable[[int], Any], rank: int) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(run(rank))
    except VoteLost as lost:
        future.set_exception(lost)
    return future


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("nodes", [[1], [3], [1, 1], [2, 1, 3], [1] * 40], ids=str)
def test_all_workers_leave_at_the_same_step_whoever_is_told_to_stop(
    nodes: list[int], lag: int
) -> None:
    told, at = random.randrange(sum(nodes)), 5

    def steps(worker: StopVote, rank: int) -> int:
        step = 0
        while not worker.cast(rank == told and step >= at):
            step += 1
        worker.close()
        return step

    assert {each.result() for each in everywhere(nodes, steps, lag=lag)} == {at + lag}


def test_a_worker_that_ends_is_named_to_all_others() -> None:
    def work(worker: StopVote, rank: int) -> None:
        worker.cast(False)
        # The answer to the first vote: all others have come.
        worker.cast(False)
        if rank == 19:
            end_connections(worker)
            raise VoteLost("this one ends")
        while True:
            worker.cast(False)

    outcomes = everywhere([1] * 20, work)

    told = [str(each.exception()) for rank, each in enumerate(outcomes) if rank != 19]
    assert all(each.startswith("worker 19 on node ") for each in told), told


def end_connections(worker: StopVote) -> None:
    """End the connections of a worker, as its death does."""
    for peer in [worker._parent, *worker._children]:  # pyright: ignore
        assert peer is not None
        peer.connection.shutdown(socket.SHUT_RDWR)


def test_a_worker_that_comes_late_learns_which_one_has_gone() -> None:
    """It would name the first node, which is sound, and leave that beside the true cause."""
    store, (first, second, third) = dist.HashStore(), places([1, 1, 1])
    options: dict[str, Any] = {"timeout": timedelta(seconds=30), "address": "127.0.0.1"}
    lost = Event()
    leader = StopVote(store, rank=0, world=3, place=first, on_lost=lambda _: lost.set(), **options)
    end_connections(StopVote(store, rank=1, world=3, place=second, **options))
    assert lost.wait(30)

    late = StopVote(store, rank=2, world=3, place=third, **options)

    for worker in (leader, late):
        with pytest.raises(VoteLost, match="worker 1 on node"):
            worker.close()


def test_connections_grow_with_the_workers_and_not_with_their_square() -> None:
    nodes, before = [4] * 20, sockets()
    counted: list[int] = []

    def work(worker: StopVote, rank: int) -> None:
        worker.cast(False)
        worker.cast(False)
        if rank == 0:
            counted.append(sockets() - before)
        worker.close()

    for each in everywhere(nodes, work, lag=0):
        each.result()

    # Both ends of a connection of each worker are counted, and the listeners of twenty nodes.
    assert counted[0] <= 2 * (sum(nodes) - 1) + len(nodes)


def sockets() -> int:
    """Return the sockets of this process; a descriptor may be gone by the time it is looked at."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def test_votes_count_only_from_workers_that_know_the_store_of_the_job() -> None:
    store = dist.HashStore()
    first, second = places([1, 1])
    options: dict[str, Any] = {"timeout": timedelta(seconds=30), "address": "127.0.0.1"}
    with ThreadPoolExecutor(1) as thread:
        leader = StopVote(store, rank=0, world=2, place=first, **options)
        entry = json.loads(store.get("0"))
        store.set("0", json.dumps([*entry[:2], "another token", *entry[3:]]))
        stranger = StopVote(store, rank=1, world=2, place=second, **options)
        stranger.cast(True)
        store.set("0", json.dumps(entry))
        member = StopVote(store, rank=1, world=2, place=second, **options)

        answers = thread.submit(lambda: [member.cast(False) for _ in range(3)])

        assert [leader.cast(False) for _ in range(3)] == [False] * 3
        assert answers.result() == [False] * 3
        closed = thread.submit(member.close)
        leader.close()
        closed.result()


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"[" * 10_000, b'["bye"]', b"7", b"\xff"])
def test_a_stranger_that_sends_anything_disturbs_no_vote(line: bytes) -> None:
    store = dist.HashStore()
    first, second = places([1, 1])
    options: dict[str, Any] = {"timeout": timedelta(seconds=30), "address": "127.0.0.1"}
    with ThreadPoolExecutor(1) as thread:
        leader = StopVote(store, rank=0, world=2, place=first, **options)
        with socket.create_connection(json.loads(store.get("0"))[:2]) as stranger:
            stranger.sendall(line + b"\n")
            member = StopVote(store, rank=1, world=2, place=second, **options)

            answers = thread.submit(lambda: [member.cast(False) for _ in range(3)])

            assert [leader.cast(False) for _ in range(3)] == [False] * 3
            assert answers.result() == [False] * 3
            closed = thread.submit(member.close)
            leader.close()
            closed.result()


def hangs_of(
    nodes: Sequence[int], late: Callable[[StopVote], AbstractContextManager[object]]
) -> list[Hang]:
    """Return what the first worker notices when the last one does ``late`` before its vote."""
    noticed: list[Hang] = []
    over = Event()

    def work(worker: StopVote, rank: int) -> None:
        worker.cast(False)
        if rank == sum(nodes) - 1:
            with late(worker):
                over.wait(30)
        worker.cast(False)
        worker.cast(False)
        worker.close()

    def notice(hang: Hang) -> None:
        noticed.append(hang)
        over.set()

    for each in everywhere(nodes, work, hang_seconds=0.3, on_hang=notice):
        each.result()
    return noticed


def test_a_worker_that_others_wait_for_is_named_with_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ULTRASCALE_NODE", "ip-10-0-0-7")

    (hang,) = hangs_of([2, 1, 2], lambda _: nullcontext())

    assert hang.suspects == [Suspect(4, "ip-10-0-0-7", "behind")]
    assert hang.seconds > 0.3


def test_a_worker_that_is_still_computing_is_named_where_others_wait_in_a_collective() -> None:
    """Nobody votes then: the others have not come to their next vote either."""
    noticed: list[Hang] = []
    over = Event()

    def work(worker: StopVote, rank: int) -> None:
        worker.cast(False)
        with worker.working() if rank == 1 else nullcontext():
            over.wait(30)
        worker.cast(False)
        worker.close()

    def notice(hang: Hang) -> None:
        noticed.append(hang)
        over.set()

    for each in everywhere([1, 1, 1], work, hang_seconds=0.3, on_hang=notice):
        each.result()

    (suspect,) = noticed[0].suspects
    assert (suspect.rank, suspect.reason) == (1, "working")
    assert f"worker 1 on node {suspect.node} is still computing" in noticed[0].told()


def test_node_that_works_longer_than_the_others_is_reported_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ULTRASCALE_NODE", "ip-10-0-0-7")
    progress = Progress(tmp_path, step=0, steps=100)

    def work(worker: StopVote, rank: int) -> None:
        stragglers = Stragglers()
        clock = WorkClock(worker, torch.device("cpu"))
        for step in range(4 * REPORT_EVERY):
            worker.add(2.0 if rank == 4 else 1.0)
            clock.probe(step)
            worker.cast(False)
            stragglers.report(worker, progress if rank == 0 else None, step)
        worker.close()

    for each in everywhere([2, 2, 2], work):
        each.result()
    progress.close()

    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"straggler step=\d+ node=ip-10-0-0-7 rank=4 seconds=2\S* median=1\S* ratio=(1.9|2.0)\d",
        line,
    )
    # HyperPod's operator looks for it in the log.
    assert re.match(training_operator.STRAGGLER_PATTERN, line)
    (told,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert (told["event"], told["rank"], told["node"]) == ("straggler", 4, "ip-10-0-0-7")


@pytest.fixture
def voters(tmp_path: Path) -> Generator[Sequence[Any]]:
    """Four workers on two nodes, as processes that have voted."""
    port = free_ports(1)[0]
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    found = [voter.start(port, rank, places([2, 2]), tmp_path) for rank in range(4)]
    try:
        for rank in range(4):
            wait_for(tmp_path / f"votes-{rank}")
        yield found
    finally:
        for each in found:
            each.kill()
            each.join()
        del store


def wait_for(path: Path) -> Any:
    """Return what a worker writes."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"nobody wrote {path.name}"
        time.sleep(0.02)
    return json.loads(path.read_text())


def test_a_validation_between_two_votes_is_no_hang() -> None:
    noticed: list[Hang] = []

    def work(worker: StopVote, rank: int) -> None:
        worker.cast(False)
        with worker.resting():
            time.sleep(1.0)
        worker.cast(False)
        worker.close()

    for each in everywhere([1, 1], work, hang_seconds=0.3, on_hang=noticed.append):
        each.result()

    assert not noticed


def test_a_killed_process_is_named_to_all_others_at_once(
    voters: Sequence[Any], tmp_path: Path
) -> None:
    voters[3].kill()

    told = {wait_for(tmp_path / f"end-{rank}") for rank in range(3)}

    assert told == {"worker 3 on node node-1 has gone"}


def test_a_process_that_waits_in_a_collective_ends_soon_after_another_one_has_gone(
    tmp_path: Path,
) -> None:
    """Its collective would wait until the timeout of NCCL, which is ten minutes."""
    port = free_ports(1)[0]
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    found = [voter.start(port, rank, places([1, 1]), tmp_path, waits=True) for rank in range(2)]
    for rank in range(2):
        wait_for(tmp_path / f"votes-{rank}")

    found[1].kill()
    found[0].join(60)

    assert found[0].exitcode == 1
    (kept,) = (tmp_path / "output" / "failures").iterdir()
    assert 'rank=1 restart=0 error="worker 1 on node node-1 has gone"' in kept.read_text()
    del store


def test_which_worker_has_gone_is_kept_once_however_long_this_one_takes_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vote tells it, and seconds later the exception that ends this worker."""
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    seconds = iter("123456789")

    def strftime(*_: object) -> str:
        return next(seconds)

    monkeypatch.setattr(failures.time, "strftime", strftime)
    log = FailureLog(str(tmp_path))
    lost = VoteLost("worker 1 on node node-1 has gone", rank=1, node="node-1")

    log.keep(lost)
    log.keep(lost)

    assert len(list((tmp_path / "failures").iterdir())) == 1


def test_a_hang_leaves_the_collectives_of_each_worker_and_the_stacks_of_the_late_one(
    tmp_path: Path,
) -> None:
    port = free_ports(1)[0]
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    found = [voter.start_colleague(port, rank, tmp_path) for rank in range(2)]
    try:
        traces = [tmp_path / "flight-recorder" / f"rank_{rank}" for rank in range(2)]
        deadline = time.monotonic() + 60
        while not (all(trace.exists() for trace in traces) and len(kept(tmp_path)) == 2):
            assert time.monotonic() < deadline, f"only {kept(tmp_path)}"
            time.sleep(0.02)
    finally:
        for each in found:
            each.kill()
            each.join()
    del store

    waiting, late = (pickle.loads(trace.read_bytes())["entries"] for trace in traces)
    assert [each["profiling_name"] for each in waiting][-1] == "gloo:all_reduce"
    assert len(late) == len(waiting) - 1
    assert "worker 1 on node node-1 is still computing" in kept(tmp_path)["hang-rank-0"]
    assert "in _colleague" in kept(tmp_path)["stacks-rank-1"]


@pytest.mark.parametrize(
    ("backends", "record"),
    [("cpu:gloo,cuda:nccl", b"nccl"), ("cuda:nccl", b"nccl"), ("cpu:gloo,cuda:gloo", b"gloo")],
)
def test_a_hang_of_gpus_leaves_the_collectives_of_nccl_and_not_those_of_gloo(
    backends: str, record: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch without CUDA has no record of NCCL.
    for name in ("gloo", "nccl"):
        dump = "_dump_nccl_trace" if name == "nccl" else "_dump_fr_trace"
        monkeypatch.setattr(hangs.distributed_c10d, dump, name.encode, raising=False)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_backend_config", lambda: backends)
    monkeypatch.setenv("RANK", "3")

    hangs.keep_state(FailureLog(str(tmp_path)), suspected=False)

    assert (tmp_path / "flight-recorder" / "rank_3").read_bytes() == record


def kept(output: Path) -> dict[str, str]:
    """Return what is kept of failures, by kind and rank."""
    files = output.glob("failures/2*.txt")
    return {path.stem.partition("-")[2]: path.read_text() for path in files}


def test_a_process_that_stands_still_is_named_and_the_others_go_on_with_it(
    voters: Sequence[Any], tmp_path: Path
) -> None:
    os.kill(voters[3].pid, signal.SIGSTOP)
    # On a busy machine an earlier vote may have taken as long as a hang.
    deadline = time.monotonic() + 60
    while wait_for(tmp_path / "hang") != [[3, "node-1", "silent"]]:
        assert time.monotonic() < deadline, "the worker that stands still is not named"
        time.sleep(0.02)

    os.kill(voters[3].pid, signal.SIGCONT)
    (tmp_path / "stop").touch()

    assert {wait_for(tmp_path / f"end-{rank}") for rank in range(4)} == {"stopped"}
