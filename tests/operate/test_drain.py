"""Pods leave a node that ends as gently as they ask for, and hold it up no longer than that."""

import pytest

from tests.support.operate_cluster import put_pod
from tests.support.operate_roll import Pool
from tests.support.stub_api_server import Refusal
from ultrascale.errors import ClusterError


def test_the_pod_of_a_training_job_is_waited_for_and_not_evicted() -> None:
    pool = Pool()
    pod = put_pod(pool.stub, "bert", "train-0-node", protected=True)
    before = pool.karpenter.tick

    def job_ends() -> None:
        before()
        if pool.time.sleeps == 4:
            pool.stub.remove(pod)

    pool.time.each = job_ends

    pool.roll()

    assert pool.stub.asked("POST", "eviction") == []
    assert any("bert in training runs on until its job ends" in line for line in pool.said)
    assert len(pool.deleted) == 3


def test_a_training_job_is_broken_off_where_the_user_says_so() -> None:
    pool = Pool()
    put_pod(pool.stub, "bert", "train-0-node", protected=True)
    pool.roll(evicts=True)
    assert len(pool.stub.asked("POST", "eviction")) == 1


def test_a_disruption_budget_is_asked_again_until_it_lets_the_pod_go() -> None:
    pool = Pool()
    put_pod(pool.stub, "serve", "train-0-node")
    pool.stub.refuse("POST", "eviction", Refusal(429, "would violate the budget", times=3))
    pool.roll()
    assert any("would violate the budget" in line for line in pool.said)
    assert len(pool.stub.asked("POST", "eviction")) == 4


def test_one_refusal_of_a_budget_is_enough_for_a_look_at_all_pods() -> None:
    pool = Pool()
    for number in range(3):
        put_pod(pool.stub, f"serve-{number}", "train-0-node")
    pool.stub.refuse("POST", "eviction", Refusal(429, "would violate the budget", times=2))
    pool.roll()
    assert any("would violate the budget and 2 more" in line for line in pool.said)
    assert len(pool.stub.asked("POST", "eviction")) == 2 + 3


# The server has no other answer than 500 for a pod of two disruption budgets.
@pytest.mark.parametrize(
    ("status", "why"),
    [(429, "would violate the budget"), (500, "has more than one PodDisruptionBudget")],
)
def test_a_pod_that_a_budget_holds_keeps_no_other_waiting(status: int, why: str) -> None:
    pool = Pool()
    put_pod(pool.stub, "a-held", "train-0-node")
    put_pod(pool.stub, "b-free", "train-0-node")
    pool.stub.refuse("POST", "a-held/eviction", Refusal(status, why))
    with pytest.raises(ClusterError, match=f"not within 10 minutes: pod a-held.*{why}"):
        pool.roll()
    assert len(pool.stub.asked("POST", "b-free/eviction")) == 1


@pytest.mark.parametrize("said", ["true", "4h", "1h30m"])
def test_a_pod_is_protected_in_each_way_that_karpenter_knows(said: str) -> None:
    pool = Pool()
    pod = put_pod(pool.stub, "bert", "train-0-node")
    pool.stub.update(pod, metadata={"annotations": {"karpenter.sh/do-not-disrupt": said}})
    with pytest.raises(ClusterError, match="bert in training runs on until its job ends"):
        pool.roll()
    assert pool.stub.asked("POST", "eviction") == []


@pytest.mark.parametrize(
    ("ends", "stuck"), [("2026-12-04T11:58:00Z", True), ("2026-12-04T13:00:00Z", False)]
)
def test_a_dead_node_is_renewed_although_nobody_ends_its_pods(ends: str, stuck: bool) -> None:
    pool = Pool()
    pod = put_pod(pool.stub, "serve", "train-0-node")
    pool.stub.update(pod, metadata={"deletionTimestamp": ends})
    if stuck:
        assert pool.roll() == []
    else:
        with pytest.raises(ClusterError, match="serve in training is in its grace period"):
            pool.roll()


def test_pods_that_belong_to_the_node_are_left_to_end_with_it() -> None:
    pool = Pool()
    path = put_pod(pool.stub, "efa-plugin", "train-0-node")
    pool.stub.update(path, metadata={"ownerReferences": [{"kind": "DaemonSet", "uid": "d"}]})
    pool.roll()
    assert pool.stub.asked("POST", "eviction") == []
