"""`ultrascale scale` of static NodePools, and the sizes that nobody sets by hand."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Ultrascale
from tests.support.operate_cluster import NODE_POOLS, FakeCluster, Time, put_node
from tests.support.operate_groups import BEFORE, MANAGED, has, written
from tests.support.pools import CAPACITY_BLOCK, HYPERPOD_POOL, POOL, SPOT
from ultrascale.cluster_api.server import Cluster

BLOCK = POOL | {"role": "reserved", "purchase": CAPACITY_BLOCK}
STATIC = BLOCK | {"provisioner": "karpenter", "nodes": {"static": 4}}
OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
FIRST_HOUR = datetime(2026, 12, 1, 12, tzinfo=UTC)
DRAINED = datetime(2026, 12, 8, 11, tzinfo=UTC)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr("ultrascale.cli.ask.clock", lambda: found.clock)
    return found


def in_cluster(monkeypatch: pytest.MonkeyPatch, stub: FakeCluster) -> None:
    def connected(*_: object) -> Cluster:
        return stub.connected()

    monkeypatch.setattr("ultrascale.cli.ask.connected", connected)


def static_cluster(replicas: int) -> FakeCluster:
    stub = FakeCluster()
    stub.put(f"{NODE_POOLS}/train", {"spec": {"replicas": replicas}})
    for number in range(replicas):
        put_node(stub, "train", number, OFFERS)
    return stub


def test_a_static_node_pool_is_set_and_its_nodes_are_waited_for_with_their_accelerators(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, time: Time
) -> None:
    stub = static_cluster(2)
    in_cluster(monkeypatch, stub)
    allocatable = [OFFERS | {"nvidia.com/gpu": "0"}, OFFERS]

    def kubelet() -> None:
        if allocatable:
            put_node(stub, "train", 2, allocatable.pop(0))

    time.each = kubelet

    answer = ultrascale("scale", written(tmp_path, STATIC), "train", 3, "--yes")

    found = stub.find(f"{NODE_POOLS}/train")
    assert answer.returncode == 0
    assert found is not None
    assert found["spec"]["replicas"] == 3
    assert time.sleeps == 2
    assert "no difference, the reservation is paid" in answer.stdout


@pytest.mark.parametrize("limit", ["2", 2])
def test_nodes_that_karpenter_would_never_launch_are_not_waited_for(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: object
) -> None:
    stub = static_cluster(2)
    stub.update(f"{NODE_POOLS}/train", spec={"limits": {"nodes": limit}})
    in_cluster(monkeypatch, stub)
    answer = ultrascale("scale", written(tmp_path, STATIC), "train", 3, "--yes")
    assert "train: at most 2 nodes as it is deployed, got 3" in answer.stderr
    assert stub.asked("PATCH") == []


def test_a_count_that_the_calendar_set_meanwhile_is_not_overwritten(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub = static_cluster(2)
    in_cluster(monkeypatch, stub)

    def confirm(question: str, *, yes: bool) -> None:
        assert (question, yes) == ("set train from 2 to 3 nodes?", False)
        stub.put(f"{NODE_POOLS}/train", {"spec": {"replicas": 4}})

    monkeypatch.setattr("ultrascale.cli.ask.confirm", confirm)

    answer = ultrascale("scale", written(tmp_path, STATIC), "train", 3)

    found = stub.find(f"{NODE_POOLS}/train")
    assert answer.returncode == 1
    assert found is not None
    assert found["spec"]["replicas"] == 4
    assert "train: somebody set it from 2 to 4 nodes meanwhile" in answer.stderr


@pytest.mark.parametrize(
    ("pool", "nodes", "at", "what"),
    [
        (MANAGED, 9, BEFORE, "at most 8 nodes, got 9"),
        (MANAGED | {"nodes": {"min": 2, "max": 8}}, 1, BEFORE, "at least 2 nodes, got 1"),
        (BLOCK, 4, BEFORE, "the calendar gives it 16 nodes at the start"),
        (BLOCK, 0, FIRST_HOUR, "set 0 from 2026-12-01 12:30Z on"),
        (BLOCK, 4, DRAINED, "its nodes are drained since 2026-12-08 10:50Z"),
        (STATIC, 0, FIRST_HOUR, "fills a NodePool of 0 within a minute"),
        (
            STATIC | {"purchase": SPOT, "role": "burst", "nodes": {"max": 4}},
            2,
            BEFORE,
            "launch nodes for pods that wait, up to 4",
        ),
        (HYPERPOD_POOL | {"name": "train"}, 4, FIRST_HOUR, "HyperPod keeps the count of the file"),
    ],
)
def test_a_size_that_somebody_else_would_undo_is_refused_before_anybody_is_asked(
    ultrascale: Ultrascale,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    time: Time,
    pool: dict[str, Any],
    nodes: int,
    at: datetime,
    what: str,
) -> None:
    aws = has(monkeypatch, {})
    time.now = at
    answer = ultrascale("scale", written(tmp_path, pool), "train", nodes, "--yes")
    assert answer.returncode == 1
    assert what in answer.stderr
    assert aws.calls == []


def test_the_system_pool_is_never_emptied(ultrascale: Ultrascale, tmp_path: Path) -> None:
    answer = ultrascale("scale", written(tmp_path, MANAGED), "system", 0, "--yes")
    assert "system: at least 2 nodes, got 0" in answer.stderr


def test_a_pool_that_is_not_there_or_has_shards_is_answered_with_its_names(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = written(tmp_path, MANAGED | {"shards": 2})
    shards, unknown = (ultrascale("scale", file, name, 2) for name in ("train", "trian-1"))
    assert "write one of train-1, train-2" in shards.stderr
    assert "did you mean train-1?" in unknown.stderr


def test_a_pool_is_found_by_the_name_of_its_node_pool_which_upgrade_plan_and_kubectl_show(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    falls_back = {"option": "spot", "fallback": "on-demand"}
    pool = STATIC | {"purchase": falls_back, "role": "burst", "nodes": {"max": 4}}
    answer = ultrascale("scale", written(tmp_path, pool), "train-on-demand", 2)
    assert "launch nodes for pods that wait, up to 4" in answer.stderr
