"""The custom resource that is a build: what a deploy waits for, and what it learns of a failure."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_aws import FakeAws, Refusal
from ultrascale.lambdas.builds.handler import answer

BUILD = "research-hyperpod-chart:1"
PROJECT = "research-hyperpod-chart"
LOGS = {"groupName": "chart", "streamName": "1"}
FOREVER = 900.0


class CodeBuild(FakeAws):
    """CodeBuild, in the order in which the test foresees its requests."""

    def starts(self, status: str = "IN_PROGRESS") -> None:
        self.expect("codebuild:StartBuild", {"build": _build(status)}, {"projectName": PROJECT})

    def is_at(self, status: str, **more: Any) -> None:
        builds = {"builds": [_build(status) | more]}
        self.expect("codebuild:BatchGetBuilds", builds, {"ids": [BUILD]})

    def stops(self) -> None:
        self.expect("codebuild:StopBuild", {}, {"id": BUILD})


def _build(status: str) -> dict[str, Any]:
    return {"id": BUILD, "buildStatus": status, "logs": LOGS}


@pytest.fixture
def codebuild() -> Iterator[CodeBuild]:
    stub = CodeBuild()
    yield stub
    stub.verify()


def answers(
    codebuild: CodeBuild, request: str = "Create", *, seconds: float = FOREVER, **more: Any
) -> dict[str, Any]:
    """Return the one answer that CloudFormation gets, ``seconds`` before the function ends."""
    sent: list[urllib.request.Request] = []
    waited: list[float] = []
    event: Any = {
        "RequestType": request,
        "ResponseURL": "https://cloudformation.example/answer",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Build",
        "ResourceProperties": {"ProjectName": PROJECT, "Revision": "1"},
    }
    answer(
        event | more,
        codebuild=codebuild.client("codebuild"),
        remaining_seconds=lambda: seconds - sum(waited),
        sleep=waited.append,
        send=sent.append,
    )
    (only,) = sent
    assert isinstance(only.data, bytes)
    return json.loads(only.data)


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_the_deploy_goes_on_when_the_build_has_succeeded(
    codebuild: CodeBuild, request_type: str
) -> None:
    codebuild.starts()
    codebuild.is_at("IN_PROGRESS")
    codebuild.is_at("SUCCEEDED")

    told = answers(codebuild, request_type, PhysicalResourceId="there")

    assert (told["Status"], told["Data"]) == ("SUCCESS", {"BuildId": BUILD})
    # An update keeps the resource, so that nothing is deleted.
    assert request_type == "Create" or told["PhysicalResourceId"] == "there"
    # A deleted one leaves the release where it is.
    assert answers(codebuild, "Delete", PhysicalResourceId="there")["Status"] == "SUCCESS"


def test_a_build_that_cannot_start_fails_the_deploy_at_once(codebuild: CodeBuild) -> None:
    codebuild.expect("codebuild:StartBuild", Refusal("AccountLimitExceededException", "queued"))
    told = answers(codebuild)
    assert (told["Status"], "AccountLimitExceededException" in told["Reason"]) == ("FAILED", True)


@pytest.mark.parametrize("status", ["FAILED", "FAULT", "TIMED_OUT", "STOPPED"])
def test_a_build_that_did_not_succeed_fails_the_deploy_and_says_where_to_look(
    codebuild: CodeBuild, status: str
) -> None:
    codebuild.starts()
    phase = {"phaseType": "BUILD", "contexts": [{"message": "exit status 1"}]}
    codebuild.is_at(status, phases=[{"phaseType": "QUEUED"}, phase])
    told = answers(codebuild)
    assert told["Status"] == "FAILED"
    assert f"{status}; BUILD: exit status 1" in told["Reason"]
    assert "aws logs tail chart --log-stream-names 1" in told["Reason"]


def test_a_build_that_takes_too_long_is_stopped_before_the_function_is(
    codebuild: CodeBuild,
) -> None:
    codebuild.starts()
    codebuild.is_at("IN_PROGRESS")
    codebuild.stops()
    told = answers(codebuild, seconds=49.0)
    assert told["Status"] == "FAILED"
    assert "took too long and was stopped" in told["Reason"]
