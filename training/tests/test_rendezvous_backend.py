"""Rendezvous of a job's nodes through a real etcd."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.support import forked
from tests.support.etcd_server import (
    NO_ETCD,
    EtcdServer,
    LossyProxy,
    find_etcd,
)
from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed.elastic.rendezvous.api import RendezvousClosedError

from tests.support.rendezvous_node import join, make_backend, make_handler
from ultrascale_training.rendezvous.etcd_v3 import heartbeat_seconds

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


class TestState:
    """One state of all nodes, changed by one of them at a time."""

    def test_the_first_write_makes_it_and_no_other_does(self, etcd: EtcdServer, job: str) -> None:
        first, second = (make_backend(etcd.endpoint, job) for _ in range(2))
        assert first.get_state() is None

        made = first.set_state(b"first")
        late = second.set_state(b"second")

        assert made is not None
        assert made[0::2] == (b"first", True)
        assert late == (b"first", made[1], False)
        assert second.get_state() == (b"first", made[1])

    def test_a_write_upon_an_older_state_changes_nothing(self, etcd: EtcdServer, job: str) -> None:
        first, second = (make_backend(etcd.endpoint, job) for _ in range(2))
        first.set_state(b"1")
        seen = second.get_state()
        assert seen is not None
        newer = first.set_state(b"2", seen[1])
        assert newer is not None

        stale = second.set_state(b"3", seen[1])

        assert stale == (b"2", newer[1], False)
        assert second.get_state() == newer[:2]

    def test_a_write_whose_answer_was_lost_was_a_write(self, etcd: EtcdServer, job: str) -> None:
        proxy = LossyProxy(etcd)
        backend = make_backend(f"127.0.0.1:{proxy.port}", job)
        made = backend.set_state(b"1")
        assert made is not None
        try:
            proxy.lose = 1
            written = backend.set_state(b"2", made[1])
            assert proxy.lose == 0
        finally:
            proxy.close()

        assert written is not None
        assert written[0::2] == (b"2", True)

    def test_asking_for_an_unchanged_state_does_not_send_it_again(
        self, etcd: EtcdServer, job: str
    ) -> None:
        """Each of a job's nodes asks every second, and the state grows with their number."""
        backend = make_backend(etcd.endpoint, job)
        # It does not shrink, unlike torch's.
        state = ssl.RAND_bytes(400_000)
        backend.set_state(state)
        before = etcd.metric("etcd_network_client_grpc_sent_bytes_total")

        for _ in range(20):
            assert backend.get_state() is not None

        sent = etcd.metric("etcd_network_client_grpc_sent_bytes_total") - before
        assert sent < 50_000


class TestHandler:
    """Calls of torchrun to the handler."""

    def test_a_job_that_ended_is_closed_and_its_next_attempt_is_not(
        self, etcd: EtcdServer, job: str
    ) -> None:
        ended = make_handler(etcd.endpoint, f"{job}-0")
        ended.next_rendezvous()
        ended.shutdown()

        with pytest.raises(RendezvousClosedError):
            make_handler(etcd.endpoint, f"{job}-0").next_rendezvous()
        again = make_handler(etcd.endpoint, f"{job}-1")

        assert again.next_rendezvous().world_size == 1
        assert not again.is_closed()
        again.shutdown()

    def test_torchrun_finds_it_whichever_package_is_imported_first(self) -> None:
        """torch asks for it in the midst of its own import."""
        program = (
            "import ultrascale_training.rendezvous.etcd_client\n"
            "from torch.distributed.elastic.rendezvous import rendezvous_handler_registry\n"
            "assert 'etcd-v3' in rendezvous_handler_registry._registry\n"
        )

        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )

        assert done.returncode == 0, done.stderr

    def test_a_large_job_does_not_fill_etcd_with_heartbeats(self) -> None:
        """etcd keeps each replaced state until it is compacted."""
        for nodes in (2, 250, 1000, 10_000):
            rate = nodes / heartbeat_seconds(nodes)
            assert rate <= 50
            assert rate * nodes * 10 <= 2_000_000
        assert heartbeat_seconds(2) == 5
        assert heartbeat_seconds(1000) == 20


@pytest.fixture(scope="module")
def nodes() -> Iterator[ProcessPoolExecutor]:
    """Processes that stand for nodes; torch is imported once for all of them."""
    with ProcessPoolExecutor(4, mp_context=forked.SERVER) as pool:
        yield pool


@pytest.mark.parametrize("count", [4, 2])
def test_nodes_in_processes_of_their_own_meet(
    etcd: EtcdServer, nodes: ProcessPoolExecutor, job: str, count: int
) -> None:
    before = etcd.requests()

    joined = [nodes.submit(join, etcd.endpoint, job, count) for _ in range(count)]
    results = [each.result(timeout=30) for each in joined]

    assert sorted(rank for rank, *_ in results) == list(range(count))
    assert {world for _, world, *_ in results} == {count}
    assert {value for _, _, value, _ in results} == {b"hello"}
    assert sorted(number for *_, number in results) == list(range(1, count + 1))
    assert (etcd.requests() - before) / count < 40
