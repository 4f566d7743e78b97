"""Replicas that follow the load: what KEDA is told, and what it then does."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.jobs import job_cluster, objects, prepared, refusals
from tests.support.models.autoscaler import SYNC_SECONDS, Autoscaler
from tests.support.pools import pool_document
from ultrascale.jobs.manifests import JobManifests

VLLM = "docker.io/vllm/vllm-openai:v0.33.0"
IDLE, BUSY = (
    (ROOT / f"tests/data/vllm/metrics-{load}.txt").read_text() for load in ("idle", "busy")
)
LULL = 600
GROWING = pool_document(instance_types=["p5.48xlarge"], provisioner="karpenter", nodes={"max": 8})
FIXED = pool_document(instance_types=["p5.48xlarge"], nodes={"static": 2})


def service(*args: str, **autoscale: Any) -> dict[str, Any]:
    return {
        "kind": "service",
        "image": VLLM,
        "pool": "train",
        "resources": {"gpu": 8},
        "args": ["some/model", *args],
        "port": 8000,
        "startup_seconds": LULL,
        "autoscale": {"metric": "waiting", "target": 5, "max": 6} | autoscale,
    }


def sent(job: dict[str, Any], pool: dict[str, Any] = GROWING) -> JobManifests:
    return prepared(job_cluster(pool, scheduling=None), job | {"name": "chat"})


def spec(*args: str, **autoscale: Any) -> dict[str, Any]:
    (found,) = objects(sent(service(*args, **autoscale)), "ScaledObject")
    return found["spec"]


def of_load(*, waiting: float = 0, running: float = 0, cache: float = 0) -> str:
    """Return what a real vLLM answered, with other numbers."""
    text = IDLE
    for name, value in {
        "num_requests_waiting": waiting,
        "num_requests_running": running,
        "kv_cache_usage_perc": cache,
    }.items():
        text, found = re.subn(rf"^(vllm:{name}{{[^}}]*}}) .*$", rf"\g<1> {value}", text, flags=re.M)
        assert found == 1
    return text


def test_keda_takes_the_average_of_the_requests_that_wait_at_a_ready_pod() -> None:
    """A sum would take a pod that is too busy to answer for one without requests."""
    found = sent(service())
    (scaled,), (deployment,) = objects(found, "ScaledObject"), objects(found, "Deployment")
    (policy,) = objects(found, "NetworkPolicy")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    # The number of replicas is the autoscaler's.
    assert "replicas" not in deployment["spec"]
    assert scaled["spec"]["scaleTargetRef"] == target
    assert scaled["spec"]["triggers"][0] == {
        "type": "metrics-api",
        "metricType": "Value",
        "metadata": {
            "url": "http://chat.training.svc:8000/metrics",
            "format": "prometheus",
            "valueLocation": "vllm:num_requests_waiting",
            "aggregateFromKubeServiceEndpoints": "true",
            "aggregationType": "average",
            "timeout": "15s",
            "targetValue": "5",
        },
    }
    # It takes the pods' addresses from the Service, and the port from the URL.
    assert container["ports"][0]["containerPort"] == 8000
    # Only KEDA reaches a service of a closed namespace.
    keda = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}},
        "podSelector": {"matchLabels": {"app": "keda-operator"}},
    }
    assert keda in [peer for rule in policy["spec"]["ingress"] for peer in rule["from"]]


def test_use_of_cpu_is_read_of_the_program_alone() -> None:
    found = spec(metric="cpu", target=70)

    assert found["triggers"] == [
        {
            "type": "cpu",
            "metricType": "Utilization",
            "metadata": {"value": "70", "containerName": "main"},
        }
    ]
    # KEDA refuses one beside a trigger that it does not read itself.
    assert "fallback" not in found


@pytest.mark.parametrize("metric", ["waiting", "running", "cpu"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_api_server_takes_what_keda_is_told(metric: str, nodes: int) -> None:
    lines = (ROOT / "tests/data/keda_crds.jsonl").read_text().splitlines()
    crds = CrdSet.from_documents(json.loads(line) for line in lines if not line.startswith("#"))
    sizes = ("--tensor-parallel-size=8", f"--pipeline-parallel-size={nodes}")
    job = service(*sizes, metric=metric, target=50, max=2) | {"nodes": nodes}
    (found,) = objects(sent(job), "ScaledObject")
    target = {1: "Deployment", 2: "LeaderWorkerSet"}[nodes]

    assert crds.validate(found) == []
    assert crds.stored(found) == found
    assert found["spec"]["scaleTargetRef"]["kind"] == target


# --- decisions -----------------------------------------------------------------------------------


def decisions(autoscaler: Autoscaler, pods: list[str | None], seconds: int) -> list[int]:
    return [autoscaler.sync(pods) for _ in range(seconds // SYNC_SECONDS)]


def test_replicas_come_at_once_while_requests_wait() -> None:
    """20 wait at the only replica, as recorded: at a target of 5 each, 4 replicas."""
    found = Autoscaler(spec(), replicas=1)
    assert decisions(found, [BUSY], 15) == [4]
    # Three of them still load the model: nothing more comes for the same requests.
    assert set(decisions(found, [BUSY], LULL)) == {4}
    # No more come than the file allows.
    assert decisions(Autoscaler(spec(max=3), replicas=1), [BUSY], 300)[-1] == 3


def test_replicas_go_one_by_one_and_only_after_a_long_lull() -> None:
    found = Autoscaler(spec(), replicas=1)
    decisions(found, [BUSY], 60)
    lull = decisions(found, [IDLE] * 4, LULL - 60)
    after = decisions(found, [IDLE] * 4, 600)

    assert set(lull) == {4}
    assert after[-1] == 1
    assert all(before - later in (0, 1) for before, later in pairwise(after))


@pytest.mark.parametrize(
    ("args", "running", "cache"), [([], 40, 0.72), (["--max-num-seqs", "64"], 45, 0.2)]
)
def test_replicas_that_are_full_stay_although_nothing_waits(
    args: list[str], running: int, cache: float
) -> None:
    """Or they would go, requests would wait again, and a model be loaded anew."""
    found = Autoscaler(spec(*args), replicas=4)
    full = of_load(running=running, cache=cache)
    assert set(decisions(found, [full] * 4, 3600)) == {4}


def test_a_pod_that_does_not_answer_takes_nobodys_replica_away_at_once() -> None:
    found = Autoscaler(spec(), replicas=4)
    loaded = of_load(waiting=5, cache=0.7)
    decisions(found, [loaded] * 4, 300)

    assert set(decisions(found, [loaded, loaded, loaded, None], 240)) == {4}


def test_pods_too_busy_to_answer_take_no_replicas_away_under_load() -> None:
    """Half of 200 waiting requests are at pods that do not answer in time."""
    full = of_load(waiting=50, running=32, cache=0.9)

    assert decisions(Autoscaler(spec(), replicas=4), [full, None, full, None], 120)[-1] == 6
    for deaf in range(4):
        held = Autoscaler(spec("--max-num-seqs", "64"), replicas=4)
        steady = of_load(waiting=4, running=40, cache=0.75)
        pods: list[str | None] = [steady] * (4 - deaf) + [None] * deaf
        assert min(decisions(held, pods, 3600)) >= 4


def test_replicas_stay_where_no_metrics_can_be_read() -> None:
    found = Autoscaler(spec(min=2), replicas=5)

    assert set(decisions(found, [None] * 5, 3600)) == {5}
    assert set(decisions(Autoscaler(spec(min=2), replicas=1), [None], 300)) == {2}


def test_running_requests_alone_decide_where_the_file_says_so() -> None:
    found = spec(metric="running", target=2)

    assert [each["metadata"]["valueLocation"] for each in found["triggers"]] == [
        "vllm:num_requests_running"
    ]
    # 4 run, as recorded.
    assert decisions(Autoscaler(found, replicas=1), [BUSY], 15) == [2]


def test_the_metrics_that_keda_reads_are_those_of_a_real_server() -> None:
    for trigger in spec("--max-num-seqs", "64")["triggers"]:
        name = trigger["metadata"]["valueLocation"]
        assert len(re.findall(rf"^{name}{{", BUSY, re.M)) == 1


# --- mistakes ------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "more than the pool holds": (
        service(max=9),
        GROWING,
        "autoscale.max: replicas_can_follow_the_load",
    ),
    "more than there are": (
        service(max=3),
        FIXED,
        "autoscale.max: replicas_can_follow_the_load",
    ),
    "a server that counts nothing": (
        service("--disable-log-stats"),
        GROWING,
        "autoscale.metric: replicas_can_follow_the_load",
    ),
    "several engines in a replica": (
        service("--data-parallel-size", "4", "--tensor-parallel-size", "2"),
        GROWING,
        "autoscale.metric: replicas_can_follow_the_load",
    ),
    "more running than ever run": (
        service("--max-num-seqs", "64", metric="running", target=100),
        GROWING,
        "autoscale.target: replicas_can_follow_the_load",
    ),
}


@pytest.mark.parametrize(("job", "pool", "line"), WRONG.values(), ids=list(WRONG))
def test_replicas_that_could_not_follow_the_load_are_refused(
    job: dict[str, Any], pool: dict[str, Any], line: str
) -> None:
    assert refusals(job_cluster(pool, scheduling=None), job | {"name": "chat"}) == [line]
