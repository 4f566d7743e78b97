"""Types of a teardown: its steps and their targets, things that stay, and searches for both."""

from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Literal, Protocol

from ultrascale.account import Account
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import LayerId, all_layers
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


# --- The steps of a teardown: stacks go in the reverse order of their deployment ------------------


class Phase(Frozen):
    """A step of every teardown, before it is planned for a cluster."""

    name: str  # Name of the step, by which the table of layers assigns stacks to it
    title: str  # Its purpose, for people
    minutes: int  # Time that each of its waves may take, in minutes

    @property
    def waves(self) -> tuple[tuple[LayerId, ...], ...]:
        """Layers of the phase by waves; a wave waits for the wave before."""
        return tuple(_waves(self.name))


def _waves(phase: str) -> Iterator[tuple[LayerId, ...]]:
    """Yield waves of layers that no remaining layer needs, until none is left."""
    layers: list[LayerId] = [
        id for id in reversed(tuple(all_layers())) if all_layers()[id].taken_down_in == phase
    ]
    goes_after: dict[LayerId, set[LayerId]] = {id: {*all_layers()[id].outlives} for id in layers}
    for id in layers:
        for needed in (*all_layers()[id].after, *all_layers()[id].after_if):
            if needed in goes_after:
                goes_after[needed].add(id)
    sorter = TopologicalSorter(goes_after)
    sorter.prepare()
    while sorter.is_active():
        wave = sorter.get_ready()
        sorter.done(*wave)
        yield tuple(sorted(wave, key=layers.index))


JOBS = Phase(name="jobs", title="stop jobs; their pods write a last checkpoint", minutes=60)
# CloudFormation waits five minutes at most for the nodes of a NodePool, and then goes on without
# them: they are waited for before. A node drains for as long as its terminationGracePeriod.
NODE_POOLS = Phase(
    name="node-pools",
    title="delete NodePools, wait until the last NodeClaim is gone",
    minutes=120,
)
NODES = Phase(
    name="node-groups",
    title="delete the stacks of node groups",
    minutes=90,
)
LOAD_BALANCERS = Phase(
    name="load-balancers",
    title="delete what load balancers belong to, while their controller runs",
    minutes=20,
)
PROVISIONERS = Phase(
    name="hyperpod",
    title="delete HyperPod: governance, then the cluster, then the chart",
    minutes=120,
)
PLATFORM = Phase(
    name="platform",
    title="delete controllers and what the platform made",
    minutes=60,
)
VOLUMES = Phase(
    name="volumes",
    title="delete claims and their volumes, while the driver runs",
    minutes=20,
)
ADDONS = Phase(
    name="add-ons",
    title="delete add-ons and system nodes",
    minutes=60,
)
CLUSTER = Phase(name="cluster", title="delete the EKS cluster", minutes=45)
REMAINS = Phase(
    name="remains",
    title="delete network interfaces and security groups that Kubernetes left in the VPC",
    minutes=20,
)
STORAGE = Phase(
    name="storage",
    title="delete for good what --delete-storage and --delete-logs name; no backup is made",
    minutes=120,
)
# Lambda gives the interfaces of functions back only after a while.
NETWORK = Phase(name="network", title="delete the VPC", minutes=90)
ENDPOINTS = "delete our endpoints in the VPC, which stays: it is not ours"
"""Purpose of the step `NETWORK` in a VPC that exists."""

PHASES = (
    JOBS,
    NODE_POOLS,
    NODES,
    LOAD_BALANCERS,
    PROVISIONERS,
    PLATFORM,
    VOLUMES,
    ADDONS,
    CLUSTER,
    REMAINS,
    STORAGE,
    NETWORK,
)
