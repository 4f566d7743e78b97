"""Why a stack failed: the first event that did, of the operation that was just made.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/determine-root-cause-for-stack-failures.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ultrascale.catalog.deploy_failures import STATUSES, what_to_do
from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    # It brings boto3, which is slow to import.
    from ultrascale.account import Account

EVENTS = "cloudformation:DescribeStackEvents"
"""The IAM action that it takes to know a cause."""

# What CloudFormation answers of a stack that is not there.
_NO_STACK = "ValidationError"
_STACK = "AWS::CloudFormation::Stack"
_REFUSED = frozenset({"HOOK_COMPLETE_FAILED", "HOOK_FAILED"})
# What is ended since something else failed has a reason such as `Resource creation cancelled`.
_CANCELLED = re.compile(r"\bcancell?ed\b", re.IGNORECASE)
_MESSAGE = re.compile(r"Message returned: (.*)", re.DOTALL)
# Below the message of a custom resource stand the stack trace of its function and a request id.
_TRACE = re.compile(r"\s+at \S+ \(/var/.*|\s*\(RequestId: [^)]*\).*", re.DOTALL)

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a stack failed.

    Attributes:
        resource: Logical id of what failed first; None where the stack did as a whole.
        kind: Its CloudFormation type; None where the stack failed as a whole.
        reason: What the service said.
        status: What the operation left the stack in.
        todo: What to do, in order.
    """

    resource: str | None
    kind: str | None
    reason: str
    status: str
    todo: tuple[str, ...]


class Events:
    """The events of stacks, each since it was marked."""

    def __init__(self, account: "Account") -> None:
        self._account = account
        self._marks: dict[str, str | UnansweredError | None] = {}

    def mark(self, stack: str) -> None:
        """Take note of the newest event of a stack, before something is done to it."""
        try:
            newest = next(_newest_first(self._account, stack), None)
        except UnansweredError as error:
            self._marks[stack] = error
        else:
            self._marks[stack] = None if newest is None else newest["EventId"]

    def first_cause(self, stack: str, words: Mapping[str, str]) -> Cause | None:
        """Return why what was done to a stack since it was marked failed.

        Args:
            stack: Its name.
            words: What stands for ``{file}``, ``{cluster}`` and ``{region}`` in what to do.

        Returns:
            None where nothing of the stack failed since: CloudFormation was not asked, or refused
            the template.

        Raises:
            UnansweredError: AWS does not say, or did not when the stack was marked.
        """
        mark = self._marks[stack]
        if isinstance(mark, UnansweredError):
            raise mark
        events: list[Event] = []
        for event in _newest_first(self._account, stack):
            if event["EventId"] == mark:
                break
            events.append(event)
        failed = _first(reversed(events))
        if failed is None:
            return None
        failed = _refused_by_hook(failed, events) or failed
        status = next((each["ResourceStatus"] for each in events if _is_stack(each)), "unknown")
        return _cause(failed, status, {**words, "stack": stack})


def _cause(failed: Event, status: str, words: Mapping[str, str]) -> Cause:
    reason = _reason(failed)
    found = (what_to_do(reason), STATUSES.get(status))
    whole = _is_stack(failed)
    return Cause(
        resource=None if whole else failed["LogicalResourceId"],
        kind=None if whole else failed["ResourceType"],
        reason=reason,
        status=status,
        todo=tuple(each.format(**words) for each in found if each is not None),
    )


def _first(events: Iterator[Event]) -> Event | None:
    """Return the first failure of a resource; of the stack itself where no resource failed."""
    whole: Event | None = None
    for event in events:
        status: str = event.get("ResourceStatus", "")
        reason: str = event.get("ResourceStatusReason", "")
        if _is_stack(event):
            if whole is None and ("ROLLBACK" in status or status.endswith("_FAILED")):
                whole = event
        elif status.endswith("_FAILED") and not _CANCELLED.search(reason):
            return event
    return whole


def _refused_by_hook(failed: Event, events: Iterable[Event]) -> Event | None:
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


def _newest_first(account: "Account", stack: str) -> Iterator[Event]:
    more: dict[str, Any] = {}
    while True:
        try:
            page = account.ask(EVENTS, StackName=stack, **more)
        except UnansweredError as error:
            if error.code == _NO_STACK and "does not exist" in error.reason:
                return
            raise
        yield from page.get("StackEvents", [])
        if not page.get("NextToken"):
            return
        more = {"NextToken": page["NextToken"]}


def _is_stack(event: Event) -> bool:
    return event["ResourceType"] == _STACK and event["PhysicalResourceId"] == event["StackId"]


def _reason(event: Event) -> str:
    """Return the words of the service, without those around them."""
    text: str = event.get("ResourceStatusReason", "") or "CloudFormation gives no reason"
    message = _MESSAGE.search(text)
    plain = _TRACE.sub("", message[1] if message else text)
    # kubectl's words come as the text of Python's bytes.
    return " ".join(plain.replace("\\n", " ").split())
