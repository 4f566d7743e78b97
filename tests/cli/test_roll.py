"""`ultrascale roll`, as its user sees it."""

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Answer, Ultrascale
from tests.support.operate_cluster import NODE_CLAIMS, FakeCluster, Karpenter, Time, put_pod
from tests.support.operate_groups import written
from tests.support.pools import CAPACITY_BLOCK, HYPERPOD_POOL, ODCR, ON_DEMAND, POOL
from ultrascale.cluster_api.server import Cluster

OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
STATIC = POOL | {
    "role": "reserved",
    "provisioner": "karpenter",
    "purchase": CAPACITY_BLOCK,
    "nodes": {"static": 2},
}
BEFORE = datetime(2026, 11, 30, tzinfo=UTC)
WITHIN = datetime(2026, 12, 4, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr("ultrascale.cli.ask.clock", lambda: found.clock)
    return found


Roll = Callable[..., Answer]


@pytest.fixture
def roll(ultrascale: Ultrascale, tmp_path: Path) -> Roll:
    """Renew the nodes of the pool `train`."""

    def command(*options: object, pool: dict[str, Any] = STATIC) -> Answer:
        return ultrascale("roll", written(tmp_path, pool), "train", *options)

    return command


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()

    def connected(*_: object) -> Cluster:
        return found.connected()

    monkeypatch.setattr("ultrascale.cli.ask.connected", connected)
    return found


def test_what_is_renewed_is_shown_with_the_jobs_on_it_and_the_end_of_the_block(
    roll: Roll, stub: FakeCluster, time: Time
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    time.each = karpenter.tick
    put_pod(stub, "bert", "train-1-node")

    answer = roll("--batch", 2, "--yes")

    assert answer.returncode == 0
    assert answer.stdout.splitlines() == [
        "train: 2 nodes on an older template, 2 at a time",
        "  train-0 (train-0-node)",
        "  train-1 (train-1-node)",
        "  no batch begins after 2026-12-08 10:50Z",
        "  jobs on them, bert, are waited for, 60 minutes in each batch; --evict-jobs breaks them "
        "off",
        "train: renewed 2 nodes",
    ]


def test_what_ends_with_the_nodes_is_told_before_anybody_agrees(
    roll: Roll, stub: FakeCluster
) -> None:
    Karpenter(stub, "train", 2, OFFERS)
    for number in range(2):
        pod = put_pod(stub, f"bert-{number}", f"train-{number}-node", protected=True)
        stub.update(pod, metadata={"labels": {"ultrascale.dev/job": "bert"}})
    for name, owners in (("notebook", []), ("serve", [{"kind": "ReplicaSet", "uid": "r"}])):
        path = f"/api/v1/namespaces/research/pods/{name}"
        metadata = {"ownerReferences": owners}
        stub.put(path, {"metadata": metadata, "spec": {"nodeName": "train-0-node"}, "status": {}})

    kept = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    stub.update("/api/v1/nodes/train-1-node", metadata=kept)

    answer = roll("--evict-jobs")

    assert "do-not-disrupt, and end all the same: train-1-node" in answer.stdout
    assert "jobs on them, bert, are broken off" in answer.stdout
    assert "bert runs in 2 batches, each of which breaks it off again and costs" in answer.stdout
    assert "or take all at once by --batch 2" in answer.stdout
    assert "other pods on them, 1, are evicted and started again elsewhere" in answer.stdout
    assert "nothing starts these again: pod notebook in research" in answer.stdout


def test_nodes_that_drift_meanwhile_are_told_and_left_to_the_next_run(
    roll: Roll, stub: FakeCluster, time: Time
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    late = f"{NODE_CLAIMS}/train-1"
    stub.update(late, status={"conditions": []})

    def drifts() -> None:
        karpenter.tick()
        stub.update(late, status={"conditions": [{"type": "Drifted", "status": "True"}]})

    time.each = drifts

    answer = roll("--yes")

    assert answer.returncode == 3
    assert "train: renewed 1 node\ntrain: on an older template by now: 1 node" in answer.stdout
    assert stub.find(late) is not None


def test_nothing_ends_without_a_yes(roll: Roll, stub: FakeCluster) -> None:
    Karpenter(stub, "train", 2, OFFERS)
    answer = roll()
    assert answer.returncode == 1
    assert "nothing was changed" in answer.stderr
    assert {each.path.rpartition("/")[2] for each in stub.requests if each.method != "GET"} == {
        "selfsubjectaccessreviews"
    }


@pytest.mark.parametrize(
    ("right", "named"),
    [
        ("patch /nodes", "you may not patch nodes;"),
        ("delete karpenter.sh/nodeclaims", "you may not delete nodeclaims.karpenter.sh;"),
    ],
)
def test_no_job_is_broken_off_for_somebody_who_may_not_end_its_node(
    roll: Roll, stub: FakeCluster, right: str, named: str
) -> None:
    Karpenter(stub, "train", 2, OFFERS)
    stub.lacks = {right}
    answer = roll("--evict-jobs", "--yes")
    assert f"train: nothing was begun: {named}" in answer.stderr
    assert stub.asked("PATCH") == []


def test_what_stays_cordoned_is_told_even_where_a_pipeline_ends_it(
    roll: Roll, stub: FakeCluster, time: Time
) -> None:
    Karpenter(stub, "train", 2, OFFERS)
    put_pod(stub, "bert", "train-0-node", protected=True)
    time.each = lambda: os.kill(os.getpid(), signal.SIGTERM)
    answer = roll("--yes")
    assert answer.returncode == 130
    assert "kubectl uncordon train-0-node" in answer.stderr
    assert "the same command continues" in answer.stderr


def test_a_window_that_is_too_short_ends_with_a_status_of_its_own(
    roll: Roll, stub: FakeCluster, time: Time
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    time.each = karpenter.tick
    until = "2026-12-04T12:00:10Z"
    answer = roll("--until", until, "--yes")
    assert answer.returncode == 3
    assert "the time is up; still on an older template: 1 node" in answer.stdout


def test_where_nothing_is_old_a_successor_that_is_missing_is_told_all_the_same(
    roll: Roll, stub: FakeCluster
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    for claim in karpenter.claims:
        stub.remove(f"/apis/karpenter.sh/v1/nodeclaims/{claim}")
    karpenter.tick()
    whole = roll()
    stub.remove("/apis/karpenter.sh/v1/nodeclaims/train-3")

    broken = roll()

    assert (whole.returncode, broken.returncode) == (0, 1)
    assert "Karpenter detects drift some minutes after a deploy" in whole.stdout
    assert "train: 1 of 2 new nodes ready" in broken.stderr


def test_where_nothing_is_old_as_many_may_be_broken_as_while_some_are(
    roll: Roll, stub: FakeCluster
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    for claim in karpenter.claims:
        stub.update(f"{NODE_CLAIMS}/{claim}", status={"conditions": []})
    dead = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    stub.update("/api/v1/nodes/train-0-node", status=dead)
    allowed, broken = roll("--batch", 2, "--broken", 1), roll()
    assert (allowed.returncode, broken.returncode) == (0, 1)


@pytest.mark.parametrize(
    ("pool", "at", "what"),
    [
        (STATIC, BEFORE, "its capacity is of use from 2026-12-01 11:30Z"),
        (
            HYPERPOD_POOL | {"name": "train"},
            BEFORE,
            "update-cluster-software, or batch-replace-cluster-nodes\n",
        ),
        (POOL, WITHIN, "scale it to 0 between jobs, deploy"),
        (POOL | {"instance_types": ["m7g.8xlarge"]}, WITHIN, "with the deploy that changes them"),
        (
            POOL | {"provisioner": "karpenter", "purchase": ON_DEMAND},
            WITHIN,
            "its nodes come and go with their pods",
        ),
    ],
)
def test_nodes_that_somebody_else_renews_are_left_to_that(
    roll: Roll, stub: FakeCluster, time: Time, pool: dict[str, Any], at: datetime, what: str
) -> None:
    time.now = at
    answer = roll("--yes", pool=pool)
    assert answer.returncode == 1
    assert what in answer.stderr
    assert stub.requests == []


def test_a_batch_is_not_let_go_before_any_of_its_successors_is_there(
    roll: Roll, stub: FakeCluster
) -> None:
    answer = roll("--batch", 2, "--broken", 2, "--yes")
    assert "--broken: fewer than a batch, got 2 and 2" in answer.stderr
    assert stub.requests == []


@pytest.mark.parametrize(
    ("until", "what"),
    [
        ("2026-12-04T11:00Z", "--until: 2026-12-04 11:00Z is over"),
        ("noon", "--until: not a time in UTC, got 'noon'"),
    ],
)
def test_a_time_that_is_over_or_none_is_no_window(
    roll: Roll, stub: FakeCluster, until: str, what: str
) -> None:
    answer = roll("--until", until)
    assert what in answer.stderr
    assert stub.requests == []


def test_reserved_nodes_that_pods_bring_are_renewed_too(
    roll: Roll, stub: FakeCluster, time: Time
) -> None:
    karpenter = Karpenter(stub, "train", 2, OFFERS)
    time.each = karpenter.tick
    pool = STATIC | {"purchase": ODCR, "nodes": {"max": 4}}
    answer = roll("--batch", 2, "--yes", pool=pool)
    assert answer.returncode == 0
    assert "each ends; new nodes start for pods that wait" in answer.stdout
    assert karpenter.claims == ["train-2", "train-3"]
