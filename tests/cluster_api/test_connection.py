"""Messages for an API server that cannot be reached or refuses."""

import logging
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from kubernetes.config import incluster_config

from tests.support import job_manifests as given
from tests.support.stub_api_http import ARN, kubeconfig, serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api import connection
from ultrascale.cluster_api.objects import POD
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.parts.volcano.workloads import VOLCANO_JOB


@pytest.fixture(autouse=True)
def without_a_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as server:
        yield server


@pytest.fixture
def cluster(stub: StubApiServer, tmp_path: Path) -> Cluster:
    return Cluster.connected(kubeconfig(tmp_path, stub.url))


REFUSALS = [
    (401, "Unauthorized", "renew your credentials"),
    (
        403,
        'pods is forbidden: User "me" cannot list resource "pods"',
        'cannot list resource "pods"',
    ),
    (403, "pods is forbidden", "ask an administrator of the cluster for this right"),
    (422, "spec.tasks: Required value", "spec.tasks: Required value"),
    (500, "etcdserver: leader changed", "try again"),
    (503, "the server is currently unable to handle the request", "try again"),
]


@pytest.mark.parametrize(("status", "message", "told"), REFUSALS)
def test_a_refusal_is_told_in_the_words_of_the_server_with_what_to_do(
    stub: StubApiServer, cluster: Cluster, status: int, message: str, told: str
) -> None:
    stub.refuse("GET", "/pods$", Refusal(status, message))
    with pytest.raises(RefusedError) as error:
        cluster.get(POD.path("training"))
    assert message in str(error.value)
    assert told in str(error.value)
    assert error.value.status == status


def test_an_overloaded_server_is_asked_again_when_it_says(
    stub: StubApiServer, cluster: Cluster
) -> None:
    put_off = Refusal(429, "too many requests", headers={"Retry-After": "1"}, times=1)
    stub.refuse("POST", "/jobs$", put_off)
    started = time.monotonic()
    cluster.create(VOLCANO_JOB, "training", given.volcano_job(), dry_run=False)
    assert time.monotonic() - started >= 1
    assert stub.find(f"{given.VOLCANO_JOBS}/bert") is not None


def test_a_creation_that_may_have_happened_is_not_sent_again(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("POST", "/jobs$", Refusal(0))
    with pytest.raises(ClusterError, match="cannot be reached"):
        cluster.create(VOLCANO_JOB, "training", given.volcano_job(), dry_run=False)
    assert len(stub.asked("POST")) == 1


def test_a_server_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    cluster = Cluster.connected(kubeconfig(tmp_path, url))
    with pytest.raises(ClusterError, match=r"cannot be reached.*refused") as error:
        cluster.get(POD.path("training"))
    assert "\n" not in str(error.value)
    assert "if its endpoint is private" in str(error.value)


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("127.0.0.1:8443", False),
        ("ABC.gr7.us-west-2.eks.amazonaws.com", False),
        ("api.example.com", True),
    ],
)
def test_a_proxy_is_asked_for_no_more_than_kubectl_asks_it_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, asked: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.eks.amazonaws.com")
    transport, _ = connection.connect(kubeconfig(tmp_path, f"https://{host}"), None)
    assert (cast("Any", transport).configuration.proxy is not None) == asked


def test_what_is_no_answer_of_kubernetes_is_told(stub: StubApiServer, cluster: Cluster) -> None:
    stub.refuse("GET", "/pods$", Refusal(502, text="<h1>Bad Gateway</h1>"))
    with pytest.raises(RefusedError, match=r"Bad Gateway.*try again"):
        cluster.get(POD.path("training"))


def test_a_list_of_many_is_read_in_pages(stub: StubApiServer, cluster: Cluster) -> None:
    for number in range(5):
        stub.put(f"{given.PODS}/p{number}", given.pod(f"p{number}"))
    stub.page = 2
    found = [*cluster.items(POD.path("training"))]
    assert len(found) == 5
    assert len(stub.asked("GET", "/pods")) == 3


def test_without_a_kubeconfig_it_says_how_to_get_one() -> None:
    with pytest.raises(ClusterError, match="aws eks update-kubeconfig"):
        Cluster.connected()


def test_a_kubeconfig_that_is_named_and_missing_is_never_passed_over(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    kubeconfig(tmp_path / "home" / ".kube", "http://127.0.0.1:1").rename(
        tmp_path / "home" / ".kube" / "config"
    )
    with pytest.raises(ClusterError, match="nowhere does not exist"):
        Cluster.connected(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{}", "current-context"),
        (b"", "empty"),
        (b"[1]", "no kubeconfig, not a mapping; write it by `aws eks update-kubeconfig"),
        (b"# Clusters\n\ntext", "no kubeconfig, not a mapping"),
        (b"a: [", "no kubeconfig, not YAML: .*, line 1, .*; write it by `aws eks"),
        (b"\xff\xd7", "no kubeconfig, not YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_told(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(ClusterError, match=why) as error:
        Cluster.connected(tmp_path / "config")
    assert len(str(error.value).splitlines()) == 1


def test_the_cluster_is_known_by_its_arn(tmp_path: Path) -> None:
    cluster = Cluster.connected(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert cluster.name == ARN
    assert cluster.arn is not None
    assert (cluster.arn.region, cluster.account, cluster.arn.cluster) == (
        "us-west-2",
        "111122223333",
        "trainium-bert",
    )


def command_user(folder: Path, body: str) -> dict[str, Any]:
    """Return a user whose credentials a command gives, as `aws eks get-token` does."""
    script = folder / "get-token"
    script.write_text(f"#!{sys.executable}\n{body}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(script)}}


TOKEN = """
import json, pathlib, sys
calls = pathlib.Path(__file__).with_name("calls")
number = len(calls.read_text()) if calls.exists() else 0
calls.write_text("x" * (number + 1))
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "kind": "ExecCredential",
    "status": {"token": f"token-{number}", "expirationTimestamp": "2020-01-01T00:00:00Z"},
}))
"""


def test_a_token_that_expires_is_fetched_anew(stub: StubApiServer, tmp_path: Path) -> None:
    cluster = Cluster.connected(kubeconfig(tmp_path, stub.url, user=command_user(tmp_path, TOKEN)))
    stub.token = "token-1"
    cluster.get(POD.path("training"))
    stub.token = "token-2"
    cluster.get(POD.path("training"))


def test_credentials_that_cannot_be_had_are_told_with_the_reason_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = command_user(tmp_path, "import sys; sys.exit('The SSO session has expired')")
    handlers = [*logging.getLogger().handlers]
    with pytest.raises(ClusterError, match="The SSO session has expired") as error:
        Cluster.connected(kubeconfig(tmp_path, "http://127.0.0.1:1", user=user))
    assert "aws sso login" in str(error.value)
    assert logging.getLogger().handlers == handlers


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a certificate for 127.0.0.1, and the context of a server that has it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, crt = folder / "tls.key", folder / "tls.crt"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=kubernetes"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    return crt, context


def test_in_a_pod_its_service_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crt, context = certificate(tmp_path)
    token = tmp_path / "token"
    token.write_text("first")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(crt))
    server = StubApiServer()
    server.token = "first"
    with serve(server, tls=context):
        host, _, port = server.url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)

        cluster = Cluster.connected()

        assert cluster.get(POD.path("training"))["items"] == []
        assert cluster.name == ""


def test_a_server_of_another_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    _, context = certificate(tmp_path / "theirs")
    ours, _ = certificate(tmp_path / "ours")
    with serve(StubApiServer(), tls=context) as server:
        file = kubeconfig(tmp_path, server.url)
        document = yaml.safe_load(file.read_text())
        document["clusters"][0]["cluster"]["certificate-authority"] = str(ours)
        file.write_text(yaml.safe_dump(document))

        with pytest.raises(ClusterError, match="certificate verify failed"):
            Cluster.connected(file).get(POD.path("training"))

    assert server.requests == []
