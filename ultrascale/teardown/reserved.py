"""Reservations that pools launch into: no stack has them, and they are paid for without a node.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import ReservationPlan
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Thing

_LIST = "ec2:DescribeCapacityReservations"
_ABSENT = "InvalidCapacityReservationId.NotFound"
_KIND = "AWS::EC2::CapacityReservation"
_GROUP = "AWS::ResourceGroups::Group"
_ENDED = frozenset({"cancelled", "expired", "failed", "unsupported"})
_WHY = "it is paid for until it is cancelled or ends, whether nodes run in it or not"


def reservations(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    """Yield the On-Demand Capacity Reservations that the pools of a cluster name.

    Capacity Blocks and training plans are paid for in advance.

    Args:
        account: The account.
        plan: The cluster.
    """
    seen: list[ReservationPlan] = []
    for pool in plan.all_pools:
        named = pool.reservation
        if named is None or pool.window is not None or named in seen:
            continue
        seen.append(named)
        try:
            yield from _of(account, named)
        except UnansweredError as error:
            if error.code != _ABSENT:
                yield _unknown(account.region, pool.name, f"{_WHY}; {error}")


def _of(account: Account, named: ReservationPlan) -> Iterator[Left]:
    if named.resource_group is not None:
        yield _group(account.region, named.resource_group)
        return
    if named.id is not None:
        found = account.ask_all(_LIST, "CapacityReservations", CapacityReservationIds=[named.id])
    else:
        tags = [{"Name": f"tag:{k}", "Values": [v]} for k, v in sorted(named.tags.items())]
        found = account.ask_all(_LIST, "CapacityReservations", Filters=tags)
    for each in found:
        # Whoever shares one pays for it.
        ours = each.get("OwnerId", account.id) == account.id
        if ours and each["State"] not in _ENDED and each.get("ReservationType") != "capacity-block":
            yield _reservation(account.region, each)


def _reservation(region: str, found: Mapping[str, Any]) -> Left:
    id, count = found["CapacityReservationId"], found["TotalInstanceCount"]
    type = found["InstanceType"]
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


def _group(region: str, arn: str) -> Left:
    return Left(
        thing=Thing(kind=_GROUP, id=arn),
        why="each reservation in it is paid for until it is cancelled or ends",
        command=f"aws resource-groups list-group-resources --group {arn} --region {region} names "
        "them, and aws ec2 cancel-capacity-reservation --capacity-reservation-id cancels one",
        asked=True,
    )


def _unknown(region: str, pool: str, why: str) -> Left:
    return Left(
        thing=Thing(kind=_KIND, id=f"of the pool {pool}"),
        why=why,
        command=f"aws ec2 describe-capacity-reservations --region {region} lists them",
        asked=True,
    )
