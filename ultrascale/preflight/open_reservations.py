"""Open On-Demand Capacity Reservations that no pool names: their price, and nodes that fill them.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
"""

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

from ultrascale.catalog import regions
from ultrascale.catalog.prices import catalog_prices
from ultrascale.findings import Finding
from ultrascale.plan.pools.reservations import open_nodes, why_left_open
from ultrascale.preflight.model import Context, WholePool, whole_pools
from ultrascale.preflight.reservation_fields import unusable_issues

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef as Reservation

# Ids in a message; a fleet has hundreds of reservations.
_SHOWN = 5


def open_reservation_findings(check: str, context: Context, named: Set[str]) -> Iterator[Finding]:
    """Yield a finding for each type and zone with free instances in open reservations.

    The finding warns if no pool's nodes fill them: an ODCR is paid for whether used or not.

    Args:
        check: Name of the check.
        context: The account and the plan.
        named: Ids of the reservations that pools name.

    Raises:
        UnansweredError: EC2 does not say which reservations there are.
    """
    alike: dict[tuple[str, str, str], list[Reservation]] = {}
    for reservation in _open_ones(context):
        paid_by = reservation.get("UnusedReservationBillingOwnerId") or reservation.get("OwnerId")
        if (
            reservation["CapacityReservationId"] not in named
            and reservation.get("AvailableInstanceCount", 0) > 0
            and paid_by == context.account.id
            and not any(unusable_issues(reservation))
        ):
            place = (
                reservation.get("InstanceType", ""),
                reservation.get("AvailabilityZone", ""),
                reservation.get("AvailabilityZoneId", ""),
            )
            alike.setdefault(place, []).append(reservation)
    for (instance_type, zone, zone_id), reservations in alike.items():
        yield _finding(check, context, instance_type, (zone, zone_id), reservations)


def listed_ids(reservations: "Sequence[Reservation]") -> str:
    """Return the first ids of ``reservations``, and the number of the remaining ids."""
    ids = ", ".join(reservation["CapacityReservationId"] for reservation in reservations[:_SHOWN])
    return f"{ids} and {len(reservations) - _SHOWN} more" if len(reservations) > _SHOWN else ids


def _open_ones(context: Context) -> "Sequence[Reservation]":
    types = {name for pool in context.plan.all_pools for name in pool.instance_types}
    return context.account.ask_all(
        context.account.client("ec2").describe_capacity_reservations,
        lambda page: page["CapacityReservations"],
        Filters=[
            {"Name": "state", "Values": ["active"]},
            {"Name": "instance-match-criteria", "Values": ["open"]},
            {"Name": "instance-type", "Values": sorted(types)},
        ],
    )


def _finding(
    check: str,
    context: Context,
    instance_type: str,
    zone: tuple[str, str],
    reservations: "Sequence[Reservation]",
) -> Finding:
    free = sum(reservation.get("AvailableInstanceCount", 0) for reservation in reservations)
    total = sum(each.get("TotalInstanceCount", 0) for each in reservations)
    pools = [
        pool
        for pool in whole_pools(context.plan.all_pools)
        if instance_type in pool.plan.instance_types
    ]
    why = {pool.name: _reason_unfilled(context, pool, zone) for pool in pools}
    # Equal shards divide a pool's nodes and the nodes of its fallback.
    nodes = {
        pool.name: sum(open_nodes(s) for s in context.plan.all_pools if s.pool == pool.name)
        for pool in pools
        if why[pool.name] is None
    }
    fates = [
        f"{name}: {reason or f'up to {nodes[name]} nodes launch into it'}"
        for name, reason in why.items()
    ]
    evidence = (
        f"{free} of {total} {instance_type} in {zone[0]} are free, "
        f"{_price(context.plan.region, instance_type, free)}; {'; '.join(fates)}"
    )
    filled = sum(nodes.values())
    return Finding(
        check=check,
        subject=f"open, named by no pool: {listed_ids(reservations)}",
        state="warn" if filled < free else "pass",
        evidence=evidence,
        fix=_fill_or_cancel_advice(reservations[0]["CapacityReservationId"], zone[0], filled)
        if filled < free
        else None,
    )


def _fill_or_cancel_advice(id: str, zone: str, filled: int) -> str:
    cancel = f"`aws ec2 cancel-capacity-reservation --capacity-reservation-id {id}`"
    todo = (
        "raise the pools' nodes"
        if filled
        else f"name it in a pool of {zone} on a node group, Karpenter or EKS Auto Mode, "
        f"`purchase: {{option: odcr, reservation: {id}}}`"
    )
    return f"{todo}, or cancel it unless others of the account use it: {cancel}"


def _reason_unfilled(context: Context, pool: WholePool, zone: tuple[str, str]) -> str | None:
    """Return why no node of ``pool`` launches into a reservation of ``zone``; None if some do.

    Args:
        context: The plan.
        pool: A pool of the reservation's type.
        zone: Name and id of the reservation's zone.
    """
    own = pool.plan.zones
    here = zone[1] if all(map(regions.is_zone_id, own)) else zone[0]
    left = why_left_open(pool.plan, context.plan.all_pools)
    return left if left or here in own else f"its nodes are in {', '.join(own)}"


def _price(region: str, instance_type: str, count: int) -> str:
    price = catalog_prices().find(region, "ec2", instance_type)
    if price is None:
        return "unknown USD/hour"
    return f"{price.price * count:,.2f} USD/hour at the price of {price.valid_on}"
