"""Sizes in which AWS sells nodes: up to 64 single instances, and whole UltraServers."""

from ultrascale import catalog
from ultrascale.catalog import UltraServer, capacity_blocks
from ultrascale.frozen import Frozen


class Size(Frozen):
    """A size of one purchase."""

    count: int  # Its nodes
    pieces: int  # Number of purchases of this size
    ultraserver: UltraServer | None = None  # Its UltraServer; None for single instances
    ultraservers: int = 0  # Number of UltraServers; 0 for single instances


def sizes(instance_type: str, count: int) -> tuple[Size, ...]:
    """Return the sizes in which ``count`` nodes are sold.

    AWS sells at most 64 single instances at once. Of UltraServers it sells only whole ones, so the
    sizes may hold more nodes than requested.

    Args:
        instance_type: EC2 name.
        count: Nodes.
    """
    spec = catalog.lookup(instance_type)
    if spec.knows("ultraserver") and spec.ultraserver:
        whole = [(server, -(-count // server.instances)) for server in spec.ultraserver]
        return tuple(
            Size(count=number * server.instances, pieces=1, ultraserver=server, ultraservers=number)
            for server, number in whole
        )
    full, rest = divmod(count, capacity_blocks.MOST_INSTANCES)
    full_sizes = [Size(count=capacity_blocks.MOST_INSTANCES, pieces=full)] if full else []
    return (*full_sizes, *([Size(count=rest, pieces=1)] if rest else []))


def size_remark(instance_type: str, count: int) -> str | None:
    """Return a remark on the sizes of ``count`` nodes; None if one purchase is enough."""
    needed = sizes(instance_type, count)
    if needed[0].ultraserver is not None:
        ways = " or ".join(
            f"{size.ultraservers} x {size.ultraserver.name} ({size.count} nodes)"
            for size in needed
            if size.ultraserver is not None
        )
        return f"{instance_type} is sold in whole UltraServers: {ways}"
    pieces = sum(size.pieces for size in needed)
    if pieces == 1:
        return None
    listed = " and ".join(f"{size.pieces} of {size.count}" for size in needed)
    return (
        f"{count} x {instance_type} are bought in {pieces} pieces, {listed}: an offer is of one "
        "piece, and EFA reaches all of them in the same zone only"
    )
