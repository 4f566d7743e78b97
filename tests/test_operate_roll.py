"""Nodes of reserved pools are renewed one after the other, and never more of them than are paid."""

from datetime import timedelta
from typing import Any

import pytest

from tests.account import fake_account
from tests.operate_cluster import (
    NODE_CLAIMS,
    NODES,
    FakeCluster,
    Karpenter,
    Time,
    put_pod,
)
from tests.pools import CAPACITY_BLOCK, POOL, SYSTEM_POOL, as_text, loads_own, make_document
from tests.stub_api_server import Refusal
from ultrascale.errors import ClusterError
from ultrascale.operate.drain import Drain
from ultrascale.operate.fleet import Fleet, GroupFleet, NodePoolFleet
from ultrascale.operate.groups import Group
from ultrascale.operate.nodes import StaticNodePool
from ultrascale.operate.roll import Pace, Roll
from ultrascale.plan import PoolPlan, plan_cluster

OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
STATIC = POOL | {"role": "reserved", "purchase": CAPACITY_BLOCK, "nodes": {"static": 3}}


def planned(provisioner: str) -> PoolPlan:
    nodes = {"static": 3} if provisioner == "karpenter" else {"max": 3}
    pool = STATIC | {"provisioner": provisioner, "nodes": nodes}
    changes: dict[str, Any] = {"pools": [SYSTEM_POOL, pool]}
    if provisioner == "karpenter":
        changes["karpenter"] = {"version": "1.15.1"}
    return plan_cluster(loads_own(as_text(make_document(**changes)))).pools[0]


KARPENTER_POOL, OWN_POOL = planned("karpenter"), planned("self-managed")


class Pool:
    """A static NodePool of three nodes that have drifted, and the renewal of them."""

    def __init__(self) -> None:
        self.stub = FakeCluster()
        self.karpenter = Karpenter(self.stub, "train", 3, OFFERS)
        self.time = Time(each=self.karpenter.tick)
        self.said: list[str] = []

    def roll(
        self, *, batch: int = 1, evicts: bool = False, minutes: float | None = None
    ) -> list[str]:
        """Renew the nodes, and return those that are left."""
        cluster = self.stub.connected()
        node_pool = StaticNodePool(cluster=cluster, name="train", pool=KARPENTER_POOL)
        until = None if minutes is None else self.time.now + timedelta(minutes=minutes)
        rolling = Roll(
            NodePoolFleet(node_pool=node_pool),
            Drain(cluster=cluster, evicts_jobs=evicts),
            Pace(batch=batch, until=until, drain_minutes=10, join_minutes=10),
            self.time.clock,
            self.said.append,
        )
        return [each.id for each in rolling.run()]

    @property
    def deleted(self) -> list[str]:
        return [each.path.rpartition("/")[2] for each in self.stub.asked("DELETE", NODE_CLAIMS)]

    @property
    def cordoned(self) -> list[str]:
        patches = [each for each in self.stub.asked("PATCH", NODES)]
        return [each.path.rpartition("/")[2] for each in patches]


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


def test_pods_that_belong_to_the_node_are_left_to_end_with_it() -> None:
    pool = Pool()
    path = put_pod(pool.stub, "efa-plugin", "train-0-node")
    pool.stub.update(path, metadata={"ownerReferences": [{"kind": "DaemonSet", "uid": "d"}]})

    pool.roll()

    assert pool.stub.asked("POST", "eviction") == []


# --- failures: it stops where it is, and goes on from there --------------------------------------


def test_a_drain_that_does_not_end_stops_everything_and_says_what_stays_cordoned() -> None:
    pool = Pool()
    put_pod(pool.stub, "serve", "train-0-node")
    pool.stub.refuse("POST", "eviction", Refusal(429, "would violate the budget"))

    with pytest.raises(ClusterError, match=r"not within 10 minutes.*train-0-node stay cordoned"):
        pool.roll()

    assert pool.deleted == []
    assert pool.cordoned == ["train-0-node"]


def test_a_node_claim_that_does_not_go_stops_everything() -> None:
    pool = Pool()
    pool.stub.on_delete = lambda _path: True

    with pytest.raises(ClusterError, match="not within 10 minutes: NodeClaim train-0 to be gone"):
        pool.roll()

    assert pool.deleted == ["train-0"]


def test_no_second_node_ends_while_the_successor_of_the_first_does_not_come() -> None:
    pool = Pool()
    pool.karpenter.launches = False

    with pytest.raises(ClusterError, match="0 of 1 new nodes ready"):
        pool.roll()

    assert pool.deleted == ["train-0"]


def test_no_second_node_ends_while_the_successor_has_no_accelerators() -> None:
    pool = Pool()
    without = {"nvidia.com/gpu": "7", "vpc.amazonaws.com/efa": "32"}
    pool.karpenter = Karpenter(pool.stub, "train", 3, OFFERS)
    pool.karpenter._offers = without  # pyright: ignore[reportPrivateUsage]
    pool.time.each = pool.karpenter.tick

    with pytest.raises(ClusterError, match=r"train-3-node is 7 of 8 nvidia\.com/gpu"):
        pool.roll()

    assert pool.deleted == ["train-0"]


def test_an_api_server_that_is_away_for_a_while_breaks_nothing_off() -> None:
    pool = Pool()
    pool.stub.refuse("GET", f"^{NODES}$", Refusal(503, "the server is currently away", times=3))

    pool.roll()

    assert any("currently away" in line for line in pool.said)
    assert len(pool.deleted) == 3


def test_nodes_that_may_not_be_listed_end_it_at_once() -> None:
    pool = Pool()
    pool.stub.refuse("GET", f"^{NODES}$", Refusal(403, "nodes is forbidden"))

    with pytest.raises(ClusterError, match="forbidden"):
        pool.roll()

    assert (pool.time.sleeps, pool.deleted) == (0, [])


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


# --- self-managed groups ------------------------------------------------------------------------


class Instances:
    """An Auto Scaling group of two instances, the first of an older launch template."""

    def __init__(self, stub: FakeCluster) -> None:
        self._stub = stub
        self.versions = {"i-0": "1", "i-1": "2"}
        self.join()

    def join(self) -> None:
        for instance in self.versions:
            labels = {"ultrascale.dev/pool": "train"}
            self._stub.put(
                f"{NODES}/node-{instance}",
                {
                    "metadata": {"labels": labels},
                    "spec": {"providerID": f"aws:///us-west-2b/{instance}", "taints": []},
                    "status": {
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "allocatable": OFFERS,
                    },
                },
            )

    def describe(self, _: dict[str, Any]) -> dict[str, Any]:
        template = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "train"}
        instances = [
            {
                "InstanceId": each,
                "AvailabilityZone": "us-west-2b",
                "LifecycleState": "InService",
                "HealthStatus": "Healthy",
                "ProtectedFromScaleIn": False,
                "LaunchTemplate": {**template, "Version": version},
            }
            for each, version in self.versions.items()
        ]
        group = {
            "AutoScalingGroupName": "asg",
            "MinSize": 0,
            "MaxSize": 3,
            "DesiredCapacity": 2,
            "DefaultCooldown": 300,
            "AvailabilityZones": ["us-west-2b"],
            "HealthCheckType": "EC2",
            "CreatedTime": Time().now,
            "LaunchTemplate": {**template, "Version": "2"},
            "Instances": instances,
        }
        return {"AutoScalingGroups": [group]}

    def terminate(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["ShouldDecrementDesiredCapacity"] is False
        del self.versions[asked["InstanceId"]]
        self._stub.remove(f"{NODES}/node-{asked['InstanceId']}")
        return {}

    def launch(self) -> None:
        if len(self.versions) < 2:
            self.versions["i-2"] = "2"
            self.join()


def test_an_instance_of_an_older_launch_template_is_ended_and_followed_by_the_group() -> None:
    stub = FakeCluster()
    instances = Instances(stub)
    account, aws = fake_account(
        {
            "autoscaling:DescribeAutoScalingGroups": instances.describe,
            "autoscaling:TerminateInstanceInAutoScalingGroup": instances.terminate,
        }
    )
    cluster, time = stub.connected(), Time(each=instances.launch)
    group = Group(account=account, cluster="research", scaled_by_eks=None, auto_scaling="asg")
    fleet: Fleet = GroupFleet(group=group, cluster=cluster, pool=OWN_POOL)
    pace = Pace(batch=1, until=None, drain_minutes=10, join_minutes=10)

    Roll(fleet, Drain(cluster=cluster, evicts_jobs=False), pace, time.clock, print).run()

    ended = aws.parameters("autoscaling:TerminateInstanceInAutoScalingGroup")
    assert [each["InstanceId"] for each in ended] == ["i-0"]
    assert sorted(instances.versions) == ["i-1", "i-2"]
    assert [each.path.rpartition("/")[2] for each in stub.asked("PATCH")] == ["node-i-0"]


def test_an_old_node_of_other_labels_is_drained_all_the_same() -> None:
    stub = FakeCluster()
    instances = Instances(stub)
    stub.update(f"{NODES}/node-i-0", metadata={"labels": {"ultrascale.dev/pool": "old"}})
    account, _ = fake_account({"autoscaling:DescribeAutoScalingGroups": instances.describe})
    group = Group(account=account, cluster="research", scaled_by_eks=None, auto_scaling="asg")

    (old,) = GroupFleet(group=group, cluster=stub.connected(), pool=OWN_POOL).old()

    assert old.node == "node-i-0"
