"""Placement of gangs by AWS's network topology."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeScoringPlan:
    """Search of Volcano's scheduler for a pod's node.

    Attributes:
        percent: Share of the nodes that are scored for a pod, in percent; None leaves it to
            Volcano, which scores half of a small group and 5 percent of a large fleet.
        least: Fewest nodes that are scored; None: 100, as Volcano has it. Without ``percent`` it
            counts in groups alone that are no larger.
        left_out: Scores that count for nothing, by the key of their weight.
    """

    percent: int | None
    least: int | None
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPlacement:
    """Demand of a gang on the scheduler.

    Attributes:
        gang: Templates of the file that are of this size, or what else it stands for.
        pods: Its pods, one for a node.
        tier: The lowest tier of HyperNodes whose groups hold it, 1 the lowest layer.
        groups: Groups of that tier in which it is tried.
        placements: Pods placed on trial: `pods` in each of `groups`.
        seconds: Time to its last bound pod on an empty fleet, as calculated.
        formula: The sum behind it.
        measured: The nearest figure that was measured.
        aware: Whether its job asks to be placed by topology.
    """

    gang: str
    pods: int
    tier: int
    groups: int
    placements: int
    seconds: float
    formula: str
    measured: str
    aware: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """Placement by network topology.

    Attributes:
        nodes: Nodes that HyperNodes hold.
        candidates: Nodes that are scored for a pod in a group of the next to lowest layer.
        gangs: The gangs of the file's templates; without any, some sizes for comparison.
    """

    nodes: int
    candidates: int
    gangs: tuple[GangPlacement, ...]
