"""Nodes that somebody has to renew: who is on an older template, how one ends, who follows.

Nothing here launches a node: Karpenter or the Auto Scaling group brings a successor once an old
one has gone, so that there are never more than the reservation holds.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from ultrascale.jobs.fields import Object, name
from ultrascale.operate.nodes import unfit
from ultrascale.plan.model import PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """A node that is launched from an older template.

    Attributes:
        id: Its NodeClaim, or its EC2 instance.
        node: Its name in Kubernetes; empty where it has not joined.
    """

    id: str
    node: str


class Fleet(Protocol):
    """The nodes of one pool."""

    @property
    def pause_seconds(self) -> float:
        """How long nobody knows yet whether a node that has ended gets a successor."""
        ...

    def old(self) -> Sequence[Old]:
        """Return the nodes on an older template, the oldest first."""
        ...

    def end(self, old: Old) -> None:
        """End a node that is drained, unless it is gone or going."""
        ...

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which of them are still there; or nothing."""
        ...

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing.

        Args:
            old: Those that are still to be renewed.
            broken: How many others may be missing or take no work.
        """
        ...

    def trouble(self) -> str:
        """Return why a successor does not come; or nothing."""
        ...


def still_there(there: Sequence[str], kind: str) -> str:
    """Return which of several are waited for to be gone; or nothing."""
    if not there:
        return ""
    more = f" and {len(there) - 1} more" if len(there) > 1 else ""
    return f"{kind} {there[0]}{more} to be gone"


def missing(
    nodes: Sequence[Object], old: Set[str], due: int, pool: PoolPlan, about: str, *, broken: int
) -> str:
    """Return what is missing until all of ``due`` nodes beside the old take work, but ``broken``.

    Old ones may be cordoned: by a run that was broken off.
    """
    fresh = [each for each in nodes if name(each) not in old]
    reasons = [f"{name(each)} is {why}" for each in fresh if (why := unfit(each, pool))]
    ready = len(fresh) - len(reasons)
    if len(fresh) <= due and due - ready <= broken:
        return ""
    why = f": {reasons[0]}" if reasons else ""
    return f"{about}: {ready} of {due} new nodes ready{why}"
