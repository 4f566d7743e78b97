"""Sizes in which nodes are sold: single instances up to 64, and whole UltraServers."""

from dataclasses import dataclass

from ultrascale import catalog
from ultrascale.catalog import UltraServer, capacity_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A size to ask for.

    Attributes:
        count: Its nodes.
        pieces: Number of purchases of this size.
        ultraserver: Its UltraServer; None for single instances.
        ultraservers: Number of UltraServers; 0 for single instances.
    """

    count: int
    pieces: int
    ultraserver: UltraServer | None = None
    ultraservers: int = 0


def sizes(instance_type: str, count: int) -> tuple[Size, ...]:
    """Return the sizes in which ``count`` nodes are sold.

    AWS sells at most 64 single instances at once. It sells whole UltraServers, so there may be more
    nodes than requested.

    Args:
        instance_type: EC2 name.
        count: Nodes.
    """
    spec = catalog.lookup(instance_type)
    if spec.knows("ultraserver") and spec.ultraserver:
        whole = [(each, -(-count // each.instances)) for each in spec.ultraserver]
        return tuple(
            Size(count=number * each.instances, pieces=1, ultraserver=each, ultraservers=number)
            for each, number in whole
        )
    full, rest = divmod(count, capacity_blocks.MOST_INSTANCES)
    found = [Size(count=capacity_blocks.MOST_INSTANCES, pieces=full)] if full else []
    return (*found, *([Size(count=rest, pieces=1)] if rest else []))


def size_remark(instance_type: str, count: int) -> str | None:
    """Return a remark on the sizes of ``count`` nodes; None where one purchase is enough."""
    found = sizes(instance_type, count)
    if found[0].ultraserver is not None:
        ways = " or ".join(
            f"{size.ultraservers} x {size.ultraserver.name} ({size.count} nodes)"
            for size in found
            if size.ultraserver is not None
        )
        return f"{instance_type} is sold in whole UltraServers: {ways}"
    pieces = sum(size.pieces for size in found)
    if pieces == 1:
        return None
    each = " and ".join(f"{size.pieces} of {size.count}" for size in found)
    return (
        f"{count} x {instance_type} are bought in {pieces} pieces, {each}: an offer is of one "
        "piece, and EFA reaches all of them in the same zone only"
    )
