"""The store of torchrun's agents in a real etcd."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.support.etcd_server import NO_ETCD, EtcdServer, LossyProxy, find_etcd
from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed import DistStoreError, PrefixStore

from tests.support.rendezvous_node import make_keys
from ultrascale_training.rendezvous.etcd_v3 import EtcdStore

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


def make_store(port: int, job: str) -> EtcdStore:
    store = EtcdStore(make_keys(f"127.0.0.1:{port}", job))
    store.set_timeout(timedelta(seconds=10))
    return store


@pytest.mark.parametrize("value", [b"", b"\x00\xff", b"+1", b"=", "text", "ü"])
def test_what_one_node_writes_another_reads_unchanged(
    etcd: EtcdServer, job: str, value: str | bytes
) -> None:
    make_store(etcd.port, job).set("key", value)

    read = make_store(etcd.port, job).get("key")

    assert read == (value.encode() if isinstance(value, str) else value)


def test_a_node_waits_for_what_another_has_yet_to_write(etcd: EtcdServer, job: str) -> None:
    here, there = (make_store(etcd.port, job) for _ in range(2))
    writer = threading.Timer(0.7, there.set, ("MASTER_ADDR", "10.0.0.1"))

    writer.start()

    assert here.get("MASTER_ADDR") == b"10.0.0.1"


def test_a_key_that_nobody_writes_is_an_error_that_names_it(etcd: EtcdServer, job: str) -> None:
    store = make_store(etcd.port, job)
    store.set("there", "1")
    # torch hands the store of one round on within this wrapper, and sets times on that.
    round_store = PrefixStore("round", store)
    round_store.set_timeout(timedelta(seconds=0.4))
    start = time.monotonic()

    with pytest.raises(DistStoreError, match=r"nobody wrote the key 'round/never' within 0.4 s"):
        round_store.get("never")
    with pytest.raises(DistStoreError, match="'never'"):
        store.wait(["there", "never"], timedelta(seconds=0.4))

    assert time.monotonic() - start < 5


def test_as_many_keys_as_a_large_job_has_nodes_are_written_and_read(
    etcd: EtcdServer, job: str
) -> None:
    keys = [f"torchelastic/role_info/{rank}" for rank in range(300)]
    values = [str(rank) for rank in range(300)]
    # torch's types do not know it.
    store: Any = make_store(etcd.port, job)

    store.multi_set(keys, values)

    assert store.multi_get(keys) == [value.encode() for value in values]


def test_waiting_for_a_missing_key_asks_less_and_less_often(etcd: EtcdServer, job: str) -> None:
    store = make_store(etcd.port, job)
    store.set("first", "1")
    before = etcd.requests()

    with pytest.raises(DistStoreError):
        store.wait(["never"], timedelta(seconds=1.5))

    assert etcd.requests() - before <= 12


def test_nodes_that_count_at_once_never_lose_a_count_nor_collide(
    etcd: EtcdServer, job: str
) -> None:
    stores = [make_store(etcd.port, job) for _ in range(8)]
    stores[0].add("barrier/num_members", 1)
    for store in stores:
        store.set("warm", "1")
    counts: list[int] = []
    before = etcd.requests()

    def count(store: EtcdStore) -> None:
        for _ in range(25):
            counts.append(store.add("barrier/num_members", 1))

    threads = [threading.Thread(target=count, args=(store,)) for store in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(counts) == list(range(2, 202))
    # A key of its own for each, and a question for its place among them.
    assert etcd.requests() - before <= 2 * 200 + 5


def test_a_count_whose_answer_was_lost_counts_once(etcd: EtcdServer, job: str) -> None:
    """The last of a barrier's nodes opens it, and it must not be passed over."""
    proxy = LossyProxy(etcd)
    store = make_store(proxy.port, job)
    store.add("n", 1)
    try:
        proxy.lose = 2
        second = store.add("n", 1)
        assert proxy.lose == 0
    finally:
        proxy.close()

    assert second == 2
    assert make_store(etcd.port, job).add("n", 1) == 3


def test_an_amount_that_no_agent_adds_is_refused(etcd: EtcdServer, job: str) -> None:
    with pytest.raises(ValueError, match="goes up by 1, got 3"):
        make_store(etcd.port, job).add("n", 3)


@pytest.mark.parametrize(
    ("one", "other"), [("job-1", "job-10"), ("job", "job/store/key"), ("j" * 300, "j" * 301)]
)
def test_jobs_do_not_read_each_others_keys(etcd: EtcdServer, one: str, other: str) -> None:
    make_store(etcd.port, one).set("key/key", one)
    make_store(etcd.port, other).set("key/key", other)

    assert make_store(etcd.port, one).get("key/key") == one.encode()


class TestLease:
    """A job's keys live as long as one of its nodes."""

    def test_keys_outlive_their_writer_and_then_go_with_the_last_node(
        self, etcd: EtcdServer, job: str
    ) -> None:
        written, kept = (make_keys(etcd.endpoint, job, lease_ttl=5) for _ in range(2))
        written.write("MASTER_ADDR", data=b"10.0.0.1")
        kept.write("other", data=b"1")

        # Node 0, which wrote the key, is lost here.
        end = time.monotonic() + 7
        while time.monotonic() < end:
            kept.renew()
            time.sleep(0.1)

        assert kept.read("MASTER_ADDR") is not None
        deadline = time.monotonic() + 15
        while etcd.keys(f"/ultrascale/rendezvous/{job}/"):
            assert time.monotonic() < deadline, "the keys outlived the job"
            time.sleep(0.2)

    def test_a_job_has_one_lease_however_many_nodes_it_has(
        self, etcd: EtcdServer, job: str
    ) -> None:
        before = set(etcd.leases())
        stores = [make_store(etcd.port, job) for _ in range(8)]
        threads = [threading.Thread(target=store.set, args=("a", "b")) for store in stores]

        for each in threads:
            each.start()
        for each in threads:
            each.join()
        granted = etcd.metric("etcd_debugging_lease_granted_total")
        make_store(etcd.port, job).set("late", "1")

        assert len(set(etcd.leases()) - before) == 1
        assert etcd.metric("etcd_debugging_lease_granted_total") == granted

    def test_a_job_whose_lease_is_gone_goes_on_with_another(
        self, etcd: EtcdServer, job: str
    ) -> None:
        before = set(etcd.leases())
        nodes = [make_keys(etcd.endpoint, job) for _ in range(2)]
        for node in nodes:
            node.write("old", data=b"1")
        (lease,) = set(etcd.leases()) - before
        etcd.call("/lease/revoke", {"ID": lease})

        for node in nodes:
            node.write("new", data=b"1")

        assert nodes[0].read("old") is None
        assert nodes[0].read("new") is not None
        assert len(set(etcd.leases()) - before) == 1
