"""The end that EKS has set for a managed node group, compared with the end of its block.

EKS makes one scheduled action with the group. AWS says not to edit or delete it, but does not say
whether its time moves when a block is extended: at the old end it would empty a group that is still
paid for.

Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .decision import EKS_BEFORE_END, Window

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient

ACTION = "Amazon EKS Node Group Capacity Scaledown Before Reservation End"
"""Name of EKS's scheduled action."""
# Words of Auto Scaling in the cause of an activity.
# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-verify-scaling-activity.html
_BY_SCHEDULE = "scheduled action"
_TOLD_BEFORE = timedelta(days=1)
_ALIKE = timedelta(minutes=5)
_RECENT_ACTIVITIES = 20


class EarlyEndError(Exception):
    """Error: EKS will empty a node group before its block ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEnd:
    """EKS's scheduled action on a group."""

    at: datetime | None  # Time of the action, in UTC; None where the group has none
    fired: bool  # Whether the last change of the group was a scheduled action that took its nodes


@runtime_checkable
class EndedByEks(Protocol):
    """A target that EKS empties by a scheduled action."""

    def scheduled_end(self) -> ScheduledEnd:
        """Return EKS's scheduled action on the target."""
        ...


def read(autoscaling: "AutoScalingClient", groups: Sequence[str]) -> ScheduledEnd:
    """Return EKS's scheduled action on a node group.

    Args:
        autoscaling: Auto Scaling client.
        groups: Names of the Auto Scaling groups behind it.

    Raises:
        ClientError: Auto Scaling refused.
    """
    times: list[datetime] = []
    fired = False
    for name in groups:
        pages = autoscaling.get_paginator("describe_scheduled_actions").paginate(
            AutoScalingGroupName=name
        )
        times += [
            action["StartTime"]
            for page in pages
            for action in page["ScheduledUpdateGroupActions"]
            if action.get("ScheduledActionName") == ACTION and "StartTime" in action
        ]
        answer = autoscaling.describe_scaling_activities(
            AutoScalingGroupName=name, MaxRecords=_RECENT_ACTIVITIES
        )
        # The latest activity comes first.
        causes = [activity.get("Cause", "") for activity in answer["Activities"]]
        fired = fired or bool(causes and _BY_SCHEDULE in causes[0])
    return ScheduledEnd(at=min(times, default=None), fired=fired)


def refuse_early(end: ScheduledEnd, window: Window, *, now: datetime) -> None:
    """Raise an error if EKS's action comes within a day, and before the drain should begin.

    Args:
        end: EKS's scheduled action.
        window: Window of the block.
        now: The moment.

    Raises:
        EarlyEndError: The message says what to do.
    """
    if end.at is None or not end.at - _TOLD_BEFORE <= now < window.usable_until:
        return
    due = window.ends - EKS_BEFORE_END
    if due - end.at > _ALIKE:
        raise EarlyEndError(
            f"EKS empties the group at {end.at:%Y-%m-%d %H:%M}Z, and its block ends at "
            f"{window.ends:%Y-%m-%d %H:%M}Z: jobs end there, and the calendar fills the group "
            "again afterwards. Let jobs write a checkpoint before; do not edit the scheduled "
            f"action {ACTION!r}, and ask AWS Support to move it"
        )
