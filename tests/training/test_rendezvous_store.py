"""The store of torchrun's agents in a real etcd."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.etcd_server import NO_ETCD, EtcdServer, LossyProxy, find_etcd
from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed import DistStoreError, HashStore, PrefixStore

from ultrascale_training.rendezvous.etcd_client import Endpoint, EtcdClient
from ultrascale_training.rendezvous.etcd_keys import job_key
from ultrascale_training.rendezvous.etcd_lease import JobLease
from ultrascale_training.rendezvous.etcd_store import EtcdStore

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


def client_of(port: int) -> EtcdClient:
    return EtcdClient([Endpoint(host="127.0.0.1", port=port)], read_timeout=3, retry_timeout=20)


def make_store(port: int, job: str, *, ttl: int = 60) -> EtcdStore:
    client = client_of(port)
    store = EtcdStore(client, job, lease=JobLease(client, job, ttl=ttl), longest_wait=0.5)
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

    assert not here.check(["MASTER_ADDR"])
    assert here.get("MASTER_ADDR") == b"10.0.0.1"


def test_a_key_that_nobody_writes_is_an_error_that_names_it(etcd: EtcdServer, job: str) -> None:
    store = make_store(etcd.port, job)
    store.set("there", "1")
    # torch hands the store of one round on within this wrapper, and sets times on that.
    round_store = PrefixStore("round", store)
    round_store.set_timeout(timedelta(seconds=0.4))
    start = time.monotonic()

    with pytest.raises(DistStoreError, match=r"1 of 1 keys were not written .*'round/never'"):
        round_store.get("never")
    with pytest.raises(DistStoreError, match="1 of 2 keys"):
        store.wait(["there", "never"], timedelta(seconds=0.4))

    assert time.monotonic() - start < 5


def test_as_many_keys_as_a_large_job_has_nodes_are_one_call(etcd: EtcdServer, job: str) -> None:
    """etcd takes 128 operations at once."""
    keys = [f"torchelastic/role_info/{rank}" for rank in range(300)]
    values = [str(rank) for rank in range(300)]
    store = make_store(etcd.port, job)
    store.set("first", "1")
    before = etcd.requests()

    store.multi_set(keys, values)

    assert store.multi_get(keys) == [value.encode() for value in values]
    assert etcd.requests() - before <= 6 + 2


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
    assert stores[0].get("barrier/num_members") == b"201"
    assert etcd.requests() - before <= 200 + 5


@pytest.mark.parametrize("amount", [1, 3])
def test_a_count_whose_answer_was_lost_counts_once(etcd: EtcdServer, job: str, amount: int) -> None:
    """The last of a barrier's nodes opens it, and it must not be passed over."""
    proxy = LossyProxy(etcd)
    store = make_store(proxy.port, job)
    store.add("n", amount)
    try:
        proxy.lose = 2
        second = store.add("n", amount)
        assert proxy.lose == 0
    finally:
        proxy.close()

    assert second == 2 * amount
    assert make_store(etcd.port, job).get("n") == str(2 * amount).encode()


KEYS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(-3, 3)
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, NUMBERS.map(str)),
    st.tuples(st.just("add"), KEYS, NUMBERS),
    st.tuples(st.just("compare_set"), KEYS, st.sampled_from(["", "0", "1"]), NUMBERS.map(str)),
    st.tuples(st.just("check"), st.lists(KEYS, min_size=1)),
)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=8))
def test_it_does_what_torchs_own_store_does(etcd: EtcdServer, steps: list[tuple[Any, ...]]) -> None:
    ours = make_store(etcd.port, f"property-{time.monotonic_ns()}")
    torchs = HashStore()

    for name, *arguments in steps:
        assert getattr(ours, name)(*arguments) == getattr(torchs, name)(*arguments)

    for key in ("a", "b"):
        assert ours.check([key]) == torchs.check([key])
        if torchs.check([key]):
            assert ours.get(key) == torchs.get(key)


@pytest.mark.parametrize(
    ("one", "other"), [("job-1", "job-10"), ("job", "job/store/key"), ("j" * 300, "j" * 301)]
)
def test_jobs_do_not_read_each_others_keys(etcd: EtcdServer, one: str, other: str) -> None:
    make_store(etcd.port, one).set("key/key", one)
    make_store(etcd.port, other).set("key/key", other)

    assert make_store(etcd.port, one).get("key/key") == one.encode()


def test_no_key_is_longer_than_etcd_should_hold() -> None:
    keys = {job_key("ä" * 5000 + str(n), "store", "key" * 5000) for n in range(3)}

    assert len(keys) == 3
    assert max(len(key) for key in keys) < 700


class TestLease:
    """A job's keys live as long as one of its nodes."""

    def test_keys_outlive_their_writer_and_then_go_with_the_last_node(
        self, etcd: EtcdServer, job: str
    ) -> None:
        clients = [client_of(etcd.port) for _ in range(2)]
        leases = [JobLease(client, job, ttl=2) for client in clients]
        stores = [
            EtcdStore(client, job, lease=lease, longest_wait=0.5)
            for client, lease in zip(clients, leases, strict=True)
        ]
        stores[0].set("MASTER_ADDR", "10.0.0.1")
        stores[1].set("other", "1")

        # Node 0, which wrote the key, is lost here.
        end = time.monotonic() + 3
        while time.monotonic() < end:
            leases[1].renew()
            time.sleep(0.1)

        assert stores[1].check(["MASTER_ADDR"])
        deadline = time.monotonic() + 8
        while etcd.keys(job_key(job)):
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
        stores = [make_store(etcd.port, job) for _ in range(2)]
        for store in stores:
            store.set("old", "1")
        (lease,) = set(etcd.leases()) - before
        etcd.call("/lease/revoke", {"ID": lease})

        for store in stores:
            store.set("new", "1")

        assert not stores[0].check(["old"])
        assert stores[0].check(["new"])
        assert len(set(etcd.leases()) - before) == 1
