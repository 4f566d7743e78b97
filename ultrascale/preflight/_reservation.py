"""A capacity reservation as EC2 has it, held against the pools that launch into it.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ultrascale.catalog import regions
from ultrascale.plan.model import PoolPlan, ReservationPlan
from ultrascale.preflight._issues import Issue
from ultrascale.preflight._pools import WholePool
from ultrascale.preflight._window import time_of, window_issues, written

Answer = Mapping[str, Any]

_BLOCK = "capacity-block"
_TYPES = {"capacity-block": _BLOCK, "odcr": "default"}
_PLATFORM, _TENANCY = "Linux/UNIX", "default"
# What becomes of a reservation that is not active.
_TO_COME = frozenset({"scheduled", "payment-pending", "pending", "assessing", "delayed"})
_RIGHT_ONE = "name the reservation that was made for the pool, or write what this one has"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A reservation as the cluster file names it, and the pools that launch into it.

    Attributes:
        reservation: How the file names it.
        pools: The pools: of a Capacity Block one.
    """

    reservation: ReservationPlan
    pools: tuple[WholePool, ...]

    @property
    def plan(self) -> PoolPlan:
        """The first of the pools: all of them have one purchase option."""
        return self.pools[0].plan

    @property
    def block(self) -> bool:
        """Whether it is a Capacity Block."""
        return self.plan.purchase == _BLOCK

    @property
    def nodes(self) -> int:
        """Most nodes of all pools together."""
        return sum(pool.nodes for pool in self.pools)

    @property
    def at_once(self) -> int:
        """Nodes that a deployment makes and waits for."""
        return sum(pool.at_once for pool in self.pools)

    def __str__(self) -> str:
        return ", ".join(pool.name for pool in self.pools)


def is_candidate(claim: Claim, answer: Answer) -> bool:
    """Return whether a pool of ``claim`` would launch into the reservation, as long as it lives."""
    return not any(_misplaced(claim, answer)) and answer.get("State") in {*_TO_COME, "active"}


def issues(claim: Claim, answer: Answer, *, account: str, at: datetime) -> Iterator[Issue]:
    """Yield what is wrong with a reservation.

    Args:
        claim: How it is claimed.
        answer: What EC2 says of it.
        account: The account that asks.
        at: The time that counts as now, in UTC.
    """
    yield from _misplaced(claim, answer)
    yield from _otherwise_made(answer)
    yield from _state(claim, answer, at)
    if claim.block:
        window = claim.plan.window
        yield from window_issues(window, answer, starts="StartDate", ends="EndDate")
    else:
        yield from _end(answer, at)
        yield from _open(answer)
    yield from _owner(claim, answer, account)


def _misplaced(claim: Claim, answer: Answer) -> Iterator[Issue]:
    """Yield the fields by which no pool of ``claim`` would find the reservation."""
    types = {name for pool in claim.pools for name in pool.plan.instance_types}
    yield from _field(answer, "InstanceType", types)
    zones = {zone for pool in claim.pools for zone in pool.plan.zones}
    by_id = all(map(regions.is_zone_id, zones))
    zone = "AvailabilityZoneId" if by_id else "AvailabilityZone"
    other = answer.get("AvailabilityZone" if by_id else "AvailabilityZoneId")
    yield from _field(answer, zone, zones, beside=other)
    yield from _field(answer, "ReservationType", {_TYPES[claim.plan.purchase]})


def _otherwise_made(answer: Answer) -> Iterator[Issue]:
    yield from _field(answer, "InstancePlatform", {_PLATFORM})
    yield from _field(answer, "Tenancy", {_TENANCY})
    for field, why in (
        ("OutpostArn", "its instances are on an Outpost"),
        ("PlacementGroupArn", "only instances of that placement group launch into it"),
    ):
        if answer.get(field):
            yield Issue(
                state="fail",
                evidence=f"{field} is {answer[field]}: {why}",
                fix="make a reservation without it",
            )
    if answer.get("Interruptible"):
        yield Issue(
            state="fail",
            evidence="Interruptible is true: EC2 takes its instances back within two minutes",
            fix="name a reservation that is not interruptible",
        )
    if answer.get("LaunchStatus") == "unlaunchable" and answer.get("State") == "active":
        yield Issue(
            state="fail",
            evidence="LaunchStatus is unlaunchable: its UltraServer takes no instances",
            fix="open a support case with the reservation's id",
        )


def _field(
    answer: Answer, field: str, wanted: set[str], *, beside: str | None = None
) -> Iterator[Issue]:
    found = answer.get(field)
    if found in wanted:
        return
    ours = " or ".join(sorted(wanted))
    if found is None:
        evidence = f"EC2 says no {field}, {ours} is wanted"
        yield Issue(state="unknown", evidence=evidence, fix="ask again, or look in the console")
        return
    theirs = f"{found} ({beside})" if beside else str(found)
    evidence = f"{field} is {theirs} in the account, {ours} in the plan"
    yield Issue(state="fail", evidence=evidence, fix=_RIGHT_ONE)


def _state(claim: Claim, answer: Answer, at: datetime) -> Iterator[Issue]:
    state, starts = answer.get("State"), time_of(answer, "StartDate")
    if state == "active":
        return
    if state not in _TO_COME:
        evidence = f"State is {state}: nothing launches into it"
        yield Issue(state="fail", evidence=evidence, fix="name a reservation that is there")
        return
    when = f", to start {written(starts)}" if starts else ""
    if not claim.block:
        # A node group is made with all of its nodes, and fails without them.
        waits = claim.at_once > 0
        yield Issue(
            state="fail" if waits else "warn",
            evidence=f"State is {state}{when}: no node launches before it is active",
            fix="deploy once it is active" if waits else "expect no nodes before it is active",
        )
    elif state != "scheduled":
        yield Issue(
            state="warn",
            evidence=f"State is {state}: the purchase is not final",
            fix="run preflight again: EC2 gives a block up whose payment fails",
        )
    elif starts is not None and at >= starts:
        evidence = f"State is scheduled{when}, which is over"
        yield Issue(state="warn", evidence=evidence, fix="open a support case if it stays so")


def _end(answer: Answer, at: datetime) -> Iterator[Issue]:
    ends = time_of(answer, "EndDate")
    if answer.get("EndDateType") != "limited" or ends is None:
        return
    keep = f"`{modify(answer)} --end-date-type unlimited`"
    if ends <= at:
        evidence = f"EndDate is {written(ends)}, which is over"
        yield Issue(state="fail", evidence=evidence, fix="name a reservation that is there")
    else:
        evidence = (
            f"EndDate is {written(ends)}: its nodes run on then, at the On-Demand price, and "
            "no new one is certain"
        )
        yield Issue(state="warn", evidence=evidence, fix=keep)


def _open(answer: Answer) -> Iterator[Issue]:
    if answer.get("InstanceMatchCriteria") == "open":
        yield Issue(
            state="warn",
            evidence="InstanceMatchCriteria is open: any instance of the account that is alike "
            "takes its place",
            fix=f"`{modify(answer)} --instance-match-criteria targeted`",
        )


def _owner(claim: Claim, answer: Answer, account: str) -> Iterator[Issue]:
    owner = answer.get("OwnerId")
    if owner in (None, account):
        return
    if claim.reservation.spill and claim.reservation.id is not None:
        # The plan puts the reservation into a resource group, which holds the account's own alone.
        yield Issue(
            state="fail",
            evidence=f"OwnerId is {owner}: purchase.spill needs a reservation of the account",
            fix="set spill: never",
        )
    else:
        evidence = f"OwnerId is {owner}: it is gone once that account shares it no longer"
        yield Issue(
            state="warn", evidence=evidence, fix="agree with its owner how long it is shared"
        )


def count_issues(claim: Claim, usable: Sequence[Answer]) -> Iterator[Issue]:
    """Yield what is wrong with the number of instances of all usable reservations together."""
    total = sum(answer.get("TotalInstanceCount", 0) for answer in usable)
    free = sum(answer.get("AvailableInstanceCount", 0) for answer in usable)
    if total < claim.nodes:
        yield _too_few(claim, usable, total)
    elif total > claim.nodes:
        yield Issue(
            state="warn",
            evidence=f"TotalInstanceCount is {total}, the pools take {claim.nodes}: "
            f"{total - claim.nodes} are paid for and not used by this cluster",
            fix="raise the pools' nodes, unless another cluster uses them",
        )
    active = all(answer.get("State") == "active" for answer in usable)
    if active and free < min(claim.nodes, total):
        yield Issue(
            state="warn",
            evidence=f"AvailableInstanceCount is {free} of {total}: the others are in use, by "
            "nodes of this cluster or by other instances",
            fix="before a first deployment, see which instances run in it",
        )


def _too_few(claim: Claim, usable: Sequence[Answer], total: int) -> Issue:
    """Return how bad it is: a block never grows, and a node group is made with all of its nodes."""
    spills = claim.reservation.spill
    waits = claim.at_once > total and not spills
    incremental = any(answer.get("DeliveryPreference") == "incremental" for answer in usable)
    committed = sum(
        answer.get("CommitmentInfo", {}).get("CommittedInstanceCount", 0) for answer in usable
    )
    notes = ", delivered incrementally" if incremental else ""
    notes += f", {committed} committed" if committed else ""
    fix = f"set nodes to {total} in all"
    if not claim.block and len(usable) == 1:
        fix += f", or `{modify(usable[0])} --instance-count {claim.nodes}`"
    return Issue(
        state="fail" if claim.block or waits else "warn",
        evidence=f"TotalInstanceCount is {total}{notes}, the pools take {claim.nodes}",
        fix=fix,
    )


def modify(answer: Answer) -> str:
    """Return the command that changes a reservation, without what it changes."""
    id = answer["CapacityReservationId"]
    return f"aws ec2 modify-capacity-reservation --capacity-reservation-id {id}"
