"""Nodes of a pool against the plan."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.accept_cluster import Stage, stage, write_file
from tests.support.account import fake_account
from tests.support.pools import as_json, loads_own
from ultrascale.accept import levels
from ultrascale.findings import Finding, State

TYPE = "node.kubernetes.io/instance-type"
NODE: dict[str, Any] = {
    "metadata": {"labels": {TYPE: "c7i.2xlarge"}},
    "spec": {"taints": []},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "7910m", "memory": "14800Mi"},
        "nodeInfo": {"kubeletVersion": "v1.35.8-eks-1", "kernelVersion": "6.12.40-1.amzn2023"},
    },
}


@pytest.fixture
def staged(tmp_path: Path) -> Stage:
    return stage(write_file(tmp_path, "none"))


def put_node(staged: Stage, **changes: dict[str, Any]) -> None:
    (pool,) = (pool for pool in staged.run.plan.all_pools if pool.pool == "work")
    version = pool.kubernetes_version
    info = {"kubeletVersion": f"v{version}.1-eks-1"}
    node = {part: fields | changes.get(part, {}) for part, fields in NODE.items()}
    node["status"] = node["status"] | {
        "nodeInfo": NODE["status"]["nodeInfo"] | info | changes.get("info", {})
    }
    labels = {**pool.labels, **NODE["metadata"]["labels"], **changes.get("labels", {})}
    staged.stub.put("/api/v1/nodes/one", node | {"metadata": {"labels": labels}})


def findings(staged: Stage) -> list[Finding]:
    checks = levels.checks(staged.run.plan, ["nodes"], "work", grows=staged.run.grows)
    return [found for check in checks for found in check.run(staged.run)]


def states(staged: Stage) -> list[State]:
    return [found.state for found in findings(staged)]


def test_nodes_as_planned_pass_and_are_measured(staged: Stage) -> None:
    put_node(staged)
    assert states(staged) == ["pass"], findings(staged)
    (work,) = (pool for pool in staged.run.plan.all_pools if pool.pool == "work")
    value = {"millicpu": 7910, "memory_mib": 14800}
    of = work.instance_types[0]
    fact = {"fact": "allocatable", "of": of, "value": value, "seen": "2026-12-05"}
    assert staged.run.kept.facts == [fact]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"status": NODE["status"] | {"allocatable": {"cpu": "7", "memory": "14800Mi"}}},
            "7000 thousandths of cpu",
        ),
        (
            {"status": NODE["status"] | {"allocatable": {"cpu": "7910m", "memory": "12Gi"}}},
            "12288 MiB of memory",
        ),
        (
            {"labels": {"node.kubernetes.io/instance-type": "c7i.xlarge"}},
            "instance type c7i.x",
        ),
        ({"labels": {"ultrascale.dev/role": "other"}}, "label ultrascale.dev/role is other"),
        ({"info": {"kubeletVersion": "v1.30.1"}}, "kubelet v1.30.1"),
        ({"info": {"kernelVersion": "5.10.1"}}, "kernel 5.10.1"),
    ],
)
def test_a_node_that_differs_is_found(
    staged: Stage, changes: dict[str, dict[str, Any]], words: str
) -> None:
    put_node(staged, **changes)
    (found,) = findings(staged)
    assert found.state == "differs"
    assert f"1 of 1 nodes: {words}" in found.evidence


@pytest.mark.parametrize(("image", "state"), [("ami-1", "pass"), ("ami-2", "differs")])
def test_the_image_of_a_node_is_that_of_the_pinned_release(
    staged: Stage, image: str, state: State
) -> None:
    put_node(staged, spec={"providerID": "aws:///us-west-2b/i-1"})
    instance = {"InstanceId": "i-1", "ImageId": image}
    account, _ = fake_account(
        {
            "ssm:GetParameters": {"Parameters": [{"Name": "x", "Value": "ami-1"}]},
            "ec2:DescribeInstances": {"Reservations": [{"Instances": [instance]}]},
        }
    )
    assert states(replace_run(staged, account=account)) == [state], findings(staged)


def test_a_pool_without_nodes_is_not_run(staged: Stage) -> None:
    assert states(staged) == ["not run"]
    assert "the file sets their number" in findings(staged)[0].evidence


def test_a_pool_of_size_0_is_grown_by_a_job_that_ends(tmp_path: Path) -> None:
    staged = stage(write_file(tmp_path, "kueue"))
    sleep = staged.run.clock.sleep

    def join(seconds: float) -> None:
        sleep(seconds)
        put_node(staged)

    clock = replace(staged.run.clock, sleep=join)
    staged = replace_run(staged, grows=True, clock=clock)
    assert states(staged) == ["pass"], findings(staged)
    assert [path for path in staged.stub.objects if "grow-" in path] == []
    started, offered = staged.run.kept.facts
    assert (started["fact"], started["of"], started["value"]) == ("start-time", "work", 5)
    text = staged.run.file.read_text()
    document = json.loads(text) | {"facts": [started, offered]}
    (pool,) = (pool for pool in loads_own(as_json(document)).pools if pool.name == "work")
    seen = pool.recorded.allocatable[str(offered["of"])]
    assert (pool.recorded.start_seconds, seen.millicpu) == (5, 7910)


def replace_run(staged: Stage, **fields: Any) -> Stage:
    staged.run = replace(staged.run, **fields)
    return staged
