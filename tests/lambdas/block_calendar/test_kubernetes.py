"""The block calendar's end of the Kubernetes API: scaling, cordoning and warning."""

import base64
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.session import Session

from tests.support.fake_kubernetes import FakeKubernetes, serve
from ultrascale.lambdas.block_calendar.node_pool import StaticNodePool
from ultrascale.lambdas.kubernetes import (
    KubernetesApi,
    KubernetesError,
    bearer_token,
)

NODE_POOL = "/apis/karpenter.sh/v1/nodepools/train"


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
def cluster() -> Iterator[FakeKubernetes]:
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
    objects: dict[str, Any] = {
        NODE_POOL: {"spec": {"replicas": 16, "weight": 1}},
        "/api/v1/nodes": nodes,
        "/api/v1/pods": pods,
    }
    objects |= {f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes}
    with serve(FakeKubernetes(objects)) as fake:
        yield fake


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def pool(cluster: FakeKubernetes, slept: list[float]) -> StaticNodePool:
    api = KubernetesApi(
        endpoint=cluster.url,
        context=ssl.create_default_context(),
        token="token",
        sleep=slept.append,
    )
    return StaticNodePool(api=api, name="train")


def cordoned(cluster: FakeKubernetes) -> set[str]:
    nodes = cluster.objects["/api/v1/nodes"]
    return {each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")}


def warned(cluster: FakeKubernetes) -> list[tuple[str, str]]:
    events = [event for _, event in cluster.created]
    return [(each["involvedObject"]["kind"], each["involvedObject"]["name"]) for each in events]


def test_the_size_is_the_number_of_replicas(pool: StaticNodePool) -> None:
    assert pool.size() == 16


def test_setting_the_size_changes_the_replicas_alone(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.set_size(0, was=16)

    assert cluster.objects[NODE_POOL] == {"spec": {"replicas": 0, "weight": 1}}
    assert cluster.tokens == {"Bearer token"}


def test_a_size_that_changed_meanwhile_is_not_overwritten(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    with pytest.raises(KubernetesError, match="422"):
        pool.set_size(32, was=0)

    assert pool.size() == 16


def test_draining_cordons_the_nodes_of_the_pool_and_no_others(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.drain("the block ends")

    assert cordoned(cluster) == {"n1", "n2", "n3"}
    assert [path for path, _, _ in cluster.patches] == ["/api/v1/nodes/n1", "/api/v1/nodes/n3"]


def test_draining_warns_each_node_and_each_job_on_it(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.drain("the block ends")

    assert warned(cluster) == [
        ("Node", "n1"),
        ("Pod", "rank-0"),
        ("Node", "n2"),
        ("Pod", "rank-1"),
        ("Node", "n3"),
        ("Pod", "rank-2"),
    ]


def test_every_node_is_cordoned_before_anybody_is_warned(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.drain("the block ends")

    methods = [method for method, _ in cluster.requests]
    assert "PATCH" not in methods[methods.index("POST") :]


def test_a_warning_is_an_event_that_kubectl_describe_shows(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.drain("the block ends")

    path, event = next(
        each for each in cluster.created if each[1]["involvedObject"]["name"] == "rank-0"
    )
    assert path == "/api/v1/namespaces/training/events"
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


def test_the_event_of_a_node_lies_in_the_default_namespace(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    pool.drain("the block ends")

    path, event = cluster.created[0]
    assert path == "/api/v1/namespaces/default/events"
    assert "namespace" not in event["involvedObject"]


def test_the_name_of_an_event_is_valid_whatever_the_pod_is_called(
    pool: StaticNodePool, cluster: FakeKubernetes
) -> None:
    name = "a" * 199 + "-" + "b" * 40
    cluster.objects["/api/v1/pods"] = [pod(name, on="n1")]

    pool.drain("the block ends")

    event = next(each for _, each in cluster.created if each["involvedObject"]["kind"] == "Pod")
    assert event["metadata"]["name"] == "a" * 199 + f".uid-{name}"


@pytest.mark.parametrize("status", [403, 404, 409])
def test_a_pod_that_nobody_can_warn_any_more_holds_nothing_up(
    pool: StaticNodePool, cluster: FakeKubernetes, status: int
) -> None:
    cluster.refusals["POST", "/api/v1/namespaces/training/events"] = [status]

    pool.drain("the block ends")

    assert ("Pod", "rank-2") in warned(cluster)


def test_a_node_that_is_gone_needs_no_cordon(pool: StaticNodePool, cluster: FakeKubernetes) -> None:
    del cluster.objects["/api/v1/nodes/n1"]

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
    pool: StaticNodePool, cluster: FakeKubernetes, method: str, path: str
) -> None:
    cluster.refusals[method, path] = [500]

    with pytest.raises(KubernetesError, match="500"):
        pool.drain("the block ends")

    pool.drain("the block ends")
    assert cordoned(cluster) == {"n1", "n2", "n3"}
    assert ("Pod", "rank-2") in warned(cluster)


def test_an_access_entry_that_the_api_server_does_not_know_yet_is_waited_for(
    pool: StaticNodePool, cluster: FakeKubernetes, slept: list[float]
) -> None:
    cluster.refusals["GET", NODE_POOL] = [401, 401]

    assert pool.size() == 16
    assert len(slept) == 2


def test_who_stays_unknown_is_refused(
    pool: StaticNodePool, cluster: FakeKubernetes, slept: list[float]
) -> None:
    cluster.refusals["GET", NODE_POOL] = [401] * 9

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
