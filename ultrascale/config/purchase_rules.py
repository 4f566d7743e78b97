"""Rules of a purchase: its keys, its pool and the purchases of other pools."""

import math
from collections.abc import Sequence
from datetime import timedelta

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, matrix, regions, spot, training_plans
from ultrascale.config._errors import Mistake, Mistakes, refuse
from ultrascale.config._parts import Placed, Readable
from ultrascale.config._rules import rule
from ultrascale.config.identity import Identity
from ultrascale.config.network import Network
from ultrascale.config.pool_rules import yaml_list
from ultrascale.config.pools import Pool, node_pools_of, zones_of
from ultrascale.config.purchase import (
    CapacityBlock,
    Odcr,
    Purchase,
    Reservation,
    Spot,
    TrainingPlan,
)

_COPY = "copy the purchase's times"
_SHORTEST_USE = timedelta(minutes=10)
# Source: the CRD of https://karpenter.sh/docs/concepts/nodeclasses/
_MOST_SELECTOR_TAGS = 20


@rule
def window_has_a_length(purchase: CapacityBlock | TrainingPlan) -> Mistakes:
    if purchase.starts >= purchase.ends:
        yield refuse("ends", "not after starts", _COPY)


@rule
def fees_pay_to_the_end(purchase: CapacityBlock | TrainingPlan) -> Mistakes:
    """Yield fees that leave time of the window without one, or pay for other times."""
    edges = [purchase.starts, *(fee.until or purchase.ends for fee in purchase.fee)]
    if purchase.fee and (edges[-1] != purchase.ends or edges != sorted({*edges})):
        wrong = "its times do not lead from starts to ends, one after the other"
        yield refuse("fee", wrong, "write the purchase first, and each extension after it")


@rule
def fees_are_in_cents(purchase: CapacityBlock | TrainingPlan) -> Mistakes:
    if any(round(fee.usd, 2) != fee.usd for fee in purchase.fee):
        yield refuse("fee", "more exact than a cent", "write the amount that was charged")


@rule
def block_lasts_as_long_as_blocks_do(block: CapacityBlock) -> Mistakes:
    """Yield a window of a length that no block has; a block is sold by days, and starts a day off.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html
    """
    days = (block.ends - block.starts) / timedelta(days=1)
    possible, most = {math.floor(days), math.ceil(days)}, capacity_blocks.LONGEST_DAYS
    if days <= 0 or possible & capacity_blocks.DAYS:
        return
    wrong = f"a window of {days:g} days: Capacity Blocks last "
    if not possible & {*range(1, most + 1)}:
        yield refuse("ends", f"{wrong}1 to {most} days", _COPY)
    elif not block.extended:
        wrong += f"1 to {capacity_blocks.LONGEST_BY_THE_DAY} days, or whole weeks up to {most}"
        yield refuse("ends", wrong, f"{_COPY}, or add extended: true if it was extended")


@rule
def plan_lasts_as_long_as_plans_do(plan: TrainingPlan) -> Mistakes:
    days = (plan.ends - plan.starts) / timedelta(days=1)
    most = training_plans.LONGEST_DAYS
    if plan.extended:
        most *= 2  # an extension is no longer than a plan
    if days > most:
        wrong = f"a window of {days:g} days: training plans last 1 to {most} days"
        todo = _COPY if plan.extended else f"{_COPY}, or add extended: true if it was extended"
        yield refuse("ends", wrong, todo)


@rule
def plan_ends_when_plans_end(plan: TrainingPlan) -> Mistakes:
    if plan.ends.time() != training_plans.ENDS_AT:
        wrong = f"every training plan ends at {training_plans.ENDS_AT:%H:%M} UTC"
        yield refuse("ends", wrong, "copy it from the purchase")


@rule
def plan_is_sold_for_the_type(pool: Pool) -> Mistakes:
    for number, name in enumerate(
        pool.instance_types if isinstance(pool.purchase, TrainingPlan) else ()
    ):
        spec = catalog.lookup(name)
        if spec.lacks_training_plans:
            wrong = "a type that no training plan is sold for"
            yield refuse(f"instance_types.{number}", wrong, "use on-demand, or another type")


@rule
def spot_is_sold_for_the_type(pool: Pool) -> Mistakes:
    for number, name in enumerate(pool.instance_types if isinstance(pool.purchase, Spot) else ()):
        if not spot.is_sold(name):
            wrong = "a type that EC2 does not sell as Spot"
            yield refuse(f"instance_types.{number}", wrong, "use capacity-block or odcr")


@rule
def block_ends_when_blocks_end(block: CapacityBlock) -> Mistakes:
    if block.ends.time() != capacity_blocks.ENDS_AT:
        wrong = f"every Capacity Block ends at {capacity_blocks.ENDS_AT:%H:%M} UTC"
        yield refuse("ends", wrong, "copy it from the purchase")


@rule
def selector_is_short(reservation: Reservation) -> Mistakes:
    count = len(reservation.reservation_tags or ())
    if count > _MOST_SELECTOR_TAGS:
        wrong = "more tags than a node class selects by"
        todo = f"write at most {_MOST_SELECTOR_TAGS}"
        yield refuse("reservation_tags", wrong, todo, got=f"{count} tags")


@rule
def reservation_is_named_once(pool: Pool) -> Mistakes:
    """Refuse a reservation that no key names, or several do."""
    if not isinstance(pool.purchase, Reservation):
        return
    purchase = pool.purchase
    named = [key for key in matrix.RESERVATION_KEYS if getattr(purchase, key) is not None]
    legal = matrix.cell(pool.provisioner, pool.purchase.option).names_reservation_by
    if not named and legal:
        yield refuse("purchase", "no reservation is named", f"add {' or '.join(legal)}")
    if len(named) > 1:
        wrong = f"a reservation named in {len(named)} ways"
        kept = [key for key in named if key in legal] or named
        yield refuse("purchase", wrong, f"keep {' or '.join(kept)}")


@rule
def option_suits_the_provisioner(pool: Pool) -> Mistakes:
    cell = matrix.cell(pool.provisioner, pool.purchase.option)
    if not cell.works:
        wrong = f"{pool.provisioner} pools cannot be bought this way: {cell.refused}"
        yield refuse("purchase.option", wrong, f"use {_nearest(cell)}")


@rule
def way_suits_the_provisioner(pool: Pool) -> Mistakes:
    cell = matrix.cell(pool.provisioner, pool.purchase.option)
    if not isinstance(pool.purchase, Odcr | CapacityBlock) or not cell.works:
        return
    legal = cell.names_reservation_by
    for key in matrix.RESERVATION_KEYS:
        if getattr(pool.purchase, key) is not None and key not in legal:
            wrong = f"{pool.provisioner} pools cannot find their {pool.purchase.option} by {key}"
            yield refuse(f"purchase.{key}", wrong, f"use {' or '.join(legal)}")


@rule
def spill_acts(pool: Pool) -> Mistakes:
    cell = matrix.cell(pool.provisioner, pool.purchase.option)
    if (
        isinstance(pool.purchase, Odcr)
        and pool.purchase.spill != "never"
        and not cell.spills
        and cell.works
    ):
        wrong = f"{pool.provisioner} pools never spill"
        yield refuse("purchase.spill", wrong, "add an on-demand pool beside this one")


@rule
def fallback_acts(pool: Pool) -> Mistakes:
    cell = matrix.cell(pool.provisioner, pool.purchase.option)
    if not isinstance(pool.purchase, Spot) or pool.purchase.fallback == "none" or not cell.works:
        return
    if not cell.falls_back:
        wrong = f"{pool.provisioner} pools cannot fall back to On-Demand"
        yield refuse("purchase.fallback", wrong, "add an on-demand pool beside this one")
    elif pool.nodes.static is not None:
        wrong = "a pool of a fixed size cannot fall back to On-Demand"
        yield refuse("purchase.fallback", wrong, "use nodes.max instead of nodes.static")
    elif pool.nodes.max == 1:
        # The two NodePools divide the nodes between them.
        wrong = "one node cannot be Spot and On-Demand"
        yield refuse("nodes.max", wrong, "write at least 2: half may be On-Demand")


@rule
def fallback_has_a_share(pool: Pool) -> Mistakes:
    if not isinstance(pool.purchase, Spot) or pool.purchase.fallback_max is None:
        return
    if pool.purchase.fallback == "none":
        wrong = "a share of On-Demand nodes without a fallback"
        yield refuse("purchase.fallback_max", wrong, "add fallback: on-demand")
    elif pool.nodes.max is not None and pool.purchase.fallback_max >= pool.nodes.max:
        wrong = f"no node of {pool.nodes.max} is left to Spot"
        yield refuse("purchase.fallback_max", wrong, "write less, or use option: on-demand")


@rule
def spot_group_has_a_choice(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    cell = matrix.cell(pool.provisioner, pool.purchase.option)
    if cell.works and len(pool.instance_types) < cell.fewest_types:
        wrong = f"a Spot node group of fewer than {cell.fewest_types} instance types"
        other = "option: on-demand" if pool.role == "system" else node_pools_of(pools)
        yield refuse("instance_types", wrong, f"add types of like size, or use {other}")


@rule
def placement_group_is_the_reservations(pool: Pool) -> Mistakes:
    """Yield a placement group on a reservation: the group is new, so none was made in it."""
    if (
        pool.placement_group
        and isinstance(pool.purchase, Odcr)
        and pool.purchase.reservation is not None
    ):
        wrong = "this reservation was not made in the placement group"
        yield refuse("placement_group", wrong, "leave it out")


@rule
def reservation_has_one_zone_and_type(pool: Pool, network: Network) -> Mistakes:
    what = _one_reservation(pool.purchase)
    if what is None:
        return
    zones = zones_of(pool, network)
    if len(zones) > 1:
        wrong = f"{what} is in one zone"
        yield refuse("zones", wrong, "keep the zone that it was bought in", got=yaml_list(zones))
    if len(pool.instance_types) > 1:
        wrong = f"{what} is of one instance type"
        yield refuse("instance_types", wrong, "keep the type that was bought")


@rule
def arns_are_of_the_region(pool: Pool, identity: Identity) -> Mistakes:
    key, arn = "", None
    if isinstance(pool.purchase, TrainingPlan):
        key, arn = "plan", pool.purchase.plan
    elif isinstance(pool.purchase, Odcr):
        key, arn = "resource_group", pool.purchase.resource_group
    if arn is None:
        return
    _, partition, _, region, *_ = arn.split(":")
    expected = regions.lookup_region(identity.region)
    if (partition, region) != (expected.partition, expected.name):
        wrong = f"an ARN outside {expected.name} of partition {expected.partition}"
        yield refuse(f"purchase.{key}", wrong, "name an ARN of the cluster's Region")


@rule
def block_is_sold_for_the_type(pool: Pool) -> Mistakes:
    for number, name in enumerate(
        pool.instance_types if isinstance(pool.purchase, CapacityBlock) else ()
    ):
        if not catalog.lookup(name).capacity_block:
            wrong = "a type that no Capacity Block is sold for"
            yield refuse(f"instance_types.{number}", wrong, "use odcr or on-demand")


@rule
def block_is_whole(pool: Pool) -> Mistakes:
    if not isinstance(pool.purchase, CapacityBlock):
        return
    if pool.placement_group:
        wrong = "a Capacity Block cannot be in a placement group"
        yield refuse(
            "placement_group", wrong, "leave it out; a block is in one UltraCluster anyway"
        )
    if pool.shards > 1:
        wrong = "a Capacity Block serves one pool"
        yield refuse("shards", wrong, "leave it out, and add a pool for each block")


@rule
def block_holds_the_nodes(pool: Pool) -> Mistakes:
    if not isinstance(pool.purchase, CapacityBlock):
        return
    specs = pool.specs
    servers = [server for spec in specs if spec.knows("ultraserver") for server in spec.ultraserver]
    most, whole = capacity_blocks.MOST_INSTANCES, "a Capacity Block"
    if servers:
        # An UltraServer is a block of its own.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
        largest = max(servers, key=lambda server: server.instances)
        most, whole = largest.instances, f"the Capacity Block of one {largest.name}"
    key, count = pool.nodes.upper_count
    if count > most:
        wrong = f"more nodes than {whole} has instances"
        todo = f"write at most {most}, and add a pool for each further block"
        yield refuse(f"nodes.{key}", wrong, todo)


@rule
def block_has_no_minimum(pool: Pool) -> Mistakes:
    grouped = pool.is_node_group
    if (
        grouped
        and isinstance(pool.purchase, CapacityBlock)
        and pool.nodes.static is None
        and pool.nodes.min > 0
    ):
        wrong = "a Capacity Block has no nodes outside its window, so there is no minimum"
        yield refuse("nodes.min", wrong, "leave it out; the window has nodes.max nodes")


@rule
def block_is_not_for_controllers(pool: Pool) -> Mistakes:
    if pool.role == "system" and isinstance(pool.purchase, CapacityBlock):
        wrong = "a system pool needs nodes at all times, but a Capacity Block ends"
        yield refuse("purchase.option", wrong, "use on-demand")


@rule
def block_can_be_used(pool: Pool) -> Mistakes:
    """Yield a block without usable time: nodes start with it, and drain before EC2 takes them."""
    if not isinstance(pool.purchase, CapacityBlock):
        return
    specs = pool.specs
    ultraserver = any(spec.knows("ultraserver") and spec.ultraserver for spec in specs)
    lost = capacity_blocks.reclaimed_before_end(ultraserver=ultraserver)
    lost += capacity_blocks.DRAINED_BEFORE_RECLAIM
    if timedelta() < pool.purchase.ends - pool.purchase.starts < lost + _SHORTEST_USE:
        minutes = lost // timedelta(minutes=1)
        wrong = f"nodes are drained {minutes} minutes before the end, so no time is left to use"
        yield refuse("purchase.ends", wrong, _COPY)


@rule
def reservations_are_not_shared(pools: Readable[Pool], network: Network) -> Mistakes:
    """Yield a reservation of several pools: a block serves one, and each has one type and zone."""
    seen: dict[str, _Reserved] = {}
    for reserved in _reserved(pools):
        placed, purchase = reserved
        if purchase.reservation is None:
            continue
        first, other = seen.setdefault(purchase.reservation, reserved)
        if first is placed:
            continue
        at = (*placed.at, "purchase", "reservation")
        theirs = first.path
        if isinstance(purchase, CapacityBlock) or isinstance(other, CapacityBlock):
            wrong = f"also the reservation of {theirs}, and a Capacity Block serves one pool"
            yield Mistake(at, wrong, "name each pool's own block")
        elif not _could_be_one(first.item, placed.item, network):
            wrong = f"also the reservation of {theirs}, whose type or zone differs"
            yield Mistake(at, wrong, "name each pool's own reservation")


@rule
def selectors_find_one_block(pools: Readable[Pool], network: Network) -> Mistakes:
    """Yield tags that match several blocks of a type and zone: Karpenter fills only one of them.

    Source: https://github.com/aws/karpenter-provider-aws/issues/8514
    """
    blocks = [
        (placed, purchase.reservation_tags.items())
        for placed, purchase in _reserved(pools)
        if isinstance(purchase, CapacityBlock) and purchase.reservation_tags is not None
    ]
    for number, (placed, tags) in enumerate(blocks):
        for first, others in blocks[:number]:
            # A block with the longer list of tags has the shorter one too.
            shared = tags <= others or tags >= others
            if shared and _could_be_one(first.item, placed.item, network):
                wrong = f"these tags also find the Capacity Block of {first.path}"
                todo = "tag the blocks apart, or name them by reservation"
                yield Mistake((*placed.at, "purchase", "reservation_tags"), wrong, todo)
                break


_Reserved = tuple[Placed[Pool], Odcr | CapacityBlock]


def _reserved(pools: Readable[Pool]) -> Sequence[_Reserved]:
    return [
        (placed, placed.item.purchase)
        for placed in pools.placed
        if isinstance(placed.item.purchase, Odcr | CapacityBlock)
    ]


def _could_be_one(first: Pool, second: Pool, network: Network) -> bool:
    types = set(first.instance_types).intersection(second.instance_types)
    zones = set(zones_of(first, network)).intersection(zones_of(second, network))
    return bool(types and zones)


def _one_reservation(purchase: Purchase) -> str | None:
    """Return the name of the one reservation behind ``purchase``, None if there may be more."""
    if isinstance(purchase, CapacityBlock):
        return "a Capacity Block"
    if isinstance(purchase, TrainingPlan):
        return "a training plan"
    if isinstance(purchase, Odcr) and purchase.reservation is not None:
        return "a capacity reservation"
    return None


def _nearest(cell: matrix.Cell) -> str:
    """Return the nearest working cells, as the file spells them."""
    return " or ".join(
        f"option: {option}"
        if provisioner == cell.provisioner
        else f"provisioner: {provisioner} with option: {option}"
        for provisioner, option in cell.instead
    )
