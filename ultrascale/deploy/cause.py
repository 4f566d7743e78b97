"""Why a stack failed, and what it left: the events of the operation that was just made.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/determine-root-cause-for-stack-failures.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ultrascale.catalog.deploy_failures import IN_PROGRESS, STATUSES, what_to_do
from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    # It brings boto3, which is slow to import.
    from ultrascale.account import Account

EVENTS = "cloudformation:DescribeStackEvents"
"""The IAM action that it takes to know a cause."""

# What CloudFormation answers of a stack that is not there.
_NO_STACK = "ValidationError"
_STACK = "AWS::CloudFormation::Stack"
_REVIEW = "REVIEW_IN_PROGRESS"
# Of a function of the stack's own: what it keeps are objects in the cluster.
_CUSTOM = "Custom::"
_REFUSED = frozenset({"HOOK_COMPLETE_FAILED", "HOOK_FAILED"})
# What is ended since something else failed has this for a reason, and nothing more.
_CANCELLED = re.compile(r"\s*Resource \w+ cancell?ed\.?\s*", re.IGNORECASE)
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
        reason: What the service said; None where nothing of the stack has failed, and only the
            `cdk deploy` that followed it has.
        status: What the operation left the stack in.
        todo: What to do, in order.
    """

    resource: str | None
    kind: str | None
    reason: str | None
    status: str
    todo: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is no more in its stack, and still there.

    Attributes:
        resource: Its logical id.
        kind: Its CloudFormation type.
        id: What the service calls it.
        reason: Why it could not be deleted; None where its policy keeps it.
    """

    resource: str
    kind: str
    id: str
    reason: str | None


class Events:
    """The events of stacks, each since it was marked."""

    def __init__(self, account: "Account") -> None:
        self._account = account
        self._marks: dict[str, str | UnansweredError | None] = {}
        self._read: dict[str, Sequence[Event]] = {}

    def mark(self, stack: str) -> None:
        """Take note of the newest event of a stack, before something is done to it."""
        try:
            newest = next(_newest_first(self._account, stack), None)
        except UnansweredError as error:
            self._marks[stack] = error
        else:
            self._marks[stack] = None if newest is None else newest["EventId"]

    def was_there(self, stack: str) -> bool:
        """Return whether a stack had a past when it was marked, or may have had one."""
        return self._marks[stack] is not None

    def first_cause(self, stack: str, words: Mapping[str, str]) -> Cause | None:
        """Return why what was done to a stack since it was marked failed.

        Args:
            stack: Its name.
            words: What stands for ``{file}``, ``{cluster}`` and ``{region}`` in what to do.

        Returns:
            None where nothing was done to the stack since: CloudFormation was not asked, or
            refused the template.

        Raises:
            UnansweredError: AWS does not say, or did not when the stack was marked.
        """
        events = self._since(stack)
        status = next((each["ResourceStatus"] for each in events if _is_stack(each)), None)
        failed = _first(reversed(events))
        if failed is None and status in (None, _REVIEW):
            return None
        if failed is not None:
            failed = _refused_by_hook(failed, events) or failed
        return _cause(failed, status or "unknown", {**words, "stack": stack})

    def left(self, stack: str) -> tuple[Left, ...]:
        """Return what was taken out of a stack since it was marked, and is still there.

        CloudFormation calls an update complete that could not delete what it replaced.
        Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html

        Args:
            stack: Its name.

        Raises:
            UnansweredError: AWS does not say, or did not when the stack was marked.
        """
        found: dict[str, Left] = {}
        for event in reversed(self._since(stack)):
            id: str = event.get("PhysicalResourceId", "")
            if not id or _is_stack(event):
                continue
            status, kind = event.get("ResourceStatus"), event["ResourceType"]
            kept = status == "DELETE_SKIPPED" and not kind.startswith(_CUSTOM)
            if kept or status == "DELETE_FAILED":
                reason = None if kept else _reason(event)
                found[id] = Left(
                    resource=event["LogicalResourceId"], kind=kind, id=id, reason=reason
                )
            elif status == "DELETE_COMPLETE":
                found.pop(id, None)
        return tuple(found.values())

    def _since(self, stack: str) -> Sequence[Event]:
        """Return the events of a stack since it was marked, the newest first."""
        mark = self._marks[stack]
        if isinstance(mark, UnansweredError):
            raise mark
        if stack not in self._read:
            newest_first = _newest_first(self._account, stack)
            self._read[stack] = [*takewhile(lambda each: each["EventId"] != mark, newest_first)]
        return self._read[stack]


def _cause(failed: Event | None, status: str, words: Mapping[str, str]) -> Cause:
    reason = None if failed is None else _reason(failed)
    after = IN_PROGRESS if status.endswith("_IN_PROGRESS") else STATUSES.get(status)
    found = (what_to_do(reason) if reason is not None else None, after)
    one = None if failed is None or _is_stack(failed) else failed
    return Cause(
        resource=None if one is None else one["LogicalResourceId"],
        kind=None if one is None else one["ResourceType"],
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
        elif status.endswith("_FAILED") and not _CANCELLED.fullmatch(reason):
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
