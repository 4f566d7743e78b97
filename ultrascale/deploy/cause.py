"""Cause of a stack's failure, and the resources that the operation could not delete.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/determine-root-cause-for-stack-failures.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from ultrascale.catalog.deploy_failures import IN_PROGRESS, STATUSES, what_to_do
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef as Event

    # The package `account` brings boto3, which is slow to import.
    from ultrascale.account import Account


# --- Events of a stack: the first failure, and the service's reason for it ------------------------
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html


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


# --- Cause of a stack's failure, and the resources that the operation could not delete ------------


_REVIEW = "REVIEW_IN_PROGRESS"
# Custom resources for objects in the cluster, not in the account.
_CUSTOM = "Custom::"


class Cause(Frozen):
    """Cause of a stack's failure, with the steps that solve it."""

    # Logical id of the resource that failed first; None where the whole stack failed.
    resource: str | None
    kind: str | None  # Its CloudFormation type; None where the whole stack failed
    # The service's reason; None where only the `cdk deploy` that followed the stack failed.
    reason: str | None
    status: str  # Status of the stack after the operation
    todo: tuple[str, ...]  # Steps that solve it, in order


class Left(Frozen):
    """A resource that left its stack and still exists."""

    resource: str  # Its logical id
    kind: str  # Its CloudFormation type
    id: str  # Its physical id
    reason: str | None  # The reason why it could not be deleted; None where its policy keeps it


class Events:
    """Events of stacks; each stack's events are read from its mark on."""

    def __init__(self, account: "Account") -> None:
        self._account = account
        self._marks: dict[str, str | UnansweredError | None] = {}
        self._read: dict[str, Sequence[Event]] = {}

    def mark(self, stack: str) -> None:
        """Mark the newest event of a stack, before an operation starts."""
        try:
            newest = next(newest_first(self._account, stack), None)
        except UnansweredError as error:
            self._marks[stack] = error
        else:
            self._marks[stack] = None if newest is None else newest["EventId"]

    def was_there(self, stack: str) -> bool:
        """Return whether a stack existed, or may have existed, when it was marked."""
        return self._marks[stack] is not None

    def first_cause(self, stack: str, words: Mapping[str, str]) -> Cause | None:
        """Return the first cause of a stack's failure since it was marked.

        Args:
            stack: Its name.
            words: Values of ``{file}``, ``{cluster}`` and ``{region}`` in the steps.

        Returns:
            None if no operation has started since the mark: CloudFormation was not called, or
            refused the template.

        Raises:
            UnansweredError: AWS did not answer, now or when the stack was marked.
        """
        events = self._events_since_mark(stack)
        status = next((event["ResourceStatus"] for event in events if is_stack(event)), None)
        failed = first_failure(reversed(events))
        if failed is None and status in (None, _REVIEW):
            return None
        if failed is not None:
            failed = refused_by_hook(failed, events) or failed
        return _cause(failed, status or "unknown", {**words, "stack": stack})

    def refused_properties(self, stack: str) -> tuple[str, ...]:
        """Return what CloudFormation's validation found in the last operation of a stack.

        Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/validate-stack-deployments.html

        Args:
            stack: Its name.

        Raises:
            UnansweredError: AWS did not answer.
        """
        events = self._account.ask_all(
            self._account.client("cloudformation").describe_events,
            lambda page: page["OperationEvents"],
            StackName=stack,
        )
        failed = [event for event in events if event.get("ValidationStatus") == "FAILED"]
        last = failed[0].get("OperationId") if failed else None
        return tuple(
            f"{event.get('LogicalResourceId', stack)}{event.get('ValidationPath', '')}: "
            f"{event.get('ValidationStatusReason', event.get('ValidationName', 'refused'))}"
            for event in failed
            if event.get("OperationId") == last
        )

    def left(self, stack: str) -> tuple[Left, ...]:
        """Return the resources that left a stack since it was marked, and still exist.

        CloudFormation completes an update even if it could not delete a replaced resource. Source:
        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html

        Args:
            stack: Its name.

        Raises:
            UnansweredError: AWS did not answer, now or when the stack was marked.
        """
        left: dict[str, Left] = {}
        for event in reversed(self._events_since_mark(stack)):
            id = event.get("PhysicalResourceId", "")
            if not id or is_stack(event):
                continue
            status, kind = event.get("ResourceStatus"), event["ResourceType"]
            kept = status == "DELETE_SKIPPED" and not kind.startswith(_CUSTOM)
            if kept or status == "DELETE_FAILED":
                reason = None if kept else reason_of(event)
                left[id] = Left(
                    resource=event["LogicalResourceId"], kind=kind, id=id, reason=reason
                )
            elif status == "DELETE_COMPLETE":
                left.pop(id, None)
        return tuple(left.values())

    def _events_since_mark(self, stack: str) -> "Sequence[Event]":
        """Return the events of a stack since it was marked, the newest first."""
        mark = self._marks[stack]
        if isinstance(mark, UnansweredError):
            raise mark
        if stack not in self._read:
            events = newest_first(self._account, stack)
            self._read[stack] = [*takewhile(lambda event: event["EventId"] != mark, events)]
        return self._read[stack]


def _cause(failed: "Event | None", status: str, words: Mapping[str, str]) -> Cause:
    reason = None if failed is None else reason_of(failed)
    after = IN_PROGRESS if status.endswith("_IN_PROGRESS") else STATUSES.get(status)
    steps = (what_to_do(reason) if reason is not None else None, after)
    resource = None if failed is None or is_stack(failed) else failed
    return Cause(
        resource=None if resource is None else resource["LogicalResourceId"],
        kind=None if resource is None else resource["ResourceType"],
        reason=reason,
        status=status,
        todo=tuple(step.format(**words) for step in steps if step is not None),
    )
