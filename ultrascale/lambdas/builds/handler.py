"""Function of the custom resource that runs a build."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3

from ..cloudformation import Send, put, respond

if TYPE_CHECKING:
    from mypy_boto3_codebuild import CodeBuildClient
    from mypy_boto3_codebuild.type_defs import BuildTypeDef

    from ..events import BuildProperties, Context, Request


# --- A build of AWS CodeBuild, from its start to its end ------------------------------------------


_POLL_SECONDS = 5
# Time for the answer to CloudFormation once a build is given up.
_RESERVE_SECONDS = 45
_RUNNING = "IN_PROGRESS"
_SUCCEEDED = "SUCCEEDED"


class BuildError(Exception):
    """Error: a build did not succeed."""


def run(
    codebuild: "CodeBuildClient",
    project: str,
    *,
    remaining_seconds: Callable[[], float],
    sleep: Callable[[float], None],
) -> str:
    """Run a build of ``project`` and return its id.

    A build that takes too long is stopped: otherwise it would change the cluster after
    CloudFormation heard of its failure.

    Args:
        codebuild: CodeBuild client.
        project: Name of the project.
        remaining_seconds: Returns the seconds that are left.
        sleep: Waits.

    Raises:
        BuildError: The build failed, was stopped, or took too long. The message says where its log
            is.
        ClientError: CodeBuild refused.
    """
    build = codebuild.start_build(projectName=project)["build"]
    while build["buildStatus"] == _RUNNING:
        if remaining_seconds() < _RESERVE_SECONDS:
            codebuild.stop_build(id=build["id"])
            raise BuildError(
                f"build {build['id']} took too long and was stopped{_log_location(build)}"
            )
        sleep(_POLL_SECONDS)
        (build,) = codebuild.batch_get_builds(ids=[build["id"]])["builds"]
    if build["buildStatus"] != _SUCCEEDED:
        raise BuildError(f"build {build['id']}: {_failure_reason(build)}{_log_location(build)}")
    return build["id"]


def _failure_reason(build: "BuildTypeDef") -> str:
    """Return the status of a build, and CodeBuild's messages of the failed phase."""
    said = [
        f"{phase['phaseType']}: {context['message']}"
        for phase in build.get("phases", [])
        for context in phase.get("contexts", [])
        if context.get("message")
    ]
    return "; ".join([build["buildStatus"], *said])


def _log_location(build: "BuildTypeDef") -> str:
    logs = build.get("logs", {})
    if "groupName" not in logs:
        return ""
    return f"; aws logs tail {logs['groupName']} --log-stream-names {logs.get('streamName', '')}"


_LOG = logging.getLogger(__name__)


def on_event(event: "Request[BuildProperties]", context: "Context") -> None:
    """Answer a request of CloudFormation."""
    answer(
        event,
        codebuild=boto3.client("codebuild"),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
    )


def answer(
    event: "Request[BuildProperties]",
    *,
    codebuild: "CodeBuildClient",
    remaining_seconds: Callable[[], float],
    sleep: Callable[[float], None] = time.sleep,
    send: Send = put,
) -> None:
    """Run a build at each creation or update of the resource, and report its outcome.

    A deleted resource leaves the results of its builds.

    Args:
        event: The request.
        codebuild: CodeBuild client.
        remaining_seconds: Returns the seconds until Lambda ends the function.
        sleep: Waits.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
    """
    same_id = event.get("PhysicalResourceId", event["LogicalResourceId"])
    data: dict[str, str | int] = {}
    try:
        if event["RequestType"] != "Delete":
            project = event["ResourceProperties"]["ProjectName"]
            data["BuildId"] = run(
                codebuild, project, remaining_seconds=remaining_seconds, sleep=sleep
            )
    # Any error must be answered: without an answer the deployment hangs, and nobody learns the
    # reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=same_id, reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=same_id, data=data, send=send)
