"""Numbers of nodes, and what they cost in an hour."""

from collections.abc import Sequence

from ultrascale.catalog import prices


def hourly(nodes: int | None, instance_types: Sequence[str], region: str) -> float | None:
    """Return the On-Demand price of nodes, the highest among their types; None where unknown."""
    known = prices.on_demand(region, instance_types)
    if nodes is None or not instance_types or set(known) != set(instance_types):
        return None
    return nodes * max(known.values())


def number(value: object) -> int | None:
    """Return a count; None where it is only known when it is deployed."""
    try:
        return int(str(value))
    except ValueError:
        return None
