"""Function of the custom resource that runs a build."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3

from ..cloudformation import Send, put, respond
from .build import run

if TYPE_CHECKING:
    from mypy_boto3_codebuild import CodeBuildClient

    from ..events import BuildProperties, Context, Request

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
    # Any error: without an answer, the deployment hangs, and nobody learns the reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=same_id, reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=same_id, data=data, send=send)
