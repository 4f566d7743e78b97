"""Capacity reservations and Capacity Blocks, which cost money even without a node.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-pricing-billing.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/assign-billing.html
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.core.table import all_parts
from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ReservationPlan
from ultrascale.teardown import prices
from ultrascale.teardown.model import Found, Scope, Thing

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef, FilterTypeDef

_NONE, _NO_GROUP = "InvalidCapacityReservationId.NotFound", "NotFoundException"
RESERVATION = "AWS::EC2::CapacityReservation"
_ENDED = frozenset({"cancelled", "expired", "failed", "payment-failed", "unsupported"})
_WHY = "it is paid for until it is cancelled or ends, whether nodes run in it or not"
_PAID = "it was paid for in advance, and ends by itself: nothing cancels it or gives the money back"
_USE = "nothing removes it; another cluster of the account can use it until then"


def reservations(scope: Scope) -> Iterator[Found]:
    """Yield the reservations, Capacity Blocks and the like that the pools of a cluster name.

    A reservation that AWS does not describe is yielded too: the account may pay for it.
    """
    account = scope.account
    seen: list[ReservationPlan] = []
    ids: set[str] = set()
    for pool in scope.plan.all_pools:
        named = pool.reservation
        if named is None or named in seen:
            continue
        seen.append(named)
        try:
            described = _described_reservations(account, named)
        except UnansweredError as error:
            # A group may lack a member and still have others.
            absent = error.code == _NO_GROUP or (error.code == _NONE and named.id is not None)
            if not absent:
                yield _unknown(account.region, pool.name, f"{_WHY}; {error}")
            continue
        for reservation in described:
            id = reservation["CapacityReservationId"]
            if id not in ids and _is_paid_by(account, reservation):
                ids.add(id)
                yield _priced_reservation(account.region, reservation)
    for part in all_parts():
        if part.has_teardown:
            yield from part.module("teardown").prepaid_capacity(scope)


def _described_reservations(
    account: Account, named: ReservationPlan
) -> "list[CapacityReservationTypeDef]":
    if named.tags:
        tags: list[FilterTypeDef] = [
            {"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(named.tags.items())
        ]
        return account.ask_all(
            account.client("ec2").describe_capacity_reservations,
            lambda page: page["CapacityReservations"],
            Filters=tags,
        )
    ids = [named.id] if named.id is not None else _members(account, named.resource_group or "")
    if not ids:
        return []
    return account.ask_all(
        account.client("ec2").describe_capacity_reservations,
        lambda page: page["CapacityReservations"],
        CapacityReservationIds=ids,
    )


def _members(account: Account, group: str) -> list[str]:
    """Return the ids of the reservations of a resource group."""
    resources = account.ask_all(
        account.client("resource-groups").list_group_resources,
        lambda page: page["Resources"],
        Group=group,
    )
    members = [resource["Identifier"] for resource in resources]
    return [
        member["ResourceArn"].rpartition("/")[2]
        for member in members
        if member["ResourceType"] == RESERVATION
    ]


def _is_paid_by(account: Account, reservation: "CapacityReservationTypeDef") -> bool:
    """Return whether the account pays for a reservation; another account may have shared it."""
    owner = reservation.get("OwnerId", account.id)
    payer = reservation.get("UnusedReservationBillingOwnerId") or owner
    return account.id in {owner, payer} and reservation["State"] not in _ENDED


def _priced_reservation(region: str, reservation: "CapacityReservationTypeDef") -> Found:
    id, count = reservation["CapacityReservationId"], reservation["TotalInstanceCount"]
    type = reservation["InstanceType"]
    if reservation.get("ReservationType") == "capacity-block":
        end = reservation.get("EndDate")
        ends = f"{end:%Y-%m-%dT%H:%MZ}" if end else "an unknown time"
        return prepaid(RESERVATION, id, f"Capacity Block, {count} of {type}, until {ends}")
    price, hourly = prices.of_instance(region, type)
    return Found(
        thing=Thing(kind=RESERVATION, id=id, note=f"{count} of {type}"),
        why=_WHY,
        price=(f"{count} times {price}" if price else "", hourly * count),
    )


def prepaid(kind: str, id: str, note: str) -> Found:
    """Return the leftover for capacity that was paid for in advance."""
    return Found(
        thing=Thing(kind=kind, id=id, note=note),
        why=_PAID,
        command=_USE,
        price=("paid in advance", 0),
        prepaid=True,
    )


def _unknown(region: str, pool: str, why: str) -> Found:
    return Found(
        thing=Thing(kind=RESERVATION, id=f"of the pool {pool}"),
        why=why,
        command=f"aws ec2 describe-capacity-reservations --region {region} lists them",
    )
