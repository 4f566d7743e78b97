"""The function behind the fleet metrics, against an API server of a few lines."""

import base64
import json
import ssl
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.fleet import node, pod, pool
from tests.support.model_servers import BUSY, IDLE, metrics_path, server
from tests.support.observability_plans import HYBRID_PLAN, of, serving
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.lambdas import kubernetes
from ultrascale.lambdas.fleet_metrics import handler
from ultrascale.lambdas.kubernetes import ApiServer, KubernetesError

PLAN = HYBRID_PLAN
# Without the exporters, which are asked at the addresses of their pods.
EVENT = json.loads(json.dumps({**of(PLAN).fleet_metrics.input, "exporters": None}))
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
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        authority = base64.b64encode(b"a certificate").decode()
        found = ApiServer(endpoint=server.url, certificate_authority=authority)
        monkeypatch.setattr(kubernetes, "look_up", Mock(return_value=found))
        monkeypatch.setattr(kubernetes, "tls_context", lambda _: ssl.create_default_context())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
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
    handler.on_event(EVENT, Mock())

    found = events(capsys)
    whole = of_cluster(found)
    assert whole["Cluster"] == "hybrid-hyperpod"
    assert whole["Nodes"] == 6
    assert whole["ReservedIdleBesideBurst"] == 16
    assert whole["RunningJobs"] == 3
    assert whole["ReservedNodesMissing"] >= 0
    (queue,) = (e for e in found if e.get("Queue") == "hyperpod-ns-research-localqueue")
    assert queue["QueueWaiting"] == 1
    # The stub hands out two objects a page; the plugin's pod is left out by the API server.
    assert [each.path for each in cluster.requests] == [NODES] * 3 + [PODS] * 2 + [WORKLOADS]
    (token,) = {each.headers["authorization"] for each in cluster.requests}
    encoded = token.removeprefix("Bearer k8s-aws-v1.")
    assert b"sts.us-east-1.amazonaws.com" in base64.urlsafe_b64decode(encoded + "==")


def test_queues_that_are_not_installed_yet_hold_nothing_up(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.groups.remove("/apis/kueue.x-k8s.io/v1beta2")
    handler.on_event(EVENT, Mock())
    assert of_cluster(events(capsys))["Nodes"] == 6


@pytest.mark.parametrize("path", [NODES, PODS, WORKLOADS])
def test_a_cluster_that_refuses_is_no_empty_cluster(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    """The alarm takes silence for a fault, and would take zeros for a healthy, empty fleet."""
    cluster.refuse("GET", f"{path}$", Refusal(403))
    with pytest.raises(KubernetesError, match="403"):
        handler.on_event(EVENT, Mock())
    assert events(capsys) == []


HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
LAYERS = [f"topology.k8s.aws/network-node-layer-{layer}" for layer in (3, 2, 1)]
TOUCHED = "ultrascale-look-again"
AWARE: Any = {
    **EVENT,
    "topology": {
        "label": LAYERS[-1],
        "pools": ["hyperpod"],
        "labels": LAYERS,
        "hyper_nodes": HYPER_NODES,
        "touched": TOUCHED,
    },
}


@pytest.fixture
def placed(cluster: StubApiServer) -> StubApiServer:
    """Let five nodes be in three groups of the lowest layer, below two and one."""
    cluster.strict = False
    cluster.groups.add("/apis/topology.volcano.sh/v1alpha1")
    groups = ["a", "a", "b", "b", "c"]
    above = {"a": ("x", "top"), "b": ("x", "top"), "c": ("y", "top")}
    for index, group in enumerate(groups):
        values = dict(zip(LAYERS, (group, *above[group]), strict=True))
        cluster.update(f"{NODES}/h{index}", metadata={"labels": values})
    for group, members in (("a", 2), ("b", 2), ("c", 1)):
        put_hyper_node(cluster, LAYERS[0], group, members)
    for layer, group in ((LAYERS[1], "x"), (LAYERS[1], "y"), (LAYERS[2], "top")):
        put_hyper_node(cluster, layer, group, 1)
    return cluster


def put_hyper_node(cluster: StubApiServer, layer: str, group: str, members: int) -> None:
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
    found = {"metadata": {"labels": {layer: group}}, "spec": {"members": [member] * members}}
    cluster.put(f"{HYPER_NODES}/hypernode-{group}", found)


def touches(cluster: StubApiServer) -> list[tuple[str, str]]:
    return [(each.method, each.path) for each in cluster.requests if each.method != "GET"]


@pytest.mark.parametrize(
    ("lacks", "left", "missing"),
    [
        ((), False, 0),
        *(((group,), False, 1) for group in ("b", "x", "top")),
        # An earlier call left it behind.
        (("b",), True, 1),
    ],
)
def test_volcano_is_made_to_look_again_for_a_hyper_node_that_it_lacks(
    placed: StubApiServer,
    capsys: pytest.CaptureFixture[str],
    lacks: tuple[str, ...],
    left: bool,
    missing: int,
) -> None:
    """Volcano tries none again that was refused, and gangs spread over groups it cannot see."""
    for group in lacks:
        placed.remove(f"{HYPER_NODES}/hypernode-{group}")
    if left:
        placed.put(f"{HYPER_NODES}/{TOUCHED}", {"spec": {}})

    handler.on_event(AWARE, Mock())

    assert of_cluster(events(capsys))["HyperNodesMissing"] == missing
    touched = [("POST", HYPER_NODES), ("DELETE", f"{HYPER_NODES}/{TOUCHED}")]
    assert left or touches(placed) == touched * missing
    assert f"{HYPER_NODES}/{TOUCHED}" not in placed.objects


def test_hyper_nodes_are_held_against_the_nodes_that_have_their_labels(
    placed: StubApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> int:
        handler.on_event(AWARE, Mock())
        return of_cluster(events(capsys))["HyperNodesMissing"]

    put_hyper_node(placed, LAYERS[0], "a", 1)
    # Measured also where Volcano cannot be touched.
    placed.refuse("POST", HYPER_NODES, Refusal(500))
    assert missing() == 1
    put_hyper_node(placed, LAYERS[0], "a", 2)
    # A node without the lowest label is in no group of Volcano's.
    del placed.objects[f"{NODES}/h4"]["metadata"]["labels"][LAYERS[0]]
    for group in ("c", "y"):
        placed.remove(f"{HYPER_NODES}/hypernode-{group}")
    assert missing() == 0


def test_services_are_asked_behind_the_api_server_and_have_rates_from_the_second_call_on(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put("/api/v1/namespaces/training/pods/chat-0", server("chat-0"))
    cluster.proxied[metrics_path("chat-0")] = [IDLE, BUSY]
    event = json.loads(json.dumps({**of(serving()).fleet_metrics.input, "exporters": None}))
    monkeypatch.setattr(handler, "_earlier", {})

    handler.on_event(event, Mock())
    (first,) = (each for each in events(capsys) if "Service" in each)
    handler.on_event(event, Mock())
    (second,) = (each for each in events(capsys) if "Service" in each)

    assert first["Service"] == "training/chat"
    assert first["ServiceReplicas"] == 1
    assert "ServiceGeneratedTokens" not in first
    assert second["ServiceRequestsWaiting"] == 20
    assert second["ServiceGeneratedTokens"] > 0
    (directive,) = second["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["Cluster", "Service"]]
    units = {each["Name"]: each["Unit"] for each in directive["Metrics"]}
    assert units["ServiceGeneratedTokens"] == "Count/Second"
    assert units["ServiceFirstTokenP95"] == "Seconds"


def test_pods_whose_metrics_are_refused_hold_nothing_up(
    cluster: StubApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.put("/api/v1/namespaces/training/pods/chat-0", server("chat-0"))
    cluster.refuse("GET", "/proxy/metrics", Refusal(403, "pods/proxy is forbidden"))
    event = json.loads(json.dumps({**of(serving()).fleet_metrics.input, "exporters": None}))

    handler.on_event(event, Mock())

    out = capsys.readouterr().out
    assert "pods/proxy is forbidden" in out
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    (service,) = (each for each in found if "Service" in each)
    assert service["ServiceReplicas"] == 0
