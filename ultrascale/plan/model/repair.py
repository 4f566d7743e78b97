"""Repair: what a broken node of a pool meets."""

from dataclasses import dataclass

from ultrascale.config import Repair


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """Repair of a broken node of a pool.

    Attributes:
        pool: Name of the pool in the cluster file.
        action: What may be done to it.
        decided_by: Controller that decides; empty where nobody does.
        meets: What happens to the node and its pods, in words.
        slot: What becomes of its slot in reserved capacity, in words; empty where none is reserved.
    """

    pool: str
    action: Repair
    decided_by: str
    meets: str
    slot: str
