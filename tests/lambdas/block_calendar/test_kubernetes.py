"""The block calendar's end of the Kubernetes API: scaling, cordoning and warning."""

import base64
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.session import Session

from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.lambdas.block_calendar.handler import StaticNodePool
from ultrascale.lambdas.kubernetes import KubernetesApi, KubernetesError, bearer_token

NODE_POOL = "/apis/karpenter.sh/v1/nodepools/train"
PODS = "/api/v1/namespaces/training/pods"


def node(name: str, pool: str = "train", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"karpenter.sh/nodepool": pool}},
        "spec": spec,
    }


def pod(name: str, on: str, owner: str = "Job", phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "training",
            "uid": f"uid-{name}",
            "ownerReferences": [{"kind": owner}],
        },
        "spec": {"nodeName": on},
        "status": {"phase": phase},
    }


@pytest.fixture
def cluster() -> Iterator[StubApiServer]:
    nodes = [
        node("n1"),
        node("n2", unschedulable=True),
        node("n3"),
        node("other", pool="inference"),
    ]
    pods = [
        pod("rank-0", on="n1"),
        pod("rank-1", on="n2"),
        pod("rank-2", on="n3"),
        pod("done", on="n1", phase="Succeeded"),
        pod("plugin", on="n1", owner="DaemonSet"),
        pod("kube-proxy", on="n1", owner="Node"),
        pod("serving", on="other"),
    ]
    server = StubApiServer(token=None, strict=False)
    server.groups.add("/apis/karpenter.sh/v1")
    server.put("/api/v1/namespaces/default", {"kind": "Namespace"})
    server.put(NODE_POOL, {"spec": {"replicas": 16, "weight": 1}})
    for each in nodes:
        server.put(f"/api/v1/nodes/{each['metadata']['name']}", each)
    for each in pods:
        server.put(f"{PODS}/{each['metadata']['name']}", each)
    with serve(server):
        yield server


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def pool(cluster: StubApiServer, slept: list[float]) -> StaticNodePool:
    api = KubernetesApi(
        endpoint=cluster.url,
        context=ssl.create_default_context(),
        token="token",
        sleep=slept.append,
    )
    return StaticNodePool(api=api, name="train")


def objects(cluster: StubApiServer, part: str) -> list[dict[str, Any]]:
    """Return the objects below a path, in the order in which they were created."""
    return [each for path, each in cluster.objects.items() if path.startswith(part)]


def cordoned(cluster: StubApiServer) -> set[str]:
    nodes = objects(cluster, "/api/v1/nodes/")
    return {each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")}


def events(cluster: StubApiServer) -> list[dict[str, Any]]:
    """Return the events, in the order in which they were created."""
    return [each for each in objects(cluster, "/api/v1/") if each.get("kind") == "Event"]


def warned(cluster: StubApiServer) -> list[tuple[str, str]]:
    subjects = [event["involvedObject"] for event in events(cluster)]
    return [(subject["kind"], subject["name"]) for subject in subjects]


def test_setting_the_size_changes_the_replicas_alone_and_overwrites_no_other(
    pool: StaticNodePool, cluster: StubApiServer
) -> None:
    assert pool.size() == 16
    with pytest.raises(KubernetesError, match="422"):
        pool.set_size(32, was=0)
    assert pool.size() == 16
    pool.set_size(0, was=16)
    assert cluster.objects[NODE_POOL]["spec"] == {"replicas": 0, "weight": 1}
    assert {each.headers["authorization"] for each in cluster.requests} == {"Bearer token"}


def test_draining_cordons_the_nodes_of_the_pool_and_then_warns_each_and_its_jobs(
    pool: StaticNodePool, cluster: StubApiServer
) -> None:
    pool.drain("the block ends")

    assert cordoned(cluster) == {"n1", "n2", "n3"}
    patched = [each.path for each in cluster.asked("PATCH")]
    assert patched == ["/api/v1/nodes/n1", "/api/v1/nodes/n3"]
    assert warned(cluster) == [
        *(("Node", "n1"), ("Pod", "rank-0"), ("Node", "n2"), ("Pod", "rank-1")),
        *(("Node", "n3"), ("Pod", "rank-2")),
    ]
    methods = [each.method for each in cluster.requests]
    assert "PATCH" not in methods[methods.index("POST") :]
    first = cluster.asked("POST")[0]
    assert first.path == "/api/v1/namespaces/default/events"
    assert "namespace" not in first.body["involvedObject"]


def test_a_warning_is_an_event_that_kubectl_describe_shows(
    pool: StaticNodePool, cluster: StubApiServer
) -> None:
    pool.drain("the block ends")

    (event,) = (
        request.body
        for request in cluster.asked("POST", "/api/v1/namespaces/training/events")
        if request.body["involvedObject"]["name"] == "rank-0"
    )
    assert event["metadata"] == {"name": "rank-0.uid-rank-0", "namespace": "training"}
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "rank-0",
        "namespace": "training",
        "uid": "uid-rank-0",
    }
    assert (event["type"], event["message"]) == ("Warning", "the block ends")
    moment = datetime.fromisoformat(event["lastTimestamp"])
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60


def test_the_name_of_an_event_is_valid_whatever_the_pod_is_called(
    pool: StaticNodePool, cluster: StubApiServer
) -> None:
    name = "a" * 199 + "-" + "b" * 40
    cluster.put(f"{PODS}/{name}", pod(name, on="n1"))
    pool.drain("the block ends")
    (event,) = (each for each in events(cluster) if each["involvedObject"]["name"] == name)
    assert event["metadata"]["name"] == "a" * 199 + f".uid-{name}"


def test_nodes_on_their_way_count_by_their_instances(
    pool: StaticNodePool, cluster: StubApiServer
) -> None:
    """A count that is too low asks for fewer nodes than run, and Karpenter ends paid ones."""
    launched = {"providerID": "aws:///us-west-2b/i-1"}
    claims: dict[str, dict[str, Any]] = {
        "ready": {"status": launched},
        "on its way": {"status": launched},
        "without an instance": {"status": {}},
        "ending": {"status": launched, "deletionTimestamp": "2026-12-02T00:00:00Z"},
        "of another pool": {"status": launched, "pool": "inference"},
    }
    for name, fields in claims.items():
        labels = {"karpenter.sh/nodepool": fields.pop("pool", "train")}
        ends = {key: fields.pop(key) for key in ("deletionTimestamp",) if key in fields}
        path = f"/apis/karpenter.sh/v1/nodeclaims/{name.replace(' ', '-')}"
        cluster.put(path, {"metadata": {"labels": labels, **ends}, **fields})
    cluster.update(NODE_POOL, status={"nodes": 1})
    assert pool.running() == 2

    cluster.update(NODE_POOL, status={"nodes": 16})
    assert pool.running() == 16


@pytest.mark.parametrize("status", [403, 404, 409])
def test_a_pod_that_nobody_can_warn_any_more_holds_nothing_up(
    pool: StaticNodePool, cluster: StubApiServer, status: int
) -> None:
    cluster.refuse("POST", "/namespaces/training/events$", Refusal(status, times=1))
    pool.drain("the block ends")
    assert ("Pod", "rank-2") in warned(cluster)


def test_a_node_that_is_gone_needs_no_cordon(pool: StaticNodePool, cluster: StubApiServer) -> None:
    cluster.refuse("PATCH", "/api/v1/nodes/n1$", Refusal(404))
    pool.drain("the block ends")
    assert "n3" in cordoned(cluster)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/api/v1/nodes/n3"),
        ("POST", "/api/v1/namespaces/training/events"),
        ("GET", "/api/v1/pods"),
    ],
)
def test_an_api_server_that_fails_is_an_error_and_the_next_run_completes(
    pool: StaticNodePool, cluster: StubApiServer, method: str, path: str
) -> None:
    cluster.refuse(method, f"{path}$", Refusal(500, times=1))
    with pytest.raises(KubernetesError, match="500"):
        pool.drain("the block ends")
    pool.drain("the block ends")
    assert cordoned(cluster) == {"n1", "n2", "n3"}
    assert ("Pod", "rank-2") in warned(cluster)


def test_an_access_entry_that_the_api_server_does_not_know_yet_is_waited_for(
    pool: StaticNodePool, cluster: StubApiServer, slept: list[float]
) -> None:
    cluster.refuse("GET", NODE_POOL, Refusal(401, times=2))
    assert pool.size() == 16
    assert len(slept) == 2


def test_who_stays_unknown_is_refused(
    pool: StaticNodePool, cluster: StubApiServer, slept: list[float]
) -> None:
    cluster.refuse("GET", NODE_POOL, Refusal(401))
    with pytest.raises(KubernetesError, match="401"):
        pool.size()
    assert sum(slept) < 60


def test_the_token_is_a_request_signed_for_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    token = bearer_token(Session(), cluster="research", region="us-west-2")

    prefix, _, text = token.partition(".")
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    assert prefix == "k8s-aws-v1"
    assert "=" not in text
    assert url.netloc == "sts.us-west-2.amazonaws.com"
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].endswith("/us-west-2/sts/aws4_request")
    assert query["X-Amz-Expires"] == "60"
