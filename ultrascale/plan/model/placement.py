"""Placement of gangs by AWS's network topology."""

from typing import ClassVar

from ultrascale.frozen import Frozen


class GangPlacement(Frozen):
    """Demand of a gang on the scheduler."""

    gang: str  # Templates of the file with this size, or other words for it
    pods: int  # Its pods, one for a node
    tier: int  # The lowest tier of HyperNodes whose groups hold it, 1 the lowest layer
    groups: int  # Groups of that tier in which the scheduler tries it
    placements: int  # Pods placed on trial: `pods` in each of `groups`
    seconds: float  # Time to its last bound pod on an empty fleet, as calculated
    formula: str  # Formula of that time
    measured: str  # The nearest measured figure
    aware: bool  # Whether its job asks for placement by topology


class PlacementPlan(Frozen):
    """Placement by network topology, and its largest measured fleet."""

    source: ClassVar[str] = ""  # Method of the measurement
    most_nodes: ClassVar[int] = 0  # Nodes of the largest fleet that gangs were placed in

    nodes: int  # Nodes that HyperNodes hold
    candidates: int  # Nodes that are scored for a pod in a group of the next to lowest layer
    # The gangs of the file's templates; without any, some sizes for comparison.
    gangs: tuple[GangPlacement, ...]

    @property
    def beyond(self) -> str:
        """Reason that no gang is placed in a fleet larger than any, and the remedy."""
        return ""
