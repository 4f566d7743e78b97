"""Changes that a deployment makes: to resources, to Kubernetes objects, to running nodes."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from ultrascale.catalog import prices
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen

Action = Literal[
    "added", "updated", "loses protection", "replaced", "may be replaced", "deleted", "kept"
]
Effect = Literal["replaces", "may replace", "is refused", "updates"]
Rolling = Literal["rolls", "may roll", "held", "new nodes", "ends"]
Verdict = Literal[
    "cannot be deployed",
    "loses data",
    "ends reserved nodes",
    "ends running nodes",
    "cuts running nodes off",
    "cuts running pods off",
    "outage",
    "loses history",
    "people lose access",
    "exposes",
    "unknown",
]
"""Reason to refuse a change."""


class Harm(Frozen):
    """Loss that a change causes."""

    verdict: Verdict  # Its kind
    lost: str  # Things that would be lost
    instead: str  # Advice for what to do instead


class PropertyChange(Frozen):
    """A property that changes."""

    path: str  # Its path, with `/` between the parts
    old: str  # Its deployed value, in short
    new: str  # Its new value, in short
    effect: Effect  # The effect of the change in CloudFormation
    why: str = ""  # Reason of the effect; empty where the change itself says it


class Change(Frozen):
    """A change of a resource, or of an object in the cluster."""

    stack: str  # Its stack
    logical_id: str  # Its logical id
    type: str  # Its type; of an object in the cluster ``Kubernetes::`` and its kind
    name: str  # Its name for people
    # The change. A `kept` resource leaves its stack and stays; one that `loses protection` is
    # updated, and nothing keeps it from loss any more.
    action: Action
    properties: tuple[PropertyChange, ...] = ()  # Its properties that change
    fails: str = ""  # Reason why CloudFormation could not make the change; empty where it could
    lost: str = ""  # Protected things that would be lost; empty without any
    verdict: Verdict = "loses data"  # Kind of the loss, where there is one
    instead: str = ""  # Advice for what to do instead; empty where nothing is lost
    # Settings that let somebody in, or end its logs or its encryption; each with its value
    # before and after.
    opens: tuple[str, ...] = ()
    note: str = ""  # What its reader should watch, though it needs no decision; empty without
    named: bool = False  # Whether the user permitted its loss and its openings by name

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Reasons to refuse the change; empty if the user permitted it by name."""
        reasons: dict[Verdict, object] = {
            "cannot be deployed": self.fails,
            self.verdict: self.lost,
            "exposes": self.opens,
        }
        return frozenset(verdict for verdict in reasons if reasons[verdict] and not self.named)

    def harmed(self, harm: Harm) -> "Change":
        """Return the change with a loss added."""
        return replace(self, verdict=harm.verdict, lost=harm.lost, instead=harm.instead)

    @property
    def protected(self) -> bool:
        """Whether the change must wait until the user permits it by name."""
        return bool(self.lost or self.opens) and not self.named

    @property
    def ids(self) -> tuple[str, ...]:
        """Names that ``--replace`` accepts for this change; the last name is unique."""
        if not self.type.startswith("Kubernetes::"):
            return (self.name, self.logical_id, f"{self.stack}/{self.logical_id}")
        # One resource of a stack applies many objects, of which each namespace may have one.
        bare = self.name.rpartition("/")[2]
        names = (self.name, self.logical_id, bare, f"{self.stack}/{bare}")
        return (*names, f"{self.stack}/{self.name}")


class RolledPool(Frozen):
    """Running nodes of one pool that a change concerns."""

    pool: str  # Their pool
    stack: str  # Stack that changes them
    # Whether they are replaced, may be, are held back by the pool's budget, stay until others are
    # launched, or end.
    rolling: Rolling
    nodes: int | None  # Largest number of them; None where it is unknown
    # Number that goes at the same time, in the words of the service that replaces them.
    at_once: str
    why: tuple[str, ...]  # The changes
    usd_per_hour: float | None  # Their On-Demand price together; None where no price is known
    lost: str = ""  # Things that would be lost; empty where its nodes may go
    instead: str = ""  # Advice for what to do instead; empty where nothing is lost
    named: bool = False  # Whether the user permitted the loss by the pool's name
    reserved: bool = True  # Whether capacity of theirs is paid on without them

    @property
    def protected(self) -> bool:
        """Whether the roll must wait until the user permits it by name."""
        return bool(self.lost) and not self.named

    @property
    def ids(self) -> tuple[str, ...]:
        """Names that ``--replace`` accepts for this pool."""
        return (self.pool, f"{self.stack}/{self.pool}")


class Changes(Frozen):
    """All changes of a deployment."""

    resources: tuple[Change, ...]  # Changes of resources and of objects
    pools: tuple[RolledPool, ...] = ()  # Running nodes that the deployment concerns
    new_stacks: tuple[str, ...] = ()  # Stacks that are not there yet
    # Stacks that left the file: `cdk deploy` leaves them as they are, with all that runs
    # in them.
    left_stacks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # Custom resources that could not be compared
    # Stacks that lose their termination protection: the CDK's command line takes it off.
    unprotected: tuple[str, ...] = ()

    @property
    def protected(self) -> tuple[Change | RolledPool, ...]:
        """Changes that the user has to permit by name."""
        return tuple(change for change in (*self.resources, *self.pools) if change.protected)

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Reasons to refuse the deployment."""
        verdicts: list[Verdict] = [
            verdict for change in self.resources for verdict in change.verdicts
        ]
        for pool in filter(lambda pool: pool.protected, self.pools):
            verdicts.append("ends reserved nodes" if pool.reserved else "ends running nodes")
        if self.unread:
            verdicts.append("unknown")
        return frozenset(verdicts)

    @property
    def is_safe(self) -> bool:
        """Whether nothing protected goes, and CloudFormation can make every change."""
        return not self.verdicts

    def permit(self, *names: str) -> "Changes":
        """Return the changes, with changes of ``names`` marked as permitted.

        Args:
            names: Resources and pools, each by a name, a logical id, or a stack and a logical id.

        Raises:
            QuestionError: A name stands for several things, or for nothing that goes.
        """
        mistakes = [line for name in names for line in self._mistakes(name)]
        if mistakes:
            raise QuestionError(mistakes)
        wanted = set(names)
        return replace(
            self,
            resources=tuple(
                replace(change, named=bool(wanted & set(change.ids))) for change in self.resources
            ),
            pools=tuple(
                replace(change, named=bool(wanted & set(change.ids))) for change in self.pools
            ),
        )

    def _mistakes(self, name: str) -> Iterator[str]:
        resources = [
            change.ids[-1] for change in self.resources if _stops(change) and name in change.ids
        ]
        pools = [change.ids[-1] for change in self.pools if change.lost and name in change.ids]
        # One object, or the nodes of one pool, may occur twice.
        going = [*dict.fromkeys(resources), *dict.fromkeys(pools)]
        if len(going) > 1:
            ids = ", ".join(going)
            yield f"--replace: {name} is the name of several; name the one that may go: {ids}"
        if not going:
            stopped = [change for change in self.resources if _stops(change)]
            ids = ", ".join(
                [
                    change.ids[-1]
                    for change in (*stopped, *(pool for pool in self.pools if pool.lost))
                ]
            )
            known = f"what is stopped is {ids}" if ids else "nothing is stopped; leave it out"
            yield f"--replace: nothing that is called {name} is stopped; {known}"


def hourly(nodes: int | None, instance_types: Sequence[str], region: str) -> float | None:
    """Return the On-Demand price of nodes in US dollars an hour; None if it is unknown.

    Of several instance types the dearest counts.
    """
    price = prices.on_demand(region, instance_types)
    return None if nodes is None or price is None else nodes * price


def _stops(change: Change) -> bool:
    return bool(change.lost or change.fails or change.opens)
