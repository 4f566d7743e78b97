"""What a teardown consists of: things that go, in steps, and things that stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ultrascale.errors import UltrascaleError

State = Literal["there", "going", "failed", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Thing:
    """Something that exists, in AWS or in Kubernetes.

    Attributes:
        kind: What it is: CloudFormation's name of a resource's type, or a kind of Kubernetes.
        id: What its service calls it; of Kubernetes, ``namespace/name`` or a name.
        note: What else tells it from others, such as the capacity it holds; may be empty.
    """

    kind: str
    id: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Left:
    """Something that a teardown leaves.

    Attributes:
        thing: What it is.
        why: Why it stays.
        price: What it costs, with its unit; empty where no price is known.
        paid: Whether it is charged for as long as it is there.
        command: What removes it.
        asked: Whether the plan says that it stays; else it is an orphan.
        usd_per_hour: The price, where it follows from the thing alone.
    """

    thing: Thing
    why: str
    command: str
    price: str = ""
    paid: bool = True
    asked: bool = False
    usd_per_hour: float = 0


class StoppedError(UltrascaleError):
    """A step cannot go on. The next run of the same command begins where this one stopped.

    Attributes:
        what: What does not go.
        why: The first real cause.
        fix: What to do.
    """

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(f"{what}: {why}; {fix}")


class Target(Protocol):
    """One thing that is deleted by one request, with all that goes with it."""

    @property
    def thing(self) -> Thing:
        """What is deleted, or waited for."""
        ...

    @property
    def things(self) -> Sequence[Thing]:
        """All that goes with it."""
        ...

    def look(self) -> State:
        """Return how far its deletion is.

        Raises:
            StoppedError: Something has come that waiting does not end.
            UnansweredError: Nobody could tell.
            ClusterError: The API server did not answer.
        """
        ...

    def remove(self) -> None:
        """Ask for its deletion. To ask twice does no harm.

        Raises:
            StoppedError: It has changed since the plan was printed, or must not go.
        """
        ...

    def stuck(self) -> StoppedError:
        """Return why it does not go, once its deletion has failed or takes too long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What goes together.

    Attributes:
        name: Its name.
        title: What it does.
        minutes: Time that each of its waves may take, in minutes.
        waves: Targets; those of a wave go at the same time, and a wave waits for the one before.
        stops: What it will stop at, as far as the plan can see; empty where nothing is seen.
    """

    name: str
    title: str
    minutes: int
    waves: tuple[tuple[Target, ...], ...]
    stops: str = ""

    @property
    def things(self) -> tuple[Thing, ...]:
        """All that goes in this step."""
        return tuple(thing for wave in self.waves for each in wave for thing in each.things)


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """The plan: what goes in which order, and what stays.

    Attributes:
        cluster: Name of the cluster.
        region: Its Region.
        account: Its account.
        steps: Steps that have something to do, in order.
        kept: What stays, and why.
        absent: Names of what was asked for to go and is not there.
    """

    cluster: str
    region: str
    account: str
    steps: tuple[Step, ...]
    kept: tuple[Left, ...]
    absent: tuple[str, ...] = ()

    @property
    def things(self) -> frozenset[Thing]:
        """All that goes."""
        return frozenset(thing for step in self.steps for thing in step.things)
