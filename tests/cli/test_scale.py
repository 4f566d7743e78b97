"""`ultrascale scale` of node groups: a size that is set by whoever it belongs to."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.cases import rows
from tests.support.command_line import Answer, Ultrascale
from tests.support.fake_aws import ID, FakeAws, Refusal, Told
from tests.support.operate_cluster import FakeCluster, Time
from tests.support.operate_groups import (
    EKS_SETS,
    GROUPS,
    LIST,
    MANAGED,
    OURS_SETS,
    Groups,
    has,
    written,
)
from tests.support.pools import ODCR, POOL, SYSTEM_POOL, as_text, make_document
from tests.support.stub_api_http import kubeconfig


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr("ultrascale.cli.ask.clock", lambda: found.clock)
    return found


Scale = Callable[..., tuple[Answer, FakeAws]]


@pytest.fixture
def scale(ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scale:
    """Set the size of the pool `train` in an account with its node group, or with ``answers``."""

    def command(
        nodes: int,
        *options: object,
        pool: dict[str, Any] = MANAGED,
        groups: Groups | None = None,
        answers: dict[str, Told] | None = None,
    ) -> tuple[Answer, FakeAws]:
        aws = has(monkeypatch, (groups or Groups(2)).answers | (answers or {}))
        return ultrascale("scale", written(tmp_path, pool), "train", nodes, *options), aws

    return command


def test_a_managed_group_is_set_by_eks_and_waited_for(scale: Scale) -> None:
    answer, aws = scale(4, "--yes")

    assert answer.returncode == 0
    (asked,) = aws.parameters(EKS_SETS)
    assert (asked["clusterName"], asked["nodegroupName"]) == ("research", "train-x")
    assert asked["scalingConfig"] == {"minSize": 1, "desiredSize": 4}
    assert "train: 2 nodes now, 4 wanted" in answer.stdout
    assert "the Cluster Autoscaler goes on" in answer.stdout
    assert "train: 4 instances in service; `ultrascale status" in answer.stdout.splitlines()[-1]
    assert "train-x: 3 of 4 in service" in answer.stderr


def test_instances_that_become_no_nodes_are_no_success_where_the_cluster_is_named(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, time: Time
) -> None:
    has(monkeypatch, Groups(2).answers)
    stub = FakeCluster()
    monkeypatch.setattr("ultrascale.cli.ask.connected", lambda *_: stub.connected())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    node = {"metadata": {"labels": {"ultrascale.dev/pool": "train"}}, "spec": {}}
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    stub.put("/api/v1/nodes/n-1", node | ready)
    file, options = written(tmp_path, MANAGED), ("--yes", "--timeout", "3", "--context", "ml")

    missing = ultrascale("scale", file, "train", 2, *options)
    stub.put("/api/v1/nodes/n-2", deepcopy(node) | ready)
    whole = ultrascale("scale", file, "train", 2, *options)

    assert missing.returncode == 1
    assert "not within 3 minutes: train-x: 1 of 2 nodes ready" in missing.stderr
    assert "train: 2 nodes take work" in whole.stdout


def test_a_group_is_not_set_in_one_account_and_looked_at_in_the_cluster_of_another(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws = has(monkeypatch, Groups(2).answers)
    arn = "arn:aws:eks:us-west-2:444455556666:cluster/research"
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", cluster=arn)

    answer = ultrascale(
        "scale", written(tmp_path, MANAGED), "train", 4, "--yes", "--no-wait", "--kubeconfig", path
    )

    assert f"it is of research of 444455556666 in us-west-2, not of research of {ID}" in (
        answer.stderr
    )
    assert EKS_SETS not in aws.actions


def test_a_self_managed_group_is_set_by_auto_scaling(scale: Scale) -> None:
    answer, aws = scale(3, "--yes", pool=MANAGED | {"provisioner": "self-managed"})
    assert answer.returncode == 0
    sizes = {"AutoScalingGroupName": "asg-train", "MinSize": 1, "DesiredCapacity": 3}
    assert aws.parameters(OURS_SETS) == [sizes]
    filters = {each["Name"] for each in aws.parameters(GROUPS)[0]["Filters"]}
    assert filters == {"tag:kubernetes.io/cluster/research", "tag:ultrascale.dev/pool"}
    assert EKS_SETS not in aws.actions


def test_a_group_is_emptied_below_its_minimum_and_gets_that_back_with_the_next_size(
    scale: Scale,
) -> None:
    groups = Groups(2)
    emptied, first = scale(0, "--yes", groups=groups)
    _, second = scale(2, "--yes", groups=groups)
    assert "its minimum of 1 is lowered to 0" in emptied.stdout
    assert "2 nodes end" in emptied.stdout
    sizes = [aws.parameters(EKS_SETS)[0]["scalingConfig"] for aws in (first, second)]
    assert sizes == [{"minSize": 0, "desiredSize": 0}, {"minSize": 1, "desiredSize": 2}]


def test_capacity_that_does_not_come_is_told_in_the_words_of_auto_scaling_and_of_eks(
    scale: Scale, time: Time
) -> None:
    groups = Groups(2, stuck=True)
    groups.issues = [{"code": "InsufficientFreeAddresses", "message": "subnet-1 is full"}]
    answer, _ = scale(4, "--yes", "--timeout", "2", groups=groups)
    assert answer.returncode == 1
    assert "not within 2 minutes: train-x: 2 of 4 in service" in answer.stderr
    assert "Auto Scaling says: InsufficientInstanceCapacity" in answer.stderr
    assert "EKS says: InsufficientFreeAddresses: subnet-1 is full" in answer.stderr
    assert time.sleeps == 8


@rows(
    "nodes, options, changes, says",
    {
        "nobody to ask": (4, (), {}, "nothing was changed"),
        "refused by EKS": (
            4,
            ("--yes",),
            {"answers": {EKS_SETS: Refusal("ResourceInUseException", "update in progress")}},
            "update in progress",
        ),
        "updated by EKS": (
            4,
            ("--yes",),
            {"groups": Groups(2, status="UPDATING")},
            "EKS updates train-x; wait until that is done",
        ),
        "not deployed": (
            4,
            ("--yes",),
            {"answers": {LIST: {"nodegroups": ["system-x"]}}},
            "deploy it: cdk deploy --exclusively research-train -c cluster=FILE",
        ),
        "two groups": (
            4,
            ("--yes",),
            {"answers": {LIST: {"nodegroups": ["train-x", "train-y"]}}},
            "train-x, train-y stand side by side; wait",
        ),
        "a size of the file alone": (
            9,
            ("--yes",),
            {"pool": MANAGED | {"nodes": {"min": 1, "max": 16}}},
            "train: at most 8 nodes as it is deployed, got 9; deploy the file first",
        ),
    },
)
def test_no_size_is_set_that_is_not_agreed_to_or_cannot_be(
    scale: Scale, nodes: int, options: tuple[str, ...], changes: dict[str, Any], says: str
) -> None:
    answer, aws = scale(nodes, *options, **changes)
    assert answer.returncode == 1
    assert says in answer.stderr
    assert "set from" not in answer.stdout
    assert (EKS_SETS in aws.actions) == (EKS_SETS in changes.get("answers", {}))


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
    assert (
        f"the cluster file names account 444455556666, the credentials belong to {ID}"
        in answer.stderr
    )
    assert not aws.parameters(EKS_SETS)


def test_a_group_that_a_scaler_has_made_larger_meanwhile_is_left_at_that(
    scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = Groups(2)

    def confirm(*_: object, **__: object) -> None:
        groups.desired = 8

    monkeypatch.setattr("ultrascale.cli.ask.confirm", confirm)

    answer, aws = scale(4, groups=groups)

    assert answer.returncode == 1
    assert "train-x: somebody set it from 2 to 8 nodes meanwhile" in answer.stderr
    assert EKS_SETS not in aws.actions


def test_a_minimum_that_gave_way_comes_back_where_the_autoscaler_has_set_the_size(
    scale: Scale,
) -> None:
    groups = Groups(2)
    groups.minimum = 0
    _, aws = scale(2, "--yes", groups=groups)
    again, later = scale(2, groups=groups)
    (asked,) = aws.parameters(EKS_SETS)
    assert asked["scalingConfig"] == {"minSize": 1, "desiredSize": 2}
    assert EKS_SETS not in later.actions
    assert "is set to 2 nodes already" in again.stdout


@pytest.mark.parametrize(
    ("spill", "what"),
    [
        ("never", "no difference, the reservation is paid whether its nodes run or not"),
        ("on-demand", "the reservation is paid anyway; each node that it has no room for: $55.04"),
    ],
)
def test_nodes_beyond_a_reservation_are_not_told_to_be_free(
    scale: Scale, spill: str, what: str
) -> None:
    answer, _ = scale(4, pool=POOL | {"purchase": ODCR | {"spill": spill}})
    assert f"per hour: {what}" in answer.stdout
