"""`ultrascale scale`: a pool's size, set by whoever it belongs to."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.account import ID, FakeAws, Refusal, Told, fake_account
from tests.command_line import Answer, Ultrascale, run
from tests.operate_cluster import NODE_POOLS, FakeCluster, Time, put_node
from tests.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    POOL,
    SPOT,
    SYSTEM_POOL,
    as_text,
    make_cluster,
    make_document,
)
from tests.stub_api_http import kubeconfig
from ultrascale.account import Account
from ultrascale.cli import ask
from ultrascale.errors import QuestionError
from ultrascale.jobs.cluster import Cluster
from ultrascale.plan import plan_cluster

GROUPS = "autoscaling:DescribeAutoScalingGroups"
LIST, DESCRIBE = "eks:ListNodegroups", "eks:DescribeNodegroup"
EKS_SETS, OURS_SETS = "eks:UpdateNodegroupConfig", "autoscaling:UpdateAutoScalingGroup"
ACTIVITIES = "autoscaling:DescribeScalingActivities"
MANAGED = POOL | {"instance_types": ["m7g.8xlarge"], "nodes": {"min": 1, "max": 8}}
BLOCK = POOL | {"role": "reserved", "purchase": CAPACITY_BLOCK}
STATIC = BLOCK | {"provisioner": "karpenter", "nodes": {"static": 4}}
OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
BEFORE = datetime(2026, 11, 30, tzinfo=UTC)
FIRST_HOUR = datetime(2026, 12, 1, 12, tzinfo=UTC)
DRAINED = datetime(2026, 12, 8, 11, tzinfo=UTC)


class Groups:
    """The node group of a pool: it launches one instance at each look."""

    def __init__(self, desired: int, *, status: str = "ACTIVE", stuck: bool = False) -> None:
        self.desired, self.running, self.status, self.stuck = desired, desired, status, stuck
        self.minimum = 1

    @property
    def answers(self) -> dict[str, Told]:
        return {
            LIST: {"nodegroups": ["system-x", "train-x"]},
            DESCRIBE: self._node_group,
            GROUPS: self._group,
            EKS_SETS: self._eks_sets,
            OURS_SETS: self._ours_sets,
            ACTIVITIES: {
                "Activities": [
                    {
                        "ActivityId": "a",
                        "AutoScalingGroupName": "asg",
                        "Cause": "c",
                        "StartTime": BEFORE,
                        "StatusCode": "Failed",
                        "StatusMessage": "InsufficientInstanceCapacity",
                    }
                ]
            },
        }

    def _node_group(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = asked["nodegroupName"][:-2]
        return {
            "nodegroup": {
                "nodegroupName": asked["nodegroupName"],
                "status": self.status,
                "labels": {"ultrascale.dev/pool": pool},
                "resources": {"autoScalingGroups": [{"name": f"asg-{pool}"}]},
            }
        }

    def _group(self, _: dict[str, Any]) -> dict[str, Any]:
        if not self.stuck:
            self.running += (self.desired > self.running) - (self.desired < self.running)
        instance = {
            "InstanceId": "i-1",
            "AvailabilityZone": "us-west-2b",
            "LifecycleState": "InService",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        group = {
            "AutoScalingGroupName": "asg-train",
            "MinSize": self.minimum,
            "MaxSize": 8,
            "DesiredCapacity": self.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": ["us-west-2b"],
            "HealthCheckType": "EC2",
            "CreatedTime": BEFORE,
            "Instances": [instance] * self.running,
        }
        return {"AutoScalingGroups": [group]}

    def _eks_sets(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.desired = asked["scalingConfig"]["desiredSize"]
        self.minimum = asked["scalingConfig"]["minSize"]
        return {"update": {}}

    def _ours_sets(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.desired, self.minimum = asked["DesiredCapacity"], asked["MinSize"]
        return {}


Scale = Callable[..., Answer]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr("ultrascale.cli.ask.clock", lambda: found.clock)
    return found


@pytest.fixture
def ultrascale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], time: Time
) -> Ultrascale:
    return partial(run, monkeypatch=monkeypatch, capsys=capsys)


def has(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Told]) -> FakeAws:
    account, aws = fake_account(answers)

    def connect(region: str, profile: str | None) -> Account:
        assert (region, profile) == (account.region, None)
        return account

    monkeypatch.setattr("ultrascale.account.connect", connect)
    return aws


def in_cluster(monkeypatch: pytest.MonkeyPatch, stub: FakeCluster) -> None:
    def connected(*_: object) -> Cluster:
        return stub.connected()

    monkeypatch.setattr("ultrascale.cli.ask.connected", connected)


def written(folder: Path, *pools: dict[str, Any]) -> Path:
    path = folder / "cluster.yaml"
    changes: dict[str, Any] = {"pools": [SYSTEM_POOL, *pools]}
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        changes["karpenter"] = {"version": "1.15.1"}
    path.write_text(as_text(make_document(**changes)))
    return path


# --- node groups --------------------------------------------------------------------------------


def test_a_managed_group_is_set_by_eks_and_waited_for(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2).answers)

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4, "--yes")

    assert answer.returncode == 0
    (asked,) = aws.parameters(EKS_SETS)
    assert (asked["clusterName"], asked["nodegroupName"]) == ("research", "train-x")
    assert asked["scalingConfig"] == {"minSize": 1, "desiredSize": 4}
    assert "train: 2 nodes now, 4 asked for" in answer.stdout
    assert "the Cluster Autoscaler goes on" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "train: 4 nodes run"
    assert "train-x: 3 of 4 in service" in answer.stderr


def test_a_self_managed_group_is_set_by_auto_scaling(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2).answers)
    pool = MANAGED | {"provisioner": "self-managed"}

    answer = ultrascale("scale", written(tmp_path, pool), "train", 3, "--yes")

    assert answer.returncode == 0
    assert aws.parameters(OURS_SETS) == [
        {"AutoScalingGroupName": "asg-train", "MinSize": 1, "DesiredCapacity": 3}
    ]
    filters = aws.parameters(GROUPS)[0]["Filters"]
    assert {each["Name"] for each in filters} == {
        "tag:kubernetes.io/cluster/research",
        "tag:ultrascale.dev/pool",
    }
    assert EKS_SETS not in aws.actions


def test_a_group_is_emptied_below_its_minimum_and_gets_that_back_with_the_next_size(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    groups, file = Groups(2), written(tmp_path, MANAGED)
    aws = has(monkeypatch, groups.answers)

    emptied = ultrascale("scale", file, "train", 0, "--yes")
    ultrascale("scale", file, "train", 2, "--yes")

    assert "its minimum of 1 is lowered to 0" in emptied.stdout
    assert "2 nodes end" in emptied.stdout
    sizes = [each["scalingConfig"] for each in aws.parameters(EKS_SETS)]
    assert sizes == [{"minSize": 0, "desiredSize": 0}, {"minSize": 1, "desiredSize": 2}]


def test_nothing_is_changed_without_a_yes_where_nobody_can_be_asked(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2).answers)

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4)

    assert answer.returncode == 1
    assert "nothing was changed" in answer.stderr
    assert EKS_SETS not in aws.actions


def test_capacity_that_does_not_come_is_told_in_the_words_of_auto_scaling(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, time: Time
) -> None:
    has(monkeypatch, Groups(2, stuck=True).answers)

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4, "--yes", "--timeout", "2")

    assert answer.returncode == 1
    assert "not within 2 minutes: train-x: 2 of 4 in service" in answer.stderr
    assert "InsufficientInstanceCapacity" in answer.stderr
    assert time.sleeps == 8


def test_a_size_that_eks_refuses_is_no_success(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusal = {EKS_SETS: Refusal("ResourceInUseException", "update in progress")}
    has(monkeypatch, Groups(2).answers | refusal)

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4, "--yes")

    assert answer.returncode == 1
    assert "update in progress" in answer.stderr
    assert "set from" not in answer.stdout


def test_a_group_that_eks_updates_is_left_alone(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2, status="UPDATING").answers)

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4, "--yes")

    assert "EKS updates train-x; wait until that is done" in answer.stderr
    assert EKS_SETS not in aws.actions


@pytest.mark.parametrize(
    ("groups", "what"),
    [
        (["system-x"], "deploy it: cdk deploy --exclusively research-train"),
        (["train-x", "train-y"], "train-x, train-y stand side by side; wait"),
    ],
)
def test_no_size_is_set_while_it_is_not_known_which_group_is_the_pools(
    ultrascale: Ultrascale,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    groups: list[str],
    what: str,
) -> None:
    aws = has(monkeypatch, Groups(2).answers | {LIST: {"nodegroups": groups}})

    answer = ultrascale("scale", written(tmp_path, MANAGED), "train", 4, "--yes")

    assert what in answer.stderr
    assert EKS_SETS not in aws.actions


# --- static NodePools ---------------------------------------------------------------------------


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


def test_what_another_size_costs_is_told_before_it_is_set(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    account, _ = fake_account(Groups(2).answers, region="us-east-1")
    monkeypatch.setattr("ultrascale.account.connect", lambda *_: account)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    file = tmp_path / "cluster.yaml"
    network = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-east-1a", "us-east-1b"]}
    pool = POOL | {"zones": ["us-east-1b"]}
    document = make_document(region="us-east-1", network=network, pools=[SYSTEM_POOL, pool])
    file.write_text(as_text(document))

    answer = ultrascale("scale", file, "train", 4)

    assert "per hour: $110.08 now, $220.16 then ($55.04 of p5.48xlarge On-Demand" in answer.stdout


def test_the_group_of_another_account_is_not_touched(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2).answers)
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(make_document(account="444455556666", pools=[SYSTEM_POOL, MANAGED])))

    answer = ultrascale("scale", file, "train", 4, "--yes")

    assert answer.returncode == 1
    assert f"the file is of 444455556666, and the credentials of {ID}" in answer.stderr
    assert not aws.parameters(EKS_SETS)


@pytest.mark.parametrize("name", ["444455556666:cluster/research", f"{ID}:cluster/production"])
def test_nodes_of_one_cluster_are_not_ended_after_those_of_another_are_drained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    has(monkeypatch, {})
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", cluster=f"arn:aws:eks:us-west-2:{name}")
    plan = plan_cluster(make_cluster())

    with pytest.raises(QuestionError, match=f"not of research of {ID} in us-west-2"):
        ask.owner(plan, None, Cluster.connected(path, None))


def test_the_kubeconfig_of_another_cluster_is_refused(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    other = "arn:aws:eks:us-west-2:111122223333:cluster/production"
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", cluster=other)

    answer = ultrascale("scale", written(tmp_path, STATIC), "train", 3, "--kubeconfig", path)

    assert answer.returncode == 1
    assert "context is production in us-west-2" in answer.stderr


# --- what nobody sets by hand -------------------------------------------------------------------


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
