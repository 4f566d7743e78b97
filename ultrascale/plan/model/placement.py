"""Placement of gangs by AWS's network topology."""

from typing import ClassVar

from ultrascale.frozen import Frozen


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
    """Placement by network topology, and how far a scheduler was seen to do it."""

    source: ClassVar[str] = ""  # How that was measured
    most_nodes: ClassVar[int] = 0  # Nodes of the largest fleet that gangs were placed in

    nodes: int  # Nodes that HyperNodes hold
    candidates: int  # Nodes that are scored for a pod in a group of the next to lowest layer
    # The gangs of the file's templates; without any, some sizes for comparison.
    gangs: tuple[GangPlacement, ...]

    @property
    def beyond(self) -> str:
        """Reason that no gang is placed in a fleet larger than any, and the remedy."""
        return ""
