"""The function behind the fleet metrics, against an API server of a few lines."""

import base64
import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fleet import node, pod, pool
from tests.support.observability_plans import HYBRID_PLAN, of
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.lambdas.fleet_metrics import handler
from ultrascale.lambdas.kubernetes import KubernetesError

PLAN = HYBRID_PLAN
# Without the exporters, which are asked at the addresses of their pods.
EVENT = json.loads(json.dumps({**of(PLAN).fleet_metrics.input, "Exporters": None}))
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubApiServer]:
    nodes = [node(f"h{index}", pool(PLAN, "hyperpod")) for index in range(5)]
    nodes.append(node("s0", pool(PLAN, "eks-spot")))
    pods = [pod(f"p{index}", f"h{index}") for index in range(3)]
    pods.append(pod("plugin", "h4", namespace="kube-system"))
    workload: dict[str, Any] = {
        "spec": {"queueName": "hyperpod-ns-research-localqueue", "podSets": []}
    }
    server = StubApiServer(token=None)
    server.page = 2
    server.groups.add("/apis/kueue.x-k8s.io/v1beta2")
    for each in nodes:
        server.put(f"{NODES}/{each['metadata']['name']}", each)
    for each in pods:
        metadata = each["metadata"]
        server.put(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", each)
    server.put("/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-research/workloads/w", workload)
    with serve(server):
        monkeypatch.setenv("CLUSTER_ENDPOINT", server.url)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        authority = base64.b64encode(b"a certificate").decode()
        monkeypatch.setenv("CLUSTER_CERTIFICATE_AUTHORITY", authority)
        monkeypatch.setattr(handler, "tls_context", lambda _: ssl.create_default_context())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        yield server


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def of_cluster(found: list[dict[str, Any]]) -> dict[str, Any]:
    (whole,) = (
        each for each in found if not each.keys() & {"NodeType", "Capacity", "Team", "Queue"}
    )
    return whole


def test_a_call_writes_what_the_cluster_holds(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    handler.on_event(EVENT)

    found = events(capsys)
    whole = of_cluster(found)
    assert whole["Cluster"] == "hybrid-hyperpod"
    assert whole["Nodes"] == 6
    assert whole["ReservedIdleBesideBurst"] == 16
    assert whole["RunningJobs"] == 3
    assert whole["ReservedNodesMissing"] >= 0
    (queue,) = (e for e in found if e.get("Queue") == "hyperpod-ns-research-localqueue")
    assert queue["QueueWaiting"] == 1


def test_every_page_of_a_list_is_read_once(cluster: StubApiServer) -> None:
    handler.on_event(EVENT)

    # The stub hands out two objects a page; the plugin's pod is left out by the API server.
    assert [each.path for each in cluster.requests] == [NODES] * 3 + [PODS] * 2 + [WORKLOADS]


def test_queues_that_are_not_installed_yet_hold_nothing_up(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.groups.remove("/apis/kueue.x-k8s.io/v1beta2")

    handler.on_event(EVENT)

    assert of_cluster(events(capsys))["Nodes"] == 6


@pytest.mark.parametrize("path", [NODES, PODS, WORKLOADS])
def test_a_cluster_that_refuses_is_no_empty_cluster(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    cluster.refuse("GET", f"{path}$", Refusal(403))

    with pytest.raises(KubernetesError, match="403"):
        handler.on_event(EVENT)

    # The alarm takes silence for a fault, and would take zeros for a healthy, empty fleet.
    assert events(capsys) == []


def test_it_signs_in_to_the_cluster_that_it_measures(cluster: StubApiServer) -> None:
    handler.on_event(EVENT)

    (token,) = {each.headers["authorization"] for each in cluster.requests}
    encoded = token.removeprefix("Bearer k8s-aws-v1.")
    assert b"sts.us-east-1.amazonaws.com" in base64.urlsafe_b64decode(encoded + "==")
