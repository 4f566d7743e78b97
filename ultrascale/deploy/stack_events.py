"""Events of a stack: the first failure, and the service's reason for it.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef as Event

    # The package `account` brings boto3, which is slow to import.
    from ultrascale.account import Account

EVENTS = "cloudformation:DescribeStackEvents"
"""The IAM action that reading events needs."""

# CloudFormation's code for a stack that does not exist.
_NO_STACK = "ValidationError"
_STACK = "AWS::CloudFormation::Stack"
_REFUSED = frozenset({"HOOK_COMPLETE_FAILED", "HOOK_FAILED"})
# Whole reason of a resource that CloudFormation stopped because another resource failed.
_CANCELLED = re.compile(r"\s*Resource \w+ cancell?ed\.?\s*", re.IGNORECASE)
_MESSAGE = re.compile(r"Message returned: (.*)", re.DOTALL)
# The stack trace and the request id follow the message of a custom resource.
_TRACE = re.compile(r"\s+at \S+ \(/var/.*|\s*\(RequestId: [^)]*\).*", re.DOTALL)


def newest_first(account: "Account", stack: str) -> "Iterator[Event]":
    """Yield the events of a stack, the newest first; nothing without such a stack.

    Args:
        account: Its account.
        stack: Its name or ARN; the ARN of a deleted stack.

    Raises:
        UnansweredError: AWS did not answer.
    """
    cloudformation = account.client("cloudformation")
    try:
        for page in account.ask_pages(cloudformation.describe_stack_events, StackName=stack):
            yield from page["StackEvents"]
    except UnansweredError as error:
        if error.code != _NO_STACK or "does not exist" not in error.reason:
            raise


def first_failure(events: "Iterable[Event]") -> "Event | None":
    """Return the first failure of a resource, or else of the stack itself.

    Args:
        events: Events of one operation, the oldest first.
    """
    whole: Event | None = None
    for event in events:
        status = event.get("ResourceStatus", "")
        reason = event.get("ResourceStatusReason", "")
        if is_stack(event):
            if whole is None and ("ROLLBACK" in status or status.endswith("_FAILED")):
                whole = event
        elif status.endswith("_FAILED") and not _CANCELLED.fullmatch(reason):
            return event
    return whole


def refused_by_hook(failed: "Event", events: "Iterable[Event]") -> "Event | None":
    """Return the event of the CloudFormation Hook that refused a resource, with its reason."""
    for event in events:
        if (
            event.get("HookStatus") in _REFUSED
            and event.get("HookFailureMode") == "FAIL"
            and event["LogicalResourceId"] == failed["LogicalResourceId"]
        ):
            given = event.get("HookStatusReason", "it gives no reason")
            reason = f"The following hook(s) failed: {event['HookType']}: {given}"
            return {**failed, "ResourceStatusReason": reason}
    return None


def is_stack(event: "Event") -> bool:
    """Return whether an event is about the stack itself, not about a resource."""
    return event["ResourceType"] == _STACK and event.get("PhysicalResourceId") == event["StackId"]


def reason_of(event: "Event") -> str:
    """Return the service's reason without CloudFormation's words around it."""
    text = event.get("ResourceStatusReason", "") or "CloudFormation gives no reason"
    message = _MESSAGE.search(text)
    plain = _TRACE.sub("", message[1] if message else text)
    # kubectl's message arrives as the text of Python's bytes.
    return " ".join(plain.replace("\\n", " ").split())
