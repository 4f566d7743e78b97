"""What a purchase option demands of its pool, and its keys of each other."""

from collections.abc import Iterator
from datetime import datetime

from ultrascale.catalog import matrix, regions
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config._pool_rules import node_pools_of
from ultrascale.config._reader import Part, values
from ultrascale.config.pools import Nodes, Pool, Provisioner, Role
from ultrascale.config.purchase import CapacityBlock, Odcr, Purchase, Spot, TrainingPlan

Mistakes = Iterator[Mistake]


def window_has_a_length(starts: datetime, ends: datetime) -> Mistakes:
    if starts >= ends:
        yield refuse("ends", "not after starts", "copy both from the purchase")


def reservations_are_named_once(parts: tuple[Part, ...]) -> Mistakes:
    """Judge for the file as a whole: which keys are legal is the provisioner's to say."""
    provisioners = dict(values(parts, Pool, "provisioner", str))
    for part in parts:
        if not set(matrix.RESERVATION_KEYS) <= part.fields.keys():
            continue
        named = [key for key in matrix.RESERVATION_KEYS if part.fields[key] is not None]
        legal = _legal_keys(provisioners.get(part.at[:-1]), str(part.fields["option"]))
        if not named and legal:
            wrong = "no reservation is named"
            yield Mistake(part.at, wrong, f"add {' or '.join(legal)}")
        if len(named) > 1:
            wrong = f"a reservation named in {len(named)} ways"
            kept = [key for key in named if key in legal] or named
            yield Mistake(part.at, wrong, f"keep {' or '.join(kept)}")


def option_suits_the_provisioner(provisioner: Provisioner, purchase: Purchase) -> Mistakes:
    cell = matrix.cell(provisioner, purchase.option)
    if not cell.works:
        wrong = f"{provisioner} pools cannot be bought this way: {cell.refused}"
        yield refuse("purchase.option", wrong, f"use {_nearest(cell)}")


def way_suits_the_provisioner(provisioner: Provisioner, purchase: Purchase) -> Mistakes:
    cell = matrix.cell(provisioner, purchase.option)
    if not isinstance(purchase, Odcr | CapacityBlock) or not cell.works:
        return
    legal = cell.names_reservation_by
    for key in matrix.RESERVATION_KEYS:
        if getattr(purchase, key) is not None and key not in legal:
            wrong = f"{provisioner} pools cannot find their {purchase.option} by {key}"
            yield refuse(f"purchase.{key}", wrong, f"use {' or '.join(legal)}")


def spill_acts(provisioner: Provisioner, purchase: Purchase) -> Mistakes:
    cell = matrix.cell(provisioner, purchase.option)
    if isinstance(purchase, Odcr) and purchase.spill != "never" and not cell.spills and cell.works:
        wrong = f"{provisioner} pools never spill"
        yield refuse("purchase.spill", wrong, "add an on-demand pool beside this one")


def fallback_acts(provisioner: Provisioner, purchase: Purchase, nodes: Nodes) -> Mistakes:
    cell = matrix.cell(provisioner, purchase.option)
    if not isinstance(purchase, Spot) or purchase.fallback == "none" or not cell.works:
        return
    if not cell.falls_back:
        wrong = f"{provisioner} pools have no weights to fall back by"
        yield refuse("purchase.fallback", wrong, "add an on-demand pool beside this one")
    elif nodes.static is not None:
        wrong = "a pool of static size has no weight to fall back by"
        yield refuse("purchase.fallback", wrong, "use nodes.max instead of nodes.static")
    elif nodes.max == 1:
        # The two NodePools divide the nodes between them.
        wrong = "no node is left to fall back with"
        yield refuse("nodes.max", wrong, "write at least 2: half of them may be On-Demand")


def fallback_has_a_share(purchase: Purchase, nodes: Nodes) -> Mistakes:
    if not isinstance(purchase, Spot) or purchase.fallback_max is None:
        return
    if purchase.fallback == "none":
        wrong = "a share of On-Demand nodes without a fallback"
        yield refuse("purchase.fallback_max", wrong, "add fallback: on-demand")
    elif nodes.max is not None and purchase.fallback_max >= nodes.max:
        wrong = f"no node of {nodes.max} is left to Spot"
        yield refuse("purchase.fallback_max", wrong, "write less, or use option: on-demand")


def spot_group_has_a_choice(
    provisioner: Provisioner,
    role: Role,
    purchase: Purchase,
    instance_types: tuple[str, ...],
    provisioners: frozenset[str],
) -> Mistakes:
    cell = matrix.cell(provisioner, purchase.option)
    if cell.works and len(instance_types) < cell.fewest_types:
        wrong = f"a Spot node group of fewer than {cell.fewest_types} instance types"
        other = "option: on-demand" if role == "system" else node_pools_of(provisioners)
        yield refuse("instance_types", wrong, f"add types of like size, or use {other}")


def placement_group_is_the_reservations(purchase: Purchase, placement_group: bool) -> Mistakes:
    """The group is a new one: a reservation that is there already cannot have been made in it."""
    if placement_group and isinstance(purchase, Odcr) and purchase.reservation is not None:
        wrong = "a placement group that this reservation was not made in"
        yield refuse("placement_group", wrong, "leave it out")


def reservation_has_one_zone_and_type(
    purchase: Purchase, zones: tuple[str, ...], instance_types: tuple[str, ...]
) -> Mistakes:
    what = _one_reservation(purchase)
    if what is None:
        return
    if len(zones) > 1:
        wrong = f"{what} is in one zone"
        got = f"[{', '.join(zones)}]"
        yield refuse("zones", wrong, "keep the zone that it was bought in", got=got)
    if len(instance_types) > 1:
        wrong = f"{what} is of one instance type"
        yield refuse("instance_types", wrong, "keep the type that was bought")


def arns_are_of_the_region(purchase: Purchase, cluster_region: str) -> Mistakes:
    key, arn = "", None
    if isinstance(purchase, TrainingPlan):
        key, arn = "plan", purchase.plan
    elif isinstance(purchase, Odcr):
        key, arn = "resource_group", purchase.resource_group
    if arn is None:
        return
    _, partition, _, region, *_ = arn.split(":")
    expected = regions.lookup_region(cluster_region)
    if (partition, region) != (expected.partition, expected.name):
        wrong = f"an ARN outside {expected.name} of partition {expected.partition}"
        yield refuse(f"purchase.{key}", wrong, "name one of the cluster's Region")


def _one_reservation(purchase: Purchase) -> str | None:
    """Return what the one reservation behind ``purchase`` is called, None if there may be more."""
    if isinstance(purchase, CapacityBlock):
        return "a Capacity Block"
    if isinstance(purchase, TrainingPlan):
        return "a training plan"
    if isinstance(purchase, Odcr) and purchase.reservation is not None:
        return "a capacity reservation"
    return None


def _legal_keys(provisioner: str | None, option: str) -> tuple[matrix.ReservationKey, ...]:
    """Return the keys that may name a reservation; all of them where one cannot be read."""
    for cell in matrix.MATRIX.values():
        if (cell.provisioner, cell.option) == (provisioner, option):
            return cell.names_reservation_by
    return matrix.RESERVATION_KEYS


def _nearest(cell: matrix.Cell) -> str:
    """Return the nearest cells that work, as the file spells them."""
    return " or ".join(
        f"option: {option}"
        if provisioner == cell.provisioner
        else f"provisioner: {provisioner} with option: {option}"
        for provisioner, option in cell.instead
    )
