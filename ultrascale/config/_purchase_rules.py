"""What a purchase option demands of its pool, and its keys of each other."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ultrascale import catalog
from ultrascale.catalog import regions
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config.pools import Nodes, Provisioner
from ultrascale.config.purchase import CapacityBlock, Odcr, Purchase, Spot, TrainingPlan

Mistakes = Iterator[Mistake]

_NODE_GROUPS = ("managed-node-group", "self-managed")
_EC2_OPTIONS = ("on-demand", "spot", "odcr", "capacity-block")
_OPTIONS: Mapping[Provisioner, tuple[str, ...]] = {
    "managed-node-group": _EC2_OPTIONS,
    "self-managed": _EC2_OPTIONS,
    "karpenter": _EC2_OPTIONS,
    "auto-mode": _EC2_OPTIONS,
    "hyperpod": ("on-demand", "training-plan"),
}

# A launch template targets an id or a resource group, a Capacity Block by its id alone; a NodeClass
# selects by id or tags.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationTarget.html
_WAYS = ("reservation", "reservation_tags", "resource_group")


def window_has_a_length(starts: datetime, ends: datetime) -> Mistakes:
    if starts >= ends:
        yield refuse("ends", "not after starts", "copy both from the purchase")


def reservation_is_named_once(
    reservation: str | None, reservation_tags: Mapping[str, str] | None, resource_group: str | None
) -> Mistakes:
    ways = (reservation, reservation_tags, resource_group)
    named = [name for name, way in zip(_WAYS, ways, strict=True) if way is not None]
    if not named:
        yield refuse("", "no reservation is named", f"add one of {', '.join(_WAYS)}")
    if len(named) > 1:
        wrong = f"a reservation named in {len(named)} ways"
        yield refuse("", wrong, f"keep one of {', '.join(named)}")


def option_suits_the_provisioner(provisioner: Provisioner, purchase: Purchase) -> Mistakes:
    options = _OPTIONS[provisioner]
    if purchase.option not in options:
        wrong = f"{provisioner} pools cannot be bought this way"
        todo = f"use {', '.join(options[:-1])} or {options[-1]}"
        if isinstance(purchase, TrainingPlan):
            todo += ", or provisioner: hyperpod"
        yield refuse("purchase.option", wrong, todo)


def way_suits_the_provisioner(provisioner: Provisioner, purchase: Purchase) -> Mistakes:
    if not isinstance(purchase, Odcr | CapacityBlock) or provisioner == "hyperpod":
        return
    legal = {"reservation"}
    if provisioner not in _NODE_GROUPS:
        legal.add("reservation_tags")
    elif isinstance(purchase, Odcr):
        legal.add("resource_group")
    for way in _WAYS:
        if getattr(purchase, way) is not None and way not in legal:
            wrong = f"{provisioner} pools cannot find their {purchase.option} by {way}"
            yield refuse(f"purchase.{way}", wrong, f"use {' or '.join(sorted(legal))}")


def extras_act(provisioner: Provisioner, purchase: Purchase, nodes: Nodes) -> Mistakes:
    on_groups = provisioner in _NODE_GROUPS
    if isinstance(purchase, Odcr) and purchase.spill != "never" and not on_groups:
        wrong = f"{provisioner} pools never spill"
        yield refuse("purchase.spill", wrong, "add an on-demand pool beside this one")
    if isinstance(purchase, Spot) and purchase.fallback != "none":
        if on_groups:
            wrong = f"{provisioner} pools have no weights to fall back by"
            yield refuse("purchase.fallback", wrong, "add an on-demand pool beside this one")
        elif nodes.static is not None:
            wrong = "a pool of static size has no weight to fall back by"
            yield refuse("purchase.fallback", wrong, "use nodes.max instead of nodes.static")


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
