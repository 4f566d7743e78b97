"""The function behind the custom resource that is a build."""

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
    """Run the build that the resource is made or changed by, and tell CloudFormation what came.

    A resource that is deleted leaves what its builds made.

    Args:
        event: The request.
        codebuild: CodeBuild client.
        remaining_seconds: How long the function may still run.
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
    # Whatever it is: without an answer the deploy hangs, and nobody learns why.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=same_id, reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=same_id, data=data, send=send)
