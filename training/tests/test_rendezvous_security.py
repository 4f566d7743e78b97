"""Jobs reach etcd over TLS, and options that cannot mean that are refused."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.etcd_server import (
    NO_ETCD,
    EtcdServer,
    find_etcd,
    running_etcd,
)
from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
)

from tests.support.rendezvous_node import make_handler, make_keys, parameters
from ultrascale_training.rendezvous.etcd_client import EtcdRefusedError
from ultrascale_training.rendezvous.etcd_v3 import keys_of

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    """A rendezvous id that no other test has."""
    return request.node.name


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
    """Over TLS."""

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
        keys_of(wrong)

    for part in (
        "no host in 'etcd-0:2379,,etcd-1:70000'",
        "between 0 and 65536",
        "protocol: unknown, got 'grpc'; write http or https",
        "read_timeout: not a time, got 'soon'; write whole seconds, 1 or more",
        "lease_ttl: not a time, got 1; write whole seconds, 5 or more",
        "ssl_cert_key: no such file",
        "ssl_cert_key: needs ssl_cert",
        "user: etcd's own users are not supported; let etcd ask for certificates: ssl_cert",
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
    assert [*make_keys(endpoint).client.endpoints] == expected


def test_a_certificate_without_https_would_not_be_shown(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()

    with pytest.raises(ValueError, match="ca_cert: means nothing over http; add protocol=https"):
        keys_of(parameters("etcd", ca_cert=f"{tmp_path}/ca.crt"))
