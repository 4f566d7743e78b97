"""Placement of gangs by AWS's network topology."""

from ultrascale.frozen import Frozen


class NodeScoringPlan(Frozen):
    """Search of Volcano's scheduler for a pod's node."""

    # Share of the nodes that are scored for a pod, in percent; None leaves it to Volcano, which
    # scores half of a small group and 5 percent of a large fleet.
    percent: int | None
    # Fewest nodes that are scored; None: 100, as Volcano has it. Without ``percent`` it counts in
    # groups alone that are no larger.
    least: int | None
    left_out: tuple[str, ...]  # Scores that count for nothing, by the key of their weight


class GangPlacement(Frozen):
    """Demand of a gang on the scheduler."""

    gang: str  # Templates of the file that are of this size, or what else it stands for
    pods: int  # Its pods, one for a node
    tier: int  # The lowest tier of HyperNodes whose groups hold it, 1 the lowest layer
    groups: int  # Groups of that tier in which it is tried
    placements: int  # Pods placed on trial: `pods` in each of `groups`
    seconds: float  # Time to its last bound pod on an empty fleet, as calculated
    formula: str  # The sum behind it
    measured: str  # The nearest figure that was measured
    aware: bool  # Whether its job asks to be placed by topology


class PlacementPlan(Frozen):
    """Placement by network topology."""

    nodes: int  # Nodes that HyperNodes hold
    candidates: int  # Nodes that are scored for a pod in a group of the next to lowest layer
    # The gangs of the file's templates; without any, some sizes for comparison.
    gangs: tuple[GangPlacement, ...]
