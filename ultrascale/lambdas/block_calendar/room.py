"""Nodes that a static NodePool can have now: running nodes, and the reservation's free instances.

A static NodePool launches `replicas` nodes without looking at its reservation. If that has
fewer, Karpenter creates and deletes NodeClaims without end, and provisions no other pool meanwhile.

Source: https://github.com/kubernetes-sigs/karpenter/issues/3198
"""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from .reservation import Block

# A launch takes an instance of the reservation some seconds before its NodeClaim names it.
_SECONDS_OF_A_LAUNCH = 20


class CapacityShortError(Exception):
    """The reservation has fewer instances than the pool is to have."""


@runtime_checkable
class Counted(Protocol):
    """A target that launches without looking at its reservation, and counts its running nodes."""

    def running(self) -> int:
        """Return its nodes that have an instance and keep it."""
        ...

    def given(self) -> int | None:
        """Return the size that the calendar gave it last; None where it gave none."""
        ...


def room(
    target: Counted,
    *,
    wanted: int,
    current: int,
    free: int | None,
    again: Callable[[], Block],
) -> int:
    """Return the nodes that ``target`` can have now, ``wanted`` at most.

    One look never takes a node from a target: EC2 is the first to see a launch under way.

    Args:
        target: The NodePool.
        wanted: Nodes that it is to have.
        current: Nodes that it asks for now.
        free: Instances that its reservation still takes, read just before; None where EC2 does not
            say.
        again: Asks EC2 for the reservation again.
    """
    found = _look(target, wanted, free)
    if found < min(current, wanted):
        _sleep(_SECONDS_OF_A_LAUNCH)
        found = max(found, _look(target, wanted, again().available))
    return found


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _look(target: Counted, wanted: int, free: int | None) -> int:
    # EC2 is asked first: a launch between the two questions then counts twice rather than never.
    return wanted if free is None else min(wanted, target.running() + free)
