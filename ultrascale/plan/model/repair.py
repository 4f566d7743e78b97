"""Repair of a pool's broken nodes."""

from ultrascale.config import Repair
from ultrascale.frozen import Frozen


class RepairPlan(Frozen):
    """Repair of a broken node of a pool."""

    pool: str  # Name of the pool in the cluster file
    action: Repair  # Its action
    decided_by: str  # Controller that decides; empty without one
    meets: str  # Effect on the node and its pods, in words
    # Effect on its slot in reserved capacity, in words; empty without a reservation.
    slot: str
