"""Words of the report: purchase options, subnets, states and lists."""

from collections.abc import Mapping, Sequence

from ultrascale.plan.model import LoadState, NeedState, PoolPart, SubnetKind

# No line ends within a count.
_SPACE = "\N{NO-BREAK SPACE}"

PURCHASES: Mapping[str, str] = {
    "on-demand": "On-Demand",
    "spot": "Spot",
    "odcr": "On-Demand Capacity Reservation",
    "capacity-block": "Capacity Block",
    "training-plan": "training plan",
}
"""Names of purchase options, as AWS writes them."""

SUBNETS: Mapping[SubnetKind, str] = {
    "public": "public",
    "control-plane": "control plane",
    "private": "private",
    "accelerated": "accelerated",
}

QUOTA_STATES: Mapping[NeedState, tuple[str, str]] = {
    "within": ("good", "the default holds it"),
    "agreed": ("good", "agreed"),
    "ask": ("warn", "ask for more"),
    "beyond": ("bad", "more than AWS publishes"),
    "unknown": ("plain", "look it up"),
}
"""Tone and words of a quota's state."""

LOAD_STATES: Mapping[LoadState, tuple[str, str]] = {
    "within": ("good", "published"),
    "agreed": ("good", "agreed"),
    "ask": ("warn", "ask for more"),
    "beyond": ("bad", "more than anybody published"),
    "unpublished": ("plain", ""),
}
"""Tone and words of the state of a part of the load."""


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names as a list that ends in a count where there are many."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and{_SPACE}{more}{_SPACE}more" if more > 0 else "")


def ranges(cidrs: Sequence[str]) -> str:
    """Return ranges as a list that ends in a count where there are many."""
    return listed(cidrs, 2)


def purchase_of(pool: PoolPart) -> str:
    """Return how a pool is bought, with its fallback."""
    name = PURCHASES.get(pool.purchase, pool.purchase)
    return f"{name}, then On-Demand" if pool.fallback_nodes else name
