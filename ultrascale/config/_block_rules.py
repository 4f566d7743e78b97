"""What a Capacity Block demands of its window, its pool and the other pools."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, matrix
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config._reader import Part, lists, values
from ultrascale.config.pools import Nodes, Pool, Provisioner, Role
from ultrascale.config.purchase import CapacityBlock, Odcr, Purchase, Reservation

Mistakes = Iterator[Mistake]

_COPY = "copy both from the purchase"
_SHORTEST_USE = timedelta(minutes=10)


def block_lasts_as_long_as_blocks_do(starts: datetime, ends: datetime, extended: bool) -> Mistakes:
    """A block is sold by days, but starts when it starts: its window is up to a day off.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html
    """
    days = (ends - starts) / timedelta(days=1)
    possible, most = {math.floor(days), math.ceil(days)}, capacity_blocks.LONGEST_DAYS
    if days <= 0 or possible & capacity_blocks.DAYS:
        return
    wrong = f"a window of {days:g} days: Capacity Blocks last "
    if not possible & {*range(1, most + 1)}:
        yield refuse("ends", f"{wrong}1 to {most} days", _COPY)
    elif not extended:
        wrong += f"1 to {capacity_blocks.LONGEST_BY_THE_DAY} days, or whole weeks up to {most}"
        yield refuse("ends", wrong, f"{_COPY}, or add extended: true if it was extended")


def block_can_be_used(purchase: Purchase, instance_types: tuple[str, ...]) -> Mistakes:
    """The calendar launches nodes at the start, and drains them before EC2 takes them."""
    if not isinstance(purchase, CapacityBlock):
        return
    specs = [catalog.lookup(name) for name in instance_types]
    ultraserver = any(spec.knows("ultraserver") and spec.ultraserver for spec in specs)
    lost = capacity_blocks.reclaimed_before_end(ultraserver=ultraserver)
    lost += capacity_blocks.DRAINED_BEFORE_RECLAIM
    if timedelta() < purchase.ends - purchase.starts < lost + _SHORTEST_USE:
        minutes = lost // timedelta(minutes=1)
        wrong = f"nodes are drained {minutes} minutes before the end, so no time is left to use"
        yield refuse("purchase.ends", wrong, _COPY)


def block_ends_when_blocks_end(ends: datetime) -> Mistakes:
    if ends.time() != capacity_blocks.ENDS_AT:
        wrong = f"every Capacity Block ends at {capacity_blocks.ENDS_AT:%H:%M} UTC"
        yield refuse("ends", wrong, "copy it from the purchase")


def block_is_sold_for_the_type(purchase: Purchase, instance_types: tuple[str, ...]) -> Mistakes:
    for number, name in enumerate(instance_types if isinstance(purchase, CapacityBlock) else ()):
        if not catalog.lookup(name).capacity_block:
            wrong = "a type that no Capacity Block is sold for"
            yield refuse(f"instance_types.{number}", wrong, "use odcr or on-demand")


def block_is_whole(purchase: Purchase, placement_group: bool, shards: int) -> Mistakes:
    if not isinstance(purchase, CapacityBlock):
        return
    if placement_group:
        wrong = "a Capacity Block cannot be in a placement group"
        yield refuse(
            "placement_group", wrong, "leave it out; a block is in one UltraCluster anyway"
        )
    if shards > 1:
        wrong = "a Capacity Block serves one pool"
        yield refuse("shards", wrong, "leave it out, and add a pool for each block")


def block_holds_the_nodes(
    purchase: Purchase, nodes: Nodes, instance_types: tuple[str, ...]
) -> Mistakes:
    if not isinstance(purchase, CapacityBlock):
        return
    specs = [catalog.lookup(name) for name in instance_types]
    servers = [server for spec in specs if spec.knows("ultraserver") for server in spec.ultraserver]
    most, whole = capacity_blocks.MOST_INSTANCES, "a Capacity Block"
    if servers:
        # Each UltraServer is a block of its own.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
        largest = max(servers, key=lambda server: server.instances)
        most, whole = largest.instances, f"the Capacity Block of one {largest.name}"
    key, count = nodes.upper_count
    if count > most:
        wrong = f"more nodes than {whole} has instances"
        todo = f"write at most {most}, and add a pool for each further block"
        yield refuse(f"nodes.{key}", wrong, todo)


def block_has_no_minimum(provisioner: Provisioner, purchase: Purchase, nodes: Nodes) -> Mistakes:
    grouped = provisioner in matrix.NODE_GROUPS
    if grouped and isinstance(purchase, CapacityBlock) and nodes.static is None and nodes.min > 0:
        wrong = "a Capacity Block has no nodes outside its window, so there is no minimum"
        yield refuse("nodes.min", wrong, "leave it out; within the window there are nodes.max")


def block_is_not_for_controllers(role: Role, purchase: Purchase) -> Mistakes:
    if role == "system" and isinstance(purchase, CapacityBlock):
        wrong = "a system pool that is there within a window only"
        yield refuse("purchase.option", wrong, "use on-demand")


def reservations_are_not_shared(parts: tuple[Part, ...]) -> Mistakes:
    """A block serves one pool, and every reservation is of one type in one zone."""
    seen: dict[str, tuple[Part, Reservation]] = {}
    for part, purchase in _reserved(parts):
        if purchase.reservation is None:
            continue
        first, other = seen.setdefault(purchase.reservation, (part, purchase))
        if first is part:
            continue
        at = (*part.at, "purchase", "reservation")
        theirs = ".".join(str(key) for key in first.at)
        if isinstance(purchase, CapacityBlock) or isinstance(other, CapacityBlock):
            wrong = f"the reservation of {theirs} too, and a Capacity Block serves one pool"
            yield Mistake(at, wrong, "name each pool's own block")
        elif _could_be_one(first, part) is False:
            wrong = f"the reservation of {theirs} too, which has another type or zone"
            yield Mistake(at, wrong, "name each pool's own reservation")


def selectors_find_one_block(parts: tuple[Part, ...]) -> Mistakes:
    """Karpenter fills one of several blocks of a type and zone, and fails for the others.

    Source: https://github.com/aws/karpenter-provider-aws/issues/8514
    """
    blocks = [
        (part, purchase.reservation_tags.items())
        for part, purchase in _reserved(parts)
        if isinstance(purchase, CapacityBlock) and purchase.reservation_tags is not None
    ]
    for number, (part, tags) in enumerate(blocks):
        for first, others in blocks[:number]:
            # Whatever carries the longer list of tags carries the shorter one too.
            if _could_be_one(first, part) and (tags <= others or tags >= others):
                theirs = ".".join(str(key) for key in first.at)
                wrong = f"tags that find the Capacity Block of {theirs} too"
                todo = "tag each block apart, or name each by reservation"
                yield Mistake((*part.at, "purchase", "reservation_tags"), wrong, todo)
                break


def _reserved(parts: tuple[Part, ...]) -> Iterator[tuple[Part, Odcr | CapacityBlock]]:
    at = {part.at: part for part in parts if part.kind is Pool}
    for where, purchase in values(parts, Pool, "purchase", Reservation):
        if isinstance(purchase, Odcr | CapacityBlock):
            yield at[where], purchase


def _could_be_one(first: Part, second: Part) -> bool | None:
    """Return whether two pools share a type and a zone; None where that cannot be read."""
    shared: list[bool] = []
    for field in ("instance_types", "zones"):
        found = [set(items) for _, items in lists((first, second), Pool, field)]
        if len(found) < 2:
            return None
        shared.append(bool(found[0] & found[1]))
    return all(shared)
