"""The parts of a teardown: things that go, in steps, things that stay, and searches for both."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ultrascale.account import Account
from ultrascale.errors import UltrascaleError
from ultrascale.plan import ClusterPlan
from ultrascale.teardown.prices import Price

State = Literal["there", "going", "failed", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Thing:
    """Something that exists, in AWS or in Kubernetes.

    Attributes:
        kind: CloudFormation's name of a resource's type, or a kind of Kubernetes.
        id: Its name in its service; in Kubernetes, ``namespace/name`` or a name.
        note: Words that tell it from others, such as the capacity it holds; may be empty.
    """

    kind: str
    id: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The cluster that a search is for.

    Attributes:
        account: Its account.
        plan: The cluster.
        functions: Names of the Lambda functions that a teardown has deleted.
    """

    account: Account
    plan: ClusterPlan
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A resource that a search found.

    Attributes:
        thing: The resource.
        why: Reason why it is there.
        price: Its price; None where its kind alone says it.
        command: Command that deletes it; empty where its kind alone says it.
        prepaid: Whether it was paid for in advance.
        certain: Whether the search saw the resource itself: records of stacks and of tags outlive
            their resources.
    """

    thing: Thing
    why: str
    price: Price | None = None
    command: str = ""
    prepaid: bool = False
    certain: bool = True


Search = Callable[[Scope], Iterator[Found]]
"""Finds resources of a cluster in its account; raises `UnansweredError` where AWS refuses."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Left:
    """Something that a teardown leaves.

    Attributes:
        thing: The thing.
        why: Reason why it stays.
        price: Its price, with its unit; empty where no price is known.
        paid: Whether it costs money for as long as it is there.
        command: Command that removes it.
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
        what: The thing that does not go.
        why: The first real cause.
        fix: Advice for the user.
    """

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(f"{what}: {why}; {fix}")


class Target(Protocol):
    """One thing that is deleted by one request, with all that goes with it."""

    @property
    def thing(self) -> Thing:
        """The thing that is deleted, or waited for."""
        ...

    @property
    def things(self) -> Sequence[Thing]:
        """All that goes with it."""
        ...

    def look(self) -> State:
        """Return its state.

        Raises:
            StoppedError: Waiting does not help any more.
            UnansweredError: AWS did not answer.
            ClusterError: The API server did not answer.
        """
        ...

    def remove(self) -> None:
        """Ask for its deletion. A second request does no harm.

        Raises:
            StoppedError: It has changed since the plan was printed, or must not go.
        """
        ...

    def stuck(self) -> StoppedError:
        """Return why it does not go, once its deletion has failed or takes too long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a teardown.

    Attributes:
        name: Its name.
        title: Its purpose, for people.
        minutes: Time that each of its waves may take, in minutes.
        waves: Targets; those of a wave go at the same time, and a wave waits for the one before.
        stops: Obstacle at which it will stop, as far as the plan can see; empty without one.
    """

    name: str
    title: str
    minutes: int
    waves: tuple[tuple[Target, ...], ...]
    stops: str = ""

    @property
    def things(self) -> tuple[Thing, ...]:
        """All that goes in this step."""
        return tuple(thing for wave in self.waves for target in wave for thing in target.things)


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """The plan of a teardown: things that go, in order, and things that stay.

    Attributes:
        cluster: Name of the cluster.
        region: Its Region.
        account: Its account.
        steps: Steps that have something to do, in order.
        kept: Things that stay, and why.
        absent: Names that the user gave and nothing has.
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
