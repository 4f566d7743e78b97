"""`ultrascale status FILE --pools`: paid nodes that take no work are seen, and why."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Ultrascale
from tests.support.operate_cluster import NODE_POOLS, FakeCluster
from tests.support.pools import CAPACITY_BLOCK, POOL, SYSTEM_POOL, as_text, make_document
from tests.support.stub_api_server import Object

OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
STATIC = POOL | {
    "role": "reserved",
    "provisioner": "karpenter",
    "purchase": CAPACITY_BLOCK,
    "nodes": {"static": 4},
}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()
    monkeypatch.setattr(
        "ultrascale.cluster_api.server.Cluster.connected",
        lambda *_: found.connected(),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    )
    monkeypatch.setattr("ultrascale.cluster_api.identity.same_cluster", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    document = make_document(pools=[SYSTEM_POOL, STATIC], karpenter={"version": "1.15.2"})
    path.write_text(as_text(document))
    return path


def node(stub: FakeCluster, pool: str, number: int, **changes: Any) -> None:
    found: Object = {
        "metadata": {"labels": {"ultrascale.dev/pool": pool}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": OFFERS},
    }
    stub.put(f"/api/v1/nodes/{pool}-{number}", {**found, **changes})


def test_nodes_that_are_paid_for_and_take_no_work_are_counted_with_their_reason(
    ultrascale: Ultrascale, stub: FakeCluster, file: Path
) -> None:
    stub.put(f"{NODE_POOLS}/train", {"spec": {"replicas": 4}})
    node(stub, "system", 0)
    node(stub, "train", 0)
    node(stub, "train", 1, spec={"unschedulable": True})
    node(stub, "train", 2, status={"conditions": [{"type": "Ready", "status": "False"}]})
    drifted: Object = {"status": {"conditions": [{"type": "Drifted", "status": "True"}]}}
    labels: Object = {"metadata": {"labels": {"karpenter.sh/nodepool": "train"}}}
    drifted["status"]["nodeName"] = "train-0"
    stub.put("/apis/karpenter.sh/v1/nodeclaims/train-x", {**labels, **drifted})
    launched = {"type": "Launched", "status": "Unknown", "message": "no capacity in cr-1"}
    refused = {"status": {"conditions": [launched]}}
    stub.put("/apis/karpenter.sh/v1/nodeclaims/train-y", {**deepcopy(labels), **refused})

    answer = ultrascale("status", file, "--pools", "--json")
    table = ultrascale("status", file, "--pools").stdout

    system, train = json.loads(answer.stdout)
    assert (system["nodes"], system["ready"], system["kept"]) == (1, 1, None)
    assert train == {
        "pool": "train",
        "fewest": 0,
        "most": 4,
        "kept": 4,
        "nodes": 3,
        "ready": 1,
        "drifted": 1,
        "unfit": {"cordoned": 1, "not ready": 1},
        "coming": {"no capacity in cr-1": 1},
    }
    assert "1 cordoned, 1 not ready, 1 no capacity in cr-1" in table


def test_a_node_that_pods_are_only_better_kept_from_takes_work(
    ultrascale: Ultrascale, stub: FakeCluster, file: Path
) -> None:
    idle = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    node(stub, "train", 0, spec={"taints": [idle]})
    node(stub, "train", 1, spec={"taints": [{"key": "agent-not-ready", "effect": "NoExecute"}]})
    _, train = json.loads(ultrascale("status", file, "--pools", "--json").stdout)
    assert (train["ready"], train["unfit"]) == (1, {"tainted agent-not-ready": 1})


def test_pools_are_those_of_a_cluster_file(ultrascale: Ultrascale, stub: FakeCluster) -> None:
    answer = ultrascale("status", "--pools")
    assert answer.returncode == 64
    assert "--pools: goes with a cluster file alone" in answer.stderr
    assert stub.requests == []
