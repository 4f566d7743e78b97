"""Stacks, the time, and the end of a process, as a test of a teardown wants them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.fake_aws import ID
from ultrascale.plan.names import stack_description


class KilledError(BaseException):
    """The process ends here, and runs nothing of its own any more."""


@dataclass
class FakeClock:
    """A clock whose time passes only by waiting."""

    time: datetime = datetime(2026, 12, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class FakeStack:
    """A stack."""

    name: str  # Its name
    # Type, logical id, physical id, and whether it is retained
    resources: list[tuple[str, str, str, bool]]
    imports: tuple[str, ...] = ()  # Stacks that it imports from
    status: str = "CREATE_COMPLETE"  # Its state
    # Logical id of a resource that does not go, and why; None where all go
    stuck: tuple[str, str] | None = None
    protected: bool = False  # Whether its termination protection is on
    looks: int = 1  # How often one has to look until its deletion has ended
    cancelled: str = ""  # Logical id of a resource that is not tried any more; empty without one
    cluster: str = "research"  # The cluster that its description says it is of
    # What happened to it, the latest first
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def id(self) -> str:
        return f"arn:aws:cloudformation:us-west-2:{ID}:stack/{self.name}/1"

    @property
    def live(self) -> bool:
        return self.status != "DELETE_COMPLETE"

    def tell(self, logical: str, type: str, id: str, status: str, reason: str = "") -> None:
        event: dict[str, Any] = {
            "StackId": self.id,
            "EventId": str(len(self.events)),
            "StackName": self.name,
            "LogicalResourceId": logical,
            "PhysicalResourceId": id,
            "ResourceType": type,
            "ResourceStatus": status,
            "Timestamp": datetime(2026, 12, 1, tzinfo=UTC),
        }
        self.events.insert(0, event | ({"ResourceStatusReason": reason} if reason else {}))


def summary(stack: FakeStack) -> dict[str, Any]:
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "StackStatus": stack.status,
        "CreationTime": datetime(2026, 12, 1, tzinfo=UTC),
    }


def described(stack: FakeStack) -> dict[str, Any]:
    return summary(stack) | {
        "Description": stack_description(stack.cluster),
        "EnableTerminationProtection": stack.protected,
    }
