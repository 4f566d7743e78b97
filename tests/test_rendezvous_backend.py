"""How the nodes of a job agree through etcd, and what they stand from it, with a real server."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import logging
import multiprocessing
import random
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.etcd_server import (
    NO_ETCD,
    EtcdServer,
    LossyProxy,
    find_etcd,
    free_ports,
    running_etcd,
)
from tests.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousStateError,
)

from tests.rendezvous_node import join, make_handler, parameters
from ultrascale_training.rendezvous.etcd_client import EtcdClient, EtcdRefusedError
from ultrascale_training.rendezvous.etcd_keys import job_key, put, read, transact
from ultrascale_training.rendezvous.etcd_lease import JobLease
from ultrascale_training.rendezvous.etcd_options import parse_options
from ultrascale_training.rendezvous.etcd_store import EtcdStore
from ultrascale_training.rendezvous.etcd_v3 import EtcdV3Backend, connect, heartbeat_seconds

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    """A rendezvous id that no other test has."""
    return request.node.name


def client_of(endpoint: str, **conf: Any) -> EtcdClient:
    return connect(parse_options(parameters(endpoint, **conf)))


def make_backend(endpoint: str, job: str, *, read_interval: float = 0.0) -> EtcdV3Backend:
    client = client_of(endpoint, read_timeout=2, retry_timeout=10)
    lease = JobLease(client, job, ttl=60)
    return EtcdV3Backend(client, job, lease=lease, read_interval=read_interval)


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

    def test_a_token_of_something_else_changes_nothing(self, etcd: EtcdServer, job: str) -> None:
        backend = make_backend(etcd.endpoint, job)
        assert backend.set_state(b"x", "no token") is None
        backend.set_state(b"1")

        refused = backend.set_state(b"2", "no token")

        assert refused is not None
        assert refused[0::2] == (b"1", False)

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

    def test_a_large_job_asks_less_often(self, etcd: EtcdServer, job: str) -> None:
        backend = make_backend(etcd.endpoint, job, read_interval=0.3)
        backend.set_state(b"1")
        before = etcd.requests()

        for _ in range(100):
            backend.get_state()
        asked = etcd.requests() - before
        time.sleep(0.3)
        make_backend(etcd.endpoint, job).set_state(b"other", 0)

        assert asked <= 3
        assert backend.get_state() is not None

    def test_a_state_of_something_else_is_named(self, etcd: EtcdServer, job: str) -> None:
        client = client_of(etcd.endpoint)
        lease = JobLease(client, job, ttl=60)
        key = job_key(job, "state")
        lease.write(lambda number: transact(client, success=[put(key, b"x", lease=number)]))

        with pytest.raises(RendezvousStateError, match="use another --rdzv-id"):
            make_backend(etcd.endpoint, job).get_state()


class TestHandler:
    """What torchrun does with it."""

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
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.rendezvous_node"])
    with ProcessPoolExecutor(4, mp_context=context) as pool:
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
        client = client_of(etcd.endpoint, read_timeout=1)
        counter = EtcdStore(client, job, lease=JobLease(client, job, ttl=60), longest_wait=0.5)
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
        assert counter.get("n") == b"2"
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
            client = client_of(endpoints, read_timeout=1, retry_timeout=20)
            frozen.freeze()
            start = time.monotonic()

            for _ in range(3):
                transact(client, success=[read("key")])

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


def openssl(folder: Path, *args: object) -> None:
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, cwd=folder)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and the certificates of a server and of a client, signed by it."""
    folder = tmp_path_factory.mktemp("tls")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2)
    openssl(
        folder,
        *("req", "-x509", *new, "-subj", "/O=authority", "-keyout", "ca.key", "-out", "ca.crt"),
    )
    # etcd's gateway is a client of etcd itself, and shows the server's certificate.
    extensions = (
        "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n"
    )
    (folder / "usage").write_text(extensions)
    for name in ("server", "client"):
        subject = ("-subj", f"/O={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(folder, "req", *new[:-2], *subject)
        signer = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2)
        files = ("-in", f"{name}.csr", "-extfile", "usage", "-out", f"{name}.crt")
        openssl(folder, "x509", "-req", *signer, *files)
    return folder


@pytest.fixture(scope="module")
def tls_etcd(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    context = ssl.create_default_context(cafile=certificates / "ca.crt")
    context.load_cert_chain(certificates / "client.crt", certificates / "client.key")
    arguments = [
        *(f"--cert-file={certificates}/server.crt", f"--key-file={certificates}/server.key"),
        *(f"--trusted-ca-file={certificates}/ca.crt", "--client-cert-auth"),
    ]
    with running_etcd(tmp_path_factory.mktemp("etcd"), arguments=arguments, tls=context) as server:
        yield server


class TestSecurity:
    """Over TLS, and with a user of etcd's own."""

    def test_both_sides_prove_who_they_are(
        self, tls_etcd: EtcdServer, certificates: Path, job: str
    ) -> None:
        handler = make_handler(
            tls_etcd.endpoint,
            job,
            protocol="https",
            ca_cert=f"{certificates}/ca.crt",
            ssl_cert=f"{certificates}/client.crt",
            ssl_cert_key=f"{certificates}/client.key",
        )

        assert handler.next_rendezvous().world_size == 1

        handler.shutdown()

    def test_a_server_of_an_unknown_authority_is_refused_at_once(
        self, tls_etcd: EtcdServer, job: str
    ) -> None:
        start = time.monotonic()

        with pytest.raises(EtcdRefusedError, match=r"cannot be verified .* give its authority"):
            make_handler(tls_etcd.endpoint, job, protocol="https").next_rendezvous()

        assert time.monotonic() - start < 3

    def test_a_client_without_a_certificate_is_turned_away(
        self, tls_etcd: EtcdServer, certificates: Path, job: str
    ) -> None:
        conf: dict[str, Any] = {"protocol": "https", "ca_cert": f"{certificates}/ca.crt"}

        with pytest.raises(RendezvousConnectionError, match="certificate"):
            make_handler(tls_etcd.endpoint, job, retry_timeout=1, **conf).next_rendezvous()

    def test_a_user_joins_and_a_stranger_does_not(self, tmp_path: Path, job: str) -> None:
        right, wrong = tmp_path / "right", tmp_path / "wrong"
        right.write_text("secret\n")
        wrong.write_text("guess")
        # It hashes passwords slowly on purpose.
        with running_etcd(tmp_path, arguments=["--bcrypt-cost=4"]) as server:
            server.call("/auth/user/add", {"name": "root", "password": "secret"})
            server.call("/auth/role/add", {"name": "root"})
            server.call("/auth/user/grant", {"user": "root", "role": "root"})
            server.call("/auth/enable", {})

            with pytest.raises(EtcdRefusedError, match="user name is empty"):
                make_handler(server.endpoint, job).next_rendezvous()
            stranger = client_of(server.endpoint, user="root", password_file=str(wrong))
            with pytest.raises(EtcdRefusedError, match="invalid user ID or password"):
                transact(stranger, success=[read("key")])
            handler = make_handler(server.endpoint, job, user="root", password_file=str(right))
            store = handler.next_rendezvous().store
            # All tokens of the user end with that.
            friend = client_of(server.endpoint, user="root", password_file=str(right))
            friend.call("/auth/user/changepw", {"name": "root", "password": "secret"})

            store.set("after", "1")

            assert store.get("after") == b"1"
            handler.shutdown()


def test_all_mistakes_of_the_options_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    wrong = parameters(
        "etcd-0:2379,,etcd-1:70000",
        protocol="grpc",
        read_timeout="soon",
        lease_ttl=1,
        ssl_cert_key=f"{tmp_path}/client.key",
        user="root",
    )

    with pytest.raises(ValueError, match="rendezvous backend etcd-v3: ") as caught:
        parse_options(wrong)

    for part in (
        "no host in 'etcd-0:2379,,etcd-1:70000'",
        "between 0 and 65536",
        "protocol: unknown, got 'grpc'; write http or https",
        "read_timeout: not a time, got 'soon'; write whole seconds, 1 or more",
        "lease_ttl: not a time, got 1; write whole seconds, 5 or more",
        "ssl_cert_key: no such file",
        "ssl_cert_key: needs ssl_cert",
        "user: needs password_file",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("etcd-client", ["etcd-client:2379"]),
        ("etcd-0.etcd-server:2379, etcd-1.etcd-server:23790",
         ["etcd-0.etcd-server:2379", "etcd-1.etcd-server:23790"]),
        ("[fd00::1]:2379", ["[fd00::1]:2379"]),
    ],
)  # fmt: skip
def test_an_endpoint_names_one_member_or_several(endpoint: str, expected: list[str]) -> None:
    assert [str(each) for each in parse_options(parameters(endpoint)).endpoints] == expected


def test_a_certificate_without_https_would_not_be_shown(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()

    with pytest.raises(ValueError, match="ca_cert: means nothing over http; add protocol=https"):
        parse_options(parameters("etcd", ca_cert=f"{tmp_path}/ca.crt"))
