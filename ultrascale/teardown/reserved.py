"""Capacity that pools launch into: no stack has it, and it is paid for without a node.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-pricing-billing.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/assign-billing.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingPlan.html
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import ReservationPlan
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Thing

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef, FilterTypeDef

_NONE, _NO_GROUP = "InvalidCapacityReservationId.NotFound", "NotFoundException"
_NO_PLAN = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
_KIND = "AWS::EC2::CapacityReservation"
_TRAINING_PLAN = "SageMaker training plan"
_ENDED = frozenset({"cancelled", "expired", "failed", "payment-failed", "unsupported"})
_PLAN_ENDED = frozenset({"Expired", "Failed"})
_WHY = "it is paid for until it is cancelled or ends, whether nodes run in it or not"
_PAID = "it was paid for in advance, and ends by itself: nothing cancels it or gives the money back"
_USE = "nothing removes it; another cluster of the account can use it until then"


def reservations(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    """Yield the reservations, Capacity Blocks and training plans that the pools of a cluster name.

    Args:
        account: The account.
        plan: The cluster.
    """
    seen: list[ReservationPlan] = []
    ids: set[str] = set()
    for pool in plan.all_pools:
        named = pool.reservation
        if named is None or named in seen:
            continue
        seen.append(named)
        try:
            found = _of(account, named)
        except UnansweredError as error:
            # Of a group it may be one member that is not there, and the others are.
            absent = error.code == _NO_GROUP or (error.code == _NONE and named.id is not None)
            if not absent:
                yield _unknown(account.region, pool.name, f"{_WHY}; {error}")
            continue
        for each in found:
            if each["CapacityReservationId"] not in ids and _costs(account, each):
                ids.add(each["CapacityReservationId"])
                yield _reservation(account.region, each)
    yield from _training_plans(account, plan)


def _of(account: Account, named: ReservationPlan) -> "list[CapacityReservationTypeDef]":
    if named.tags:
        tags: list[FilterTypeDef] = [
            {"Name": f"tag:{k}", "Values": [v]} for k, v in sorted(named.tags.items())
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
    found = account.ask_all(
        account.client("resource-groups").list_group_resources,
        lambda page: page["Resources"],
        Group=group,
    )
    members = [each["Identifier"] for each in found]
    return [m["ResourceArn"].rpartition("/")[2] for m in members if m["ResourceType"] == _KIND]


def _costs(account: Account, found: Mapping[str, Any]) -> bool:
    """Return whether the account pays for a reservation: not for one that others share with it."""
    owner = found.get("OwnerId", account.id)
    payer = found.get("UnusedReservationBillingOwnerId") or owner
    return account.id in {owner, payer} and found["State"] not in _ENDED


def _reservation(region: str, found: Mapping[str, Any]) -> Left:
    id, count = found["CapacityReservationId"], found["TotalInstanceCount"]
    type = found["InstanceType"]
    if found.get("ReservationType") == "capacity-block":
        ends = f"{found['EndDate']:%Y-%m-%dT%H:%MZ}" if found.get("EndDate") else "an unknown time"
        return _advance(_KIND, id, f"Capacity Block, {count} of {type}, until {ends}")
    price, hourly = prices.of_instance(region, type)
    return Left(
        thing=Thing(kind=_KIND, id=id, note=f"{count} of {type}"),
        why=_WHY,
        command=f"aws ec2 cancel-capacity-reservation --capacity-reservation-id {id} "
        f"--region {region}",
        price=f"{count} times {price}" if price else "",
        asked=True,
        usd_per_hour=hourly * count,
    )


def _training_plans(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    groups = plan.hyperpod.groups if plan.hyperpod is not None else ()
    for arn in sorted({each.training_plan for each in groups if each.training_plan is not None}):
        name = arn.rpartition("/")[2]
        try:
            found = account.ask(
                account.client("sagemaker").describe_training_plan, TrainingPlanName=name
            )
            if found["Status"] in _PLAN_ENDED:
                continue
            until = f"until {found['EndTime']:%Y-%m-%dT%H:%MZ}"
        except UnansweredError as error:
            if error.code in _NO_PLAN:
                continue
            until = f"nobody knows until when: {error}"
        yield _advance(_TRAINING_PLAN, name, until)


def _advance(kind: str, id: str, note: str) -> Left:
    """Return what is paid for already."""
    return Left(
        thing=Thing(kind=kind, id=id, note=note),
        why=_PAID,
        command=_USE,
        price="paid in advance",
        paid=False,
        asked=True,
    )


def _unknown(region: str, pool: str, why: str) -> Left:
    return Left(
        thing=Thing(kind=_KIND, id=f"of the pool {pool}"),
        why=why,
        command=f"aws ec2 describe-capacity-reservations --region {region} lists them",
        asked=True,
    )
