"""Repair: what a broken node of a pool meets."""

from ultrascale.config import Repair
from ultrascale.frozen import Frozen


class RepairPlan(Frozen):
    """Repair of a broken node of a pool."""

    pool: str  # Name of the pool in the cluster file
    action: Repair  # What may be done to it
    decided_by: str  # Controller that decides; empty where nobody does
    meets: str  # What happens to the node and its pods, in words
    # What becomes of its slot in reserved capacity, in words; empty where none is reserved.
    slot: str
