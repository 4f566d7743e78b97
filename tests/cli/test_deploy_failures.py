"""`ultrascale deploy`, where a stack fails or the command is ended: what is told, and left."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_deployments import NOT_THERE, STACKS, Deployment, has, prepare
from tests.support.command_line import Ultrascale
from tests.support.deployments import event, stack_event
from tests.support.fake_aws import Refusal
from ultrascale.deploy.cause import EVENTS


@pytest.fixture
def deploy(ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return prepare(ultrascale, tmp_path, monkeypatch)


def test_a_failed_pool_is_told_by_its_first_cause_and_the_others_are_deployed(
    deploy: Deployment,
) -> None:
    reason = "We currently do not have sufficient p5.48xlarge capacity"
    events = [
        stack_event(3, "ROLLBACK_COMPLETE"),
        event(2, "CREATE_FAILED", reason),
        stack_event(1, "CREATE_IN_PROGRESS"),
    ]
    told: list[Any] = [*[NOT_THERE] * len(STACKS), {"StackEvents": events}]
    has(deploy.patch, events=told)
    deploy.project.fails("research-train")

    answer = deploy("--yes", "--concurrency", "1")

    assert answer.returncode == 4
    assert deploy.project.deployed == [*STACKS]
    assert f"first: NodeGroup (AWS::EKS::Nodegroup): {reason}" in answer.stderr
    assert f"ultrascale capacity {deploy.file}" in answer.stderr
    assert "delete-stack --stack-name research-train" in answer.stderr
    assert answer.stdout.splitlines()[-1] == "10 stacks: 9 deployed, 1 failed"


def test_no_node_is_paid_for_where_what_it_needs_failed(deploy: Deployment) -> None:
    deploy.project.fails(
        "research-platform", "begun\n❌ research-platform failed to deploy\n‣ no bucket"
    )

    answer = deploy("--yes")

    assert answer.returncode == 4
    assert not {"research-train", "research-other"} & {*deploy.project.deployed}
    assert (
        "the CDK says:\n  ❌ research-platform failed to deploy\n  ‣ no bucket\n" in answer.stderr
    )
    assert "research-train: waits for research-platform" in answer.stderr


def test_what_cloudformation_refuses_is_told_by_its_property_path(deploy: Deployment) -> None:
    def validation(operation: str, path: str, status: str) -> dict[str, str]:
        named = {"LogicalResourceId": "Role", "ValidationPath": path, "OperationId": operation}
        return named | {"ValidationStatus": status, "ValidationStatusReason": "not a number"}

    findings = [
        validation("new", "/Properties/MaxSessionDuration", "FAILED"),
        validation("new", "/Properties/Path", "SKIPPED"),
        validation("old", "/Properties/RoleName", "FAILED"),
    ]
    validated: dict[str, Any] = {"cloudformation:DescribeEvents": {"OperationEvents": findings}}
    has(deploy.patch, deployed=validated)
    deploy.project.fails("research-platform", "Early validation failed for change set x")

    told = deploy("--yes").stderr

    said = "research-platform: CloudFormation's validation: Role/Properties/"
    assert f"{said}MaxSessionDuration: not a number\n" in told
    assert "RoleName" not in told
    assert "Properties/Path" not in told


def test_events_that_cannot_be_read_are_not_passed_over(deploy: Deployment) -> None:
    has(deploy.patch, events=Refusal("AccessDenied", "no"))
    deploy.project.fails("research-network")
    answer = deploy("--yes")
    assert answer.returncode == 4
    assert f"its events are not known: {EVENTS}: denied" in answer.stderr
    assert "❌ it failed" in answer.stderr


@pytest.mark.parametrize("number", ["INT", "TERM", "HUP"])
def test_what_ends_the_command_says_what_goes_on(deploy: Deployment, number: str) -> None:
    deploy.project.does("research-cluster", f"kill -{number} $PPID; sleep 30\n")

    # The tests themselves may run under `nohup`.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        answer = deploy("--yes")
    finally:
        signal.signal(signal.SIGHUP, before)

    assert answer.returncode == 130
    assert deploy.project.deployed == ["research-network", "research-cluster"]
    assert "research-cluster: what CloudFormation has begun of it goes on" in answer.stderr
    assert answer.stdout.splitlines()[-1] == "10 stacks: 1 deployed, 1 interrupted, 8 not started"


def test_credentials_that_end_meanwhile_fail_no_stack(deploy: Deployment) -> None:
    going_on = {"StackEvents": [stack_event(1, "CREATE_IN_PROGRESS")]}
    has(deploy.patch, events=[*[NOT_THERE] * len(STACKS), going_on])
    deploy.project.fails(
        "research-train", "❌ research-train failed\n‣ ExpiredToken: it is expired"
    )

    answer = deploy("--yes", "--concurrency", "1")

    told = answer.stderr[answer.stderr.index("research-train failed") :]
    assert answer.returncode == 4
    assert "nothing of it has failed, and `cdk deploy` ended; it says:" in told
    assert "the stack is in CREATE_IN_PROGRESS" in told
    assert "log in again or export new ones" in told
    assert "CloudFormation goes on with it: wait until" in told


def test_what_a_good_update_could_not_delete_is_told(deploy: Deployment) -> None:
    """CloudFormation calls such an update complete, and the CDK says nothing of it."""
    old = stack_event(1, "CREATE_COMPLETE")
    replaced = {"ResourceType": "AWS::FSx::FileSystem", "PhysicalResourceId": "fs-1"}
    new = [
        stack_event(4, "UPDATE_COMPLETE"),
        event(3, "DELETE_FAILED", "it is mounted", **replaced),
        stack_event(2, "UPDATE_IN_PROGRESS"),
    ]
    marks = [{"StackEvents": [old]}, *[NOT_THERE] * (len(STACKS) - 1)]
    has(deploy.patch, events=[*marks, {"StackEvents": [*new, old]}])

    answer = deploy("--yes", "--concurrency", "1")

    assert answer.returncode == 0
    assert "research-network: no more in the stack, and still there:" in answer.stderr
    assert "AWS::FSx::FileSystem fs-1 (NodeGroup): not deleted: it is mounted" in answer.stderr


def test_what_may_be_left_and_cannot_be_read_is_told(deploy: Deployment) -> None:
    has(deploy.patch, events=Refusal("AccessDenied", "no"))
    answer = deploy("--yes")
    assert answer.returncode == 0
    assert (
        f"research-train: the resources that it left are not known: {EVENTS}: denied"
        in answer.stderr
    )
