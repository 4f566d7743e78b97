"""Instances of self-managed groups are renewed, drained, and in the right cluster alone."""

from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.fake_aws import FakeAws
from tests.support.operate_cluster import NODES, FakeCluster, Time, make_pool
from tests.support.pools import CAPACITY_BLOCK
from ultrascale.errors import ClusterError
from ultrascale.operate.fleets import GroupFleet
from ultrascale.operate.node_groups import Group
from ultrascale.operate.rolling import Drain, Pace, Roll

OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
OWN_POOL = make_pool(
    {
        "role": "reserved",
        "provisioner": "self-managed",
        "purchase": CAPACITY_BLOCK,
        "nodes": {"max": 3},
    }
)


class Instances:
    """An Auto Scaling group of two instances, the first of an older launch template."""

    def __init__(self, stub: FakeCluster) -> None:
        self._stub = stub
        self.versions = {"i-0": "1", "i-1": "2"}
        self.template, self.version = "lt-1", "2"
        self.attached: set[str] = set()
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
            }
            | (
                {}
                if each in self.attached
                else {"LaunchTemplate": {**template, "Version": version}}
            )
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
            "LaunchTemplate": {
                **template,
                "LaunchTemplateId": self.template,
                "Version": self.version,
            },
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


@pytest.fixture
def stub() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def instances(stub: FakeCluster) -> Instances:
    return Instances(stub)


@pytest.fixture
def found(stub: FakeCluster, instances: Instances) -> tuple[GroupFleet, FakeAws]:
    account, aws = fake_account(
        {
            "autoscaling:DescribeAutoScalingGroups": instances.describe,
            "autoscaling:TerminateInstanceInAutoScalingGroup": instances.terminate,
        }
    )
    group = Group(account=account, cluster="research", scaled_by_eks=None, auto_scaling="asg")
    return GroupFleet(group=group, cluster=stub.connected(), pool=OWN_POOL), aws


def test_an_instance_of_an_older_launch_template_is_ended_and_followed_by_the_group(
    stub: FakeCluster, instances: Instances, found: tuple[GroupFleet, FakeAws]
) -> None:
    fleet, aws = found
    time = Time(each=instances.launch)
    pace = Pace(batch=1, until=None, drain_minutes=10, join_minutes=10)
    drain = Drain(cluster=fleet.cluster, evicts_jobs=False, clock=time.clock)

    Roll(fleet, drain, pace, time.clock, print).run(fleet.old())

    ended = aws.parameters("autoscaling:TerminateInstanceInAutoScalingGroup")
    assert [each["InstanceId"] for each in ended] == ["i-0"]
    assert sorted(instances.versions) == ["i-1", "i-2"]
    assert [each.path.rpartition("/")[2] for each in stub.asked("PATCH")] == ["node-i-0"]


def test_an_old_node_of_other_labels_is_drained_all_the_same(
    stub: FakeCluster, found: tuple[GroupFleet, FakeAws]
) -> None:
    stub.update(f"{NODES}/node-i-0", metadata={"labels": {"ultrascale.dev/pool": "old"}})
    (old,) = found[0].old()
    assert old.node == "node-i-0"


@pytest.mark.parametrize(
    ("field", "value"), [("template", "lt-2"), ("attached", {"i-1"})], ids=["replaced", "attached"]
)
def test_an_instance_of_a_replaced_launch_template_or_none_is_old_at_the_same_version(
    instances: Instances, found: tuple[GroupFleet, FakeAws], field: str, value: Any
) -> None:
    setattr(instances, field, value)
    assert [each.id for each in found[0].old()] == ["i-0", "i-1"]


def test_an_instance_that_is_gone_already_is_not_ended_again(
    instances: Instances, found: tuple[GroupFleet, FakeAws]
) -> None:
    fleet, aws = found
    (old,) = fleet.old()
    del instances.versions[old.id]
    fleet.end(old)
    assert aws.parameters("autoscaling:TerminateInstanceInAutoScalingGroup") == []


def test_instances_that_this_cluster_does_not_know_are_not_ended_undrained(
    stub: FakeCluster, found: tuple[GroupFleet, FakeAws]
) -> None:
    for node in ("node-i-0", "node-i-1"):
        stub.remove(f"{NODES}/{node}")
    with pytest.raises(ClusterError, match="none of its 2 instances is a node of the cluster"):
        found[0].old()


def test_instances_of_a_version_that_has_no_number_are_not_renewed_for_ever(
    instances: Instances, found: tuple[GroupFleet, FakeAws]
) -> None:
    instances.version = "$Latest"
    with pytest.raises(ClusterError, match=r"from version \$Latest of its template"):
        found[0].old()


def test_the_nodes_of_a_large_cluster_are_not_listed_for_a_group_whose_own_are_all_there(
    stub: FakeCluster, found: tuple[GroupFleet, FakeAws]
) -> None:
    found[0].old()
    (asked,) = stub.asked("GET", NODES)
    assert asked.query["labelSelector"] == "ultrascale.dev/pool=train"
