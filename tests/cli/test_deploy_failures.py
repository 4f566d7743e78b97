"""`ultrascale deploy`, where a stack fails or the command is ended: what is told, and left."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_deployments import NOT_THERE, STACKS, has, prepare, written
from tests.support.command_line import Ultrascale
from tests.support.deployments import Project, event, stack_event
from tests.support.fake_aws import Refusal
from ultrascale.deploy.cause import EVENTS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return prepare(tmp_path, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_a_failed_pool_is_told_by_its_first_cause_and_the_others_are_deployed(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "We currently do not have sufficient p5.48xlarge capacity"
    events = [
        stack_event(3, "ROLLBACK_COMPLETE"),
        event(2, "CREATE_FAILED", reason),
        stack_event(1, "CREATE_IN_PROGRESS"),
    ]
    told: list[Any] = [*[NOT_THERE] * len(STACKS), {"StackEvents": events}]
    has(monkeypatch, events=told)
    project.fails("research-train")

    answer = ultrascale("deploy", file, "--yes", "--concurrency", "1")

    assert answer.returncode == 4
    assert project.deployed == [*STACKS]
    assert f"first: NodeGroup (AWS::EKS::Nodegroup): {reason}" in answer.stderr
    assert f"ultrascale capacity {file}" in answer.stderr
    assert "delete-stack --stack-name research-train" in answer.stderr
    assert answer.stdout.splitlines()[-1] == "10 stacks: 9 deployed, 1 failed"


def test_no_node_is_paid_for_where_what_it_needs_failed(
    ultrascale: Ultrascale, project: Project, file: Path
) -> None:
    project.fails("research-platform", "begun\n❌ research-platform failed to deploy\n‣ no bucket")

    answer = ultrascale("deploy", file, "--yes")

    assert answer.returncode == 4
    assert not {"research-train", "research-other"} & {*project.deployed}
    assert (
        "the CDK says:\n  ❌ research-platform failed to deploy\n  ‣ no bucket\n" in answer.stderr
    )
    assert "research-train: waits for research-platform" in answer.stderr


def test_events_that_cannot_be_read_are_not_passed_over(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, events=Refusal("AccessDenied", "no"))
    project.fails("research-network")

    answer = ultrascale("deploy", file, "--yes")

    assert answer.returncode == 4
    assert f"its events are not known: {EVENTS}: denied" in answer.stderr
    assert "❌ it failed" in answer.stderr


@pytest.mark.parametrize("number", ["INT", "TERM", "HUP"])
def test_what_ends_the_command_says_what_goes_on(
    ultrascale: Ultrascale, project: Project, file: Path, number: str
) -> None:
    project.does("research-cluster", f"kill -{number} $PPID; sleep 30\n")

    # The tests themselves may run under `nohup`.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        answer = ultrascale("deploy", file, "--yes")
    finally:
        signal.signal(signal.SIGHUP, before)

    assert answer.returncode == 130
    assert project.deployed == ["research-network", "research-cluster"]
    assert "research-cluster: what CloudFormation has begun of it goes on" in answer.stderr
    assert answer.stdout.splitlines()[-1] == "10 stacks: 1 deployed, 1 interrupted, 8 not started"


def test_credentials_that_end_meanwhile_fail_no_stack(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = {"StackEvents": [stack_event(1, "CREATE_IN_PROGRESS")]}
    has(monkeypatch, events=[*[NOT_THERE] * len(STACKS), going_on])
    project.fails("research-train", "❌ research-train failed\n‣ ExpiredToken: it is expired")

    answer = ultrascale("deploy", file, "--yes", "--concurrency", "1")

    told = answer.stderr[answer.stderr.index("research-train failed") :]
    assert answer.returncode == 4
    assert "nothing of it has failed, and `cdk deploy` ended; it says:" in told
    assert "the stack is in CREATE_IN_PROGRESS" in told
    assert "log in again or export new ones" in told
    assert "CloudFormation goes on with it: wait until" in told


def test_what_a_good_update_could_not_delete_is_told(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CloudFormation calls such an update complete, and the CDK says nothing of it."""
    old = stack_event(1, "CREATE_COMPLETE")
    replaced = {"ResourceType": "AWS::FSx::FileSystem", "PhysicalResourceId": "fs-1"}
    new = [
        stack_event(4, "UPDATE_COMPLETE"),
        event(3, "DELETE_FAILED", "it is mounted", **replaced),
        stack_event(2, "UPDATE_IN_PROGRESS"),
    ]
    marks = [{"StackEvents": [old]}, *[NOT_THERE] * (len(STACKS) - 1)]
    has(monkeypatch, events=[*marks, {"StackEvents": [*new, old]}])

    answer = ultrascale("deploy", file, "--yes", "--concurrency", "1")

    assert answer.returncode == 0
    assert "research-network: no more in the stack, and still there:" in answer.stderr
    assert "AWS::FSx::FileSystem fs-1 (NodeGroup): not deleted: it is mounted" in answer.stderr


def test_what_may_be_left_and_cannot_be_read_is_told(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, events=Refusal("AccessDenied", "no"))

    answer = ultrascale("deploy", file, "--yes")

    assert answer.returncode == 0
    assert (
        f"research-train: the resources that it left are not known: {EVENTS}: denied"
        in answer.stderr
    )
