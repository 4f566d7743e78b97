"""Why a stack failed, and what it left: the events of the operation that was just made.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/determine-root-cause-for-stack-failures.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from ultrascale.catalog.deploy_failures import IN_PROGRESS, STATUSES, what_to_do
from ultrascale.deploy.stack_events import (
    Event,
    first_failure,
    is_stack,
    newest_first,
    reason_of,
    refused_by_hook,
)
from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    # It brings boto3, which is slow to import.
    from ultrascale.account import Account

_REVIEW = "REVIEW_IN_PROGRESS"
# Of a function of the stack's own: what it keeps are objects in the cluster.
_CUSTOM = "Custom::"


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
            newest = next(newest_first(self._account, stack), None)
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
        status = next((each["ResourceStatus"] for each in events if is_stack(each)), None)
        failed = first_failure(reversed(events))
        if failed is None and status in (None, _REVIEW):
            return None
        if failed is not None:
            failed = refused_by_hook(failed, events) or failed
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
            if not id or is_stack(event):
                continue
            status, kind = event.get("ResourceStatus"), event["ResourceType"]
            kept = status == "DELETE_SKIPPED" and not kind.startswith(_CUSTOM)
            if kept or status == "DELETE_FAILED":
                reason = None if kept else reason_of(event)
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
            events = newest_first(self._account, stack)
            self._read[stack] = [*takewhile(lambda each: each["EventId"] != mark, events)]
        return self._read[stack]


def _cause(failed: Event | None, status: str, words: Mapping[str, str]) -> Cause:
    reason = None if failed is None else reason_of(failed)
    after = IN_PROGRESS if status.endswith("_IN_PROGRESS") else STATUSES.get(status)
    found = (what_to_do(reason) if reason is not None else None, after)
    one = None if failed is None or is_stack(failed) else failed
    return Cause(
        resource=None if one is None else one["LogicalResourceId"],
        kind=None if one is None else one["ResourceType"],
        reason=reason,
        status=status,
        todo=tuple(each.format(**words) for each in found if each is not None),
    )
