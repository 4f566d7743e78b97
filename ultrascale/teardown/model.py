"""Types of a teardown: its steps and their targets, things that stay, and searches for both."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from ultrascale.account import Account
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan
from ultrascale.teardown.prices import Price

State = Literal["there", "going", "failed", "gone"]


class Thing(Frozen, order=True):
    """A resource of AWS, or an object of Kubernetes."""

    kind: str  # CloudFormation's name of a resource's type, or a kind of Kubernetes
    id: str  # Its name in its service; in Kubernetes, ``namespace/name`` or a name
    note: str = ""  # Words that distinguish it, such as the capacity it holds; may be empty

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + (f" ({self.note})" if self.note else "")


class Scope(Frozen):
    """The cluster whose resources a search looks for."""

    account: Account  # Its account
    plan: ClusterPlan  # The cluster
    # Names of the Lambda functions that a teardown has deleted.
    functions: frozenset[str] = frozenset()


class Found(Frozen):
    """A resource that a search has found."""

    thing: Thing  # The resource
    why: str  # Reason why it is there
    price: Price | None = None  # Its price; None where its kind fixes it
    command: str = ""  # Command that deletes it; empty where its kind fixes it
    prepaid: bool = False  # Whether it was paid for in advance
    # Whether the search saw the resource itself: records of stacks and of tags outlive their
    # resources.
    certain: bool = True


Search = Callable[[Scope], Iterator[Found]]
"""Function that yields a cluster's resources in its account; raises `UnansweredError` if AWS
refuses.
"""


class Left(Frozen, order=True):
    """A thing that a teardown leaves."""

    thing: Thing  # The thing
    why: str  # Reason why it stays
    command: str  # Command that removes it
    price: str = ""  # Its price, with its unit; empty where no price is known
    paid: bool = True  # Whether it costs money for as long as it is there
    asked: bool = False  # Whether the plan says that it stays; else it is an orphan
    usd_per_hour: float = 0  # The price in US dollars an hour; 0 where unknown


class StoppedError(UltrascaleError):
    """A step of a teardown cannot go on; the next run of the command begins at this step.

    Attributes:
        what: The thing that does not go.
        why: The first real cause.
        fix: Advice for the user.
    """

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(f"{what}: {why}; {fix}")


class Target(Protocol):
    """A thing that one request deletes, with everything that goes with it."""

    @property
    def thing(self) -> Thing:
        """The thing that is deleted, or waited for."""
        ...

    @property
    def things(self) -> Sequence[Thing]:
        """Everything that goes with the deletion."""
        ...

    def look(self) -> State:
        """Return the state of the thing.

        Raises:
            StoppedError: Waiting does not help any more.
            UnansweredError: AWS did not answer.
            ClusterError: The API server did not answer.
        """
        ...

    def remove(self) -> None:
        """Ask for the deletion. A second request does no harm.

        Raises:
            StoppedError: The thing has changed since the plan was printed, or must not go.
        """
        ...

    def stuck(self) -> StoppedError:
        """Return why the thing stays, once its deletion has failed or takes too long."""
        ...


class Step(Frozen):
    """A step of a teardown."""

    name: str  # Its name
    title: str  # Its purpose, for people
    minutes: int  # Time that each of its waves may take, in minutes
    # Targets: a wave's targets go at the same time, and a wave waits for the wave before.
    waves: tuple[tuple[Target, ...], ...]
    stops: str = ""  # Obstacle at which it will stop, as far as the plan can see; empty without one

    @property
    def things(self) -> tuple[Thing, ...]:
        """All things that go in this step."""
        return tuple(thing for wave in self.waves for target in wave for thing in target.things)


class Teardown(Frozen):
    """The plan of a teardown: things that go, in order, and things that stay."""

    cluster: str  # Name of the cluster
    region: str  # Its Region
    account: str  # Its account
    steps: tuple[Step, ...]  # Steps that have something to do, in order
    kept: tuple[Left, ...]  # Things that stay, and why
    absent: tuple[str, ...] = ()  # Names that the user gave, and that no resource has

    @property
    def things(self) -> frozenset[Thing]:
        """All things that go."""
        return frozenset(thing for step in self.steps for thing in step.things)
