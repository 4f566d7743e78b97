"""Nodes of reserved pools are renewed one after the other, and never more of them than are paid."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.operate_cluster import NODE_CLAIMS, NODE_POOLS, NODES, make_pool, put_pod
from tests.support.operate_roll import Pool
from tests.support.pools import ODCR
from tests.support.stub_api_server import Refusal
from ultrascale.errors import ClusterError
from ultrascale.operate.fleets import Old


@pytest.mark.parametrize("batch", [1, 2, 3, 9])
def test_every_node_is_renewed_and_never_more_run_than_are_reserved(batch: int) -> None:
    pool = Pool()
    left = pool.roll(batch=batch)
    assert left == []
    assert pool.deleted == ["train-0", "train-1", "train-2"]
    assert pool.karpenter.claims == ["train-3", "train-4", "train-5"]
    assert pool.karpenter.most == 3


def test_a_node_is_cordoned_and_empty_before_it_ends_and_the_next_waits_for_its_successor() -> None:
    pool = Pool()
    put_pod(pool.stub, "bert", "train-0-node")

    pool.roll()

    steps = [
        f"{each.method} {each.path.rpartition('/')[2]}"
        for each in pool.stub.requests
        if each.method != "GET"
    ]
    assert steps[:5] == [
        "PATCH train-0-node",
        "POST eviction",
        "DELETE train-0",
        "PATCH train-1-node",
        "DELETE train-1",
    ]


# --- failures: it stops where it is, and goes on from there --------------------------------------


def test_a_drain_that_does_not_end_stops_everything_and_says_what_stays_cordoned() -> None:
    pool = Pool()
    put_pod(pool.stub, "serve", "train-0-node")
    pool.stub.refuse("POST", "eviction", Refusal(429, "would violate the budget"))
    with pytest.raises(ClusterError, match=r"not within 10 minutes.*train-0-node stay cordoned"):
        pool.roll()
    assert pool.deleted == []
    assert pool.cordoned == ["train-0-node"]


def test_an_end_that_is_refused_says_what_stays_cordoned() -> None:
    pool = Pool()
    pool.stub.refuse("DELETE", NODE_CLAIMS, Refusal(403, "nodeclaims is forbidden"))
    with pytest.raises(
        ClusterError, match=r"forbidden.*train-0-node, train-1-node stay cordoned"
    ) as error:
        pool.roll(batch=2)
    assert "kubectl uncordon train-0-node train-1-node" in str(error.value)


def test_an_api_server_that_is_away_while_nodes_end_breaks_nothing_off() -> None:
    pool = Pool()
    pool.stub.refuse("PATCH", NODES, Refusal(503, "the server is currently away", times=2))
    pool.stub.refuse("DELETE", NODE_CLAIMS, Refusal(503, "the server is currently away", times=2))
    pool.roll()
    assert pool.karpenter.claims == ["train-3", "train-4", "train-5"]


def test_no_node_is_ended_that_nobody_agreed_to() -> None:
    pool = Pool()
    agreed = [Old(id="train-1", node="train-1-node")]
    pool.roll(agreed=agreed)
    assert pool.deleted == ["train-1"]


def test_an_old_node_that_somebody_else_renews_meanwhile_holds_nobody_up() -> None:
    pool = Pool()
    before = pool.karpenter.tick

    def repaired() -> None:
        if pool.time.sleeps == 1:
            pool.stub.remove(f"{NODE_CLAIMS}/train-2")
        before()

    pool.time.each = repaired

    pool.roll()

    assert pool.deleted == ["train-0", "train-1"]
    assert pool.karpenter.claims == ["train-3", "train-4", "train-5"]


def test_a_node_that_joins_late_is_still_an_old_one() -> None:
    pool = Pool()
    old = [Old(id=each, node="") for each in pool.karpenter.claims]
    pool.roll(agreed=old)
    assert pool.cordoned == ["train-0-node", "train-1-node", "train-2-node"]


def test_a_node_claim_that_does_not_go_stops_everything() -> None:
    pool = Pool()
    pool.stub.on_delete = lambda _path: True
    with pytest.raises(ClusterError, match="not within 10 minutes: NodeClaim train-0 to be gone"):
        pool.roll()
    assert pool.deleted == ["train-0"]


def test_no_second_node_ends_while_the_successor_of_the_first_does_not_come() -> None:
    pool = Pool()
    pool.karpenter.launches = False
    waits = {"type": "Launched", "status": "False", "message": "no capacity in cr-1"}
    for claim in ("train-7", "train-8"):
        metadata = {"labels": {"karpenter.sh/nodepool": "train"}}
        status = {"conditions": [waits]}
        pool.stub.put(f"{NODE_CLAIMS}/{claim}", {"metadata": metadata, "status": status})

    with pytest.raises(
        ClusterError,
        match="0 of 1 new nodes ready; NodeClaim train-7 and 1 more: no capacity in cr-1",
    ):
        pool.roll()

    assert pool.deleted == ["train-0"]


def test_no_second_node_ends_while_the_successor_has_no_accelerators() -> None:
    pool = Pool()
    pool.karpenter.offers = {"nvidia.com/gpu": "7", "vpc.amazonaws.com/efa": "32"}
    with pytest.raises(ClusterError, match=r"train-3-node is 7 of 8 nvidia\.com/gpu"):
        pool.roll()
    assert pool.deleted == ["train-0"]


def test_an_api_server_that_is_away_for_a_while_breaks_nothing_off() -> None:
    pool = Pool()
    pool.stub.refuse("GET", f"^{NODES}$", Refusal(503, "the server is currently away", times=3))
    pool.roll()
    assert any("currently away" in line for line in pool.said)
    assert len(pool.deleted) == 3


@pytest.mark.parametrize("stops_after", range(12))
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next_one(stops_after: int) -> None:
    pool = Pool()
    put_pod(pool.stub, "bert", "train-1-node")
    answer, asked = pool.stub.respond, 0

    def respond(request: Any) -> Any:
        nonlocal asked
        asked += request.method != "GET"
        if asked > stops_after:
            raise KeyboardInterrupt
        return answer(request)

    pool.stub.respond = respond
    try:
        pool.roll()
    except KeyboardInterrupt:
        pool.stub.respond = answer
        pool.karpenter.tick()
        pool.roll()

    assert pool.karpenter.claims == ["train-3", "train-4", "train-5"]
    assert sorted(set(pool.deleted)) == ["train-0", "train-1", "train-2"]
    assert pool.karpenter.most == 3


def test_what_stays_cordoned_after_ctrl_c_is_told() -> None:
    pool = Pool()
    put_pod(pool.stub, "bert", "train-0-node", protected=True)

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    pool.time.each = ctrl_c

    with pytest.raises(KeyboardInterrupt):
        pool.roll()

    assert "kubectl uncordon train-0-node" in pool.said[-1]


@pytest.mark.parametrize(("broken", "deleted"), [(0, []), (1, ["train-1", "train-2"])])
def test_a_broken_node_among_thousands_holds_a_renewal_up_only_where_none_may_be_broken(
    broken: int, deleted: list[str]
) -> None:
    pool = Pool()
    pool.stub.update(f"{NODE_CLAIMS}/train-0", status={"conditions": []})
    dead = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    pool.stub.update(f"{NODES}/train-0-node", status=dead)
    with suppress(ClusterError):
        pool.roll(batch=2, broken=broken)
    assert pool.deleted == deleted


def test_no_batch_begins_after_the_window_and_the_rest_is_told() -> None:
    pool = Pool()
    before = pool.karpenter.tick

    def slow() -> None:
        pool.time.now += timedelta(minutes=2)
        before()

    pool.time.each = slow

    left = pool.roll(minutes=3)

    assert left == ["train-2"]
    assert pool.deleted == ["train-0", "train-1"]


def test_a_window_that_is_over_once_a_node_is_cordoned_leaves_no_time() -> None:
    pool = Pool()
    put_pod(pool.stub, "serve", "train-0-node")
    pool.stub.refuse("PATCH", NODES, Refusal(503, "etcd is slow", times=1))
    pool.stub.refuse("POST", "eviction", Refusal(429, "would violate the budget"))

    def slow() -> None:
        pool.time.now += timedelta(minutes=2)

    pool.time.each = slow

    with pytest.raises(ClusterError, match=r"^not within 0 minutes: "):
        pool.roll(minutes=1)


# --- NodePools that scale with their pods -------------------------------------------------------

SCALING_POOL = make_pool(
    {"role": "reserved", "provisioner": "karpenter", "purchase": ODCR, "nodes": {"max": 3}}
)


def scaling(*, wanted: int) -> Pool:
    """Return three old nodes of a NodePool without a count, whose pods want so many new ones."""
    pool = Pool()
    pool.stub.put(f"{NODE_POOLS}/train", {"spec": {}})
    pool.node_pool = replace(pool.node_pool, pool=SCALING_POOL)
    pool.karpenter.count = wanted
    return pool


@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_reserved_nodes_that_pods_bring_are_renewed_as_far_as_pods_want_them(wanted: int) -> None:
    pool = scaling(wanted=wanted)
    left = pool.roll(batch=2)
    assert left == []
    assert pool.deleted == ["train-0", "train-1", "train-2"]
    assert len(pool.karpenter.claims) == wanted


def test_no_second_node_ends_while_what_pods_brought_does_not_take_work() -> None:
    pool = scaling(wanted=3)
    pool.karpenter.offers = {"nvidia.com/gpu": "7", "vpc.amazonaws.com/efa": "32"}
    with pytest.raises(ClusterError, match=r"train-3 is 7 of 8 nvidia\.com/gpu"):
        pool.roll()
    assert pool.deleted == ["train-0"]


def test_a_node_claim_that_does_not_join_stops_everything() -> None:
    pool = scaling(wanted=3)
    pool.stub.put(
        f"{NODE_CLAIMS}/late", {"metadata": {"labels": {"karpenter.sh/nodepool": "train"}}}
    )
    with pytest.raises(ClusterError, match="0 of 1 new nodes ready: late is not joined"):
        pool.roll()
    assert pool.deleted == []
