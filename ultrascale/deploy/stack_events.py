"""The events of a stack: what failed first, and in whose words.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    # It brings boto3, which is slow to import.
    from ultrascale.account import Account

EVENTS = "cloudformation:DescribeStackEvents"
"""The IAM action that it takes to read them."""

# What CloudFormation answers of a stack that is not there.
_NO_STACK = "ValidationError"
_STACK = "AWS::CloudFormation::Stack"
_REFUSED = frozenset({"HOOK_COMPLETE_FAILED", "HOOK_FAILED"})
# What is ended since something else failed has this for a reason, and nothing more.
_CANCELLED = re.compile(r"\s*Resource \w+ cancell?ed\.?\s*", re.IGNORECASE)
_MESSAGE = re.compile(r"Message returned: (.*)", re.DOTALL)
# Below the message of a custom resource stand the stack trace of its function and a request id.
_TRACE = re.compile(r"\s+at \S+ \(/var/.*|\s*\(RequestId: [^)]*\).*", re.DOTALL)

Event = Mapping[str, Any]


def newest_first(account: "Account", stack: str) -> Iterator[Event]:
    """Yield the events of a stack, page by page; none where there is no such stack.

    Args:
        account: Its account.
        stack: Its name or ARN; of one that is gone, the ARN.

    Raises:
        UnansweredError: AWS does not say.
    """
    more: dict[str, Any] = {}
    while True:
        try:
            page = account.ask(
                account.client("cloudformation").describe_stack_events, StackName=stack, **more
            )
        except UnansweredError as error:
            if error.code == _NO_STACK and "does not exist" in error.reason:
                return
            raise
        yield from page.get("StackEvents", [])
        if not page.get("NextToken"):
            return
        more = {"NextToken": page["NextToken"]}


def first_failure(events: Iterable[Event]) -> Event | None:
    """Return the first failure of a resource; of the stack itself where no resource failed.

    Args:
        events: Those of one operation, the oldest first.
    """
    whole: Event | None = None
    for event in events:
        status: str = event.get("ResourceStatus", "")
        reason: str = event.get("ResourceStatusReason", "")
        if is_stack(event):
            if whole is None and ("ROLLBACK" in status or status.endswith("_FAILED")):
                whole = event
        elif status.endswith("_FAILED") and not _CANCELLED.fullmatch(reason):
            return event
    return whole


def refused_by_hook(failed: Event, events: Iterable[Event]) -> Event | None:
    """Return the event of a CloudFormation Hook that refused what failed: it alone says why."""
    for event in events:
        if (
            event.get("HookStatus") in _REFUSED
            and event.get("HookFailureMode") == "FAIL"
            and event["LogicalResourceId"] == failed["LogicalResourceId"]
        ):
            words = event.get("HookStatusReason", "it gives no reason")
            reason = f"The following hook(s) failed: {event['HookType']}: {words}"
            return {**failed, "ResourceStatusReason": reason}
    return None


def is_stack(event: Event) -> bool:
    """Return whether an event is of the stack itself."""
    return event["ResourceType"] == _STACK and event.get("PhysicalResourceId") == event["StackId"]


def reason_of(event: Event) -> str:
    """Return the words of the service, without those around them."""
    text: str = event.get("ResourceStatusReason", "") or "CloudFormation gives no reason"
    message = _MESSAGE.search(text)
    plain = _TRACE.sub("", message[1] if message else text)
    # kubectl's words come as the text of Python's bytes.
    return " ".join(plain.replace("\\n", " ").split())
