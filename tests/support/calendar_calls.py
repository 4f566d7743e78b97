"""The calls that the function behind the block calendar gets."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.support.calendar_services import RESERVATION

Clock = Callable[[datetime], None]

BEFORE = datetime(2026, 12, 1, 11, 29, tzinfo=UTC)
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
INSIDE = datetime(2026, 12, 3, 9, 0, tzinfo=UTC)
USABLE_END = datetime(2026, 12, 8, 10, 50, tzinfo=UTC)
NEXT_YEAR = datetime(2027, 12, 1, 11, 31, tzinfo=UTC)
MANAGED = {"Kind": "ManagedNodeGroup", "Cluster": "research", "Name": "train"}
SELF_MANAGED = {"Kind": "AutoScalingGroup", "Cluster": "research", "Name": "train-asg"}
NODE_POOL = {"Kind": "NodePool", "Cluster": "research", "Name": "train"}


NEXT_BLOCK = {
    "Window": {
        "Starts": "2026-12-10T11:30:00Z",
        "UsableUntil": "2026-12-12T10:50:00Z",
        "ReclaimedFrom": "2026-12-12T11:00:00Z",
        "Ends": "2026-12-12T11:30:00Z",
    },
    "Reservation": {"Id": "cr-11111111111111111"},
}


def entry(target: dict[str, str], size: int = 16) -> Any:
    """Return what a schedule calls the function with."""
    return {
        "Pool": "train",
        "Window": {
            "Starts": "2026-12-01T11:30:00Z",
            "UsableUntil": "2026-12-08T10:50:00Z",
            "ReclaimedFrom": "2026-12-08T11:00:00Z",
            "Ends": "2026-12-08T11:30:00Z",
        },
        "Size": str(size),
        "Reservation": {"Id": RESERVATION},
        "Target": target,
    }


def deploy(target: dict[str, str], kind: str = "Create", *, size_before: int | None = None) -> Any:
    """Return what CloudFormation calls it with; an update is one of a pool of ``size_before``."""
    request = {
        "RequestType": kind,
        "ResourceProperties": {"ServiceToken": "arn"} | entry(target),
        "PhysicalResourceId": "block-calendar-train",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "AtDeploy",
        "ResponseURL": "https://responses.example",
    }
    if kind == "Update":
        request["OldResourceProperties"] = entry(target, size_before or 16)
    return request
