"""Answers of custom resources to CloudFormation, and a query whether it rolls a stack back."""

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

    from .events import Request

# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
_LONGEST_BODY_BYTES = 4096
# Limit in characters; a character takes up to six bytes.
_LONGEST_REASON = 500
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 10

_Properties = TypeVar("_Properties")
Send = Callable[[urllib.request.Request], None]


def put(request: urllib.request.Request) -> None:
    """Send ``request``, with up to three attempts: without an answer, a deployment waits an hour.

    Raises:
        OSError: Every attempt failed.
    """
    for left in reversed(range(_ATTEMPTS)):
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):
                return
        except OSError:
            if left == 0:
                raise


def respond(
    event: "Request[_Properties]",
    *,
    status: Literal["SUCCESS", "FAILED"],
    physical_id: str,
    data: Mapping[str, str | int] | None = None,
    reason: str = "",
    send: Send = put,
) -> None:
    """Answer the request of a custom resource.

    Args:
        event: The request, as CloudFormation sent it.
        status: Outcome of the request.
        physical_id: Id of the resource. With a new id, CloudFormation deletes the old resource.
        data: Values for `Fn::GetAtt`.
        reason: Reason of a failure: the first words that the user reads.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
        ValueError: The answer is longer than CloudFormation takes.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
    """
    body = json.dumps(
        {
            "Status": status,
            "Reason": reason[:_LONGEST_REASON],
            "PhysicalResourceId": physical_id,
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": dict(data or {}),
        },
        ensure_ascii=False,
    ).encode()
    if len(body) > _LONGEST_BODY_BYTES:
        raise ValueError(f"the answer has {len(body)} bytes, more than {_LONGEST_BODY_BYTES}")
    # The URL is signed for an empty content type; urllib would fill in one of its own.
    send(
        urllib.request.Request(
            event["ResponseURL"], data=body, method="PUT", headers={"Content-Type": ""}
        )
    )


def rolls_back(cloudformation: "CloudFormationClient", stack: str) -> bool:
    """Return whether ``stack``, an id, is rolled back.

    A function that fails during a rollback leaves a stack that nobody can deploy.

    Raises:
        ClientError: CloudFormation refused.
    """
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return "ROLLBACK" in found["StackStatus"]
