"""Jobs while their etcd is frozen, killed or emptied, with a real server."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import logging
import random
import threading
import time
from pathlib import Path

import pytest

from tests.support.etcd_server import (
    NO_ETCD,
    EtcdServer,
    find_etcd,
    free_ports,
    running_etcd,
)
from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
)

from tests.support.rendezvous_node import make_backend, make_handler, make_keys
from ultrascale_training.rendezvous.etcd_v3 import EtcdStore

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


class TestAbsence:
    """etcd is away for a while, or for good."""

    def test_an_etcd_that_is_not_there_is_an_error_that_says_what_to_check(self) -> None:
        ports = free_ports(2)
        endpoint = ",".join(f"127.0.0.1:{port}" for port in ports)
        start = time.monotonic()

        with pytest.raises(RendezvousConnectionError) as caught:
            make_handler(endpoint, "job", retry_timeout=1).next_rendezvous()

        assert time.monotonic() - start < 4
        assert f"etcd at {endpoint} did not answer within 1 s" in str(caught.value)
        assert "refused" in str(caught.value)
        assert "check --rdzv-endpoint" in str(caught.value)

    def test_a_job_goes_on_after_a_frozen_etcd(
        self, etcd: EtcdServer, job: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Requests that wait in its queue are carried out when it wakes, each beside its repeat."""
        handler = make_handler(etcd.endpoint, job, read_timeout=1, keep_alive_interval=1)
        store = handler.next_rendezvous().store
        counter = EtcdStore(make_keys(etcd.endpoint, job, read_timeout=1))
        counter.add("n", 1)
        counts: list[int] = []
        counting = threading.Thread(target=lambda: counts.append(counter.add("n", 1)))

        with caplog.at_level(logging.WARNING, "ultrascale_training.rendezvous"):
            etcd.freeze()
            counting.start()
            threading.Timer(2.5, etcd.thaw).start()
            waiting = handler.num_nodes_waiting()
            counting.join(timeout=20)

        assert waiting == 0
        assert counts == [2]
        assert counter.add("n", 1) == 3
        store.set("after", "1")
        assert not handler.is_closed()
        assert any("etcd answered after" in message for message in caplog.messages)
        handler.shutdown()

    def test_a_frozen_or_a_lost_member_is_passed_over(
        self, etcd: EtcdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(random, "randrange", lambda _: 0)
        with running_etcd(tmp_path) as frozen:
            (nobody,) = free_ports(1)
            endpoints = f"{frozen.endpoint},127.0.0.1:{nobody},{etcd.endpoint}"
            keys = make_keys(endpoints, read_timeout=1)
            frozen.freeze()
            start = time.monotonic()

            for _ in range(3):
                keys.read("key")

            assert 1 <= time.monotonic() - start < 2.5

    def test_a_restarted_etcd_has_the_job_still(self, tmp_path: Path, job: str) -> None:
        with running_etcd(tmp_path) as server:
            handler = make_handler(server.endpoint, job)
            store = handler.next_rendezvous().store
            store.set("MASTER_ADDR", "10.0.0.1")
            server.stop()
            threading.Timer(0.5, server.start).start()

            assert handler.num_nodes_waiting() == 0

            assert store.get("MASTER_ADDR") == b"10.0.0.1"
            handler.shutdown()

    def test_a_job_outlives_an_etcd_that_lost_its_data(self, tmp_path: Path, job: str) -> None:
        """Its revisions start anew, so that an old one says nothing."""
        with running_etcd(tmp_path) as server:
            backend = make_backend(server.endpoint, job)
            state = backend.set_state(b"0")
            for number in range(50):
                assert state is not None
                state = backend.set_state(str(number).encode(), state[1])
            server.stop()
            server.forget()
            server.start()

            made = make_backend(server.endpoint, job).set_state(b"new")

            assert made is not None
            assert backend.get_state() == made[:2]
            assert backend.set_state(b"newer", made[1]) is not None
