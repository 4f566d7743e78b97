"""Fields and windows of a capacity reservation, compared with the pools that launch into it.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ultrascale.catalog import regions
from ultrascale.findings import Issue
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan, ReservationPlan, WindowPlan
from ultrascale.preflight.model import WholePool

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef as Reservation


# --- Windows of purchases: AWS's times compared with the cluster file's times ---------------------


def in_utc(time: datetime | None) -> datetime | None:
    """Return one of AWS's times in UTC and in whole seconds, the form of cluster files."""
    return None if time is None else time.astimezone(UTC).replace(microsecond=0)


def time_text(time: datetime | None) -> str:
    """Return a time as the cluster file spells it."""
    return "a time that AWS does not say" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def window_issues(
    window: WindowPlan | None,
    *,
    starts: tuple[str, datetime | None],
    ends: tuple[str, datetime | None],
) -> Iterator[Issue]:
    """Yield an issue if the purchased window differs from the window in the cluster file.

    Args:
        window: The window of the file.
        starts: AWS's field of the start, and its value.
        ends: AWS's field of the end, and its value.
    """
    if window is None:
        return
    for (field, time), key, wanted in (
        (starts, "starts", window.starts),
        (ends, "ends", window.ends),
    ):
        purchased = in_utc(time)
        if purchased is None:
            evidence = f"AWS reports no {field}; the file has {time_text(wanted)}"
            yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        elif purchased != wanted:
            there = time_text(purchased)
            evidence = f"{field} is {there} in the account, {time_text(wanted)} in the file"
            yield Issue(state="fail", evidence=evidence, fix=f"set purchase.{key}: {there}")


# --- Fields of a capacity reservation, compared with the pools that launch into it ----------------


_BLOCK = "capacity-block"
_TYPES = {"capacity-block": _BLOCK, "odcr": "default"}
_PLATFORM, _TENANCY = "Linux/UNIX", "default"
# States of a reservation before it is active.
_TO_COME = frozenset({"scheduled", "payment-pending", "pending", "assessing", "delayed"})
_RIGHT_ONE = "name the reservation that was made for the pool, or write what this one has"


class Claim(Frozen):
    """A reservation that the cluster file names, with the pools that launch into it."""

    reservation: ReservationPlan  # The reservation, by id, tags or resource group
    pools: tuple[WholePool, ...]  # The pools; a Capacity Block has one

    @property
    def plan(self) -> PoolPlan:
        """The claim's first pool; all of its pools have the same purchase option."""
        return self.pools[0].plan

    @property
    def block(self) -> bool:
        """Whether the reservation is a Capacity Block."""
        return self.plan.purchase == _BLOCK

    @property
    def nodes(self) -> int:
        """Most nodes of all pools together."""
        return sum(pool.nodes for pool in self.pools)

    @property
    def at_once(self) -> int:
        """Nodes that a deployment launches at once and waits for."""
        return sum(pool.at_once for pool in self.pools)

    def __str__(self) -> str:
        return ", ".join(pool.name for pool in self.pools)


def is_candidate(claim: Claim, reservation: "Reservation") -> bool:
    """Return whether pools of ``claim`` launch into a reservation, now or once it is active."""
    return not any(_placement_issues(claim, reservation)) and reservation.get("State") in {
        *_TO_COME,
        "active",
    }


def issues(
    claim: Claim, reservation: "Reservation", *, account: str, at: datetime
) -> Iterator[Issue]:
    """Yield the mistakes of a claimed reservation.

    Args:
        claim: The claim.
        reservation: The reservation, as EC2 describes it.
        account: Id of the account that asks.
        at: The time that counts as now, in UTC.
    """
    yield from _placement_issues(claim, reservation)
    yield from unusable_issues(reservation)
    yield from _state_issue(claim, reservation, at)
    if claim.block:
        window = claim.plan.window
        yield from window_issues(
            window,
            starts=("StartDate", reservation.get("StartDate")),
            ends=("EndDate", reservation.get("EndDate")),
        )
    else:
        yield from _end_issue(reservation, at)
        yield from _open_issue(reservation)
    yield from _owner_issue(claim, reservation, account)


def _placement_issues(claim: Claim, reservation: "Reservation") -> Iterator[Issue]:
    """Yield the fields that keep the pools of ``claim`` out of the reservation."""
    types = {name for pool in claim.pools for name in pool.plan.instance_types}
    yield from _field_issue("InstanceType", reservation.get("InstanceType"), types)
    zones = {zone for pool in claim.pools for zone in pool.plan.zones}
    name, id = reservation.get("AvailabilityZone"), reservation.get("AvailabilityZoneId")
    if all(map(regions.is_zone_id, zones)):
        yield from _field_issue("AvailabilityZoneId", id, zones, beside=name)
    else:
        yield from _field_issue("AvailabilityZone", name, zones, beside=id)
    kinds = {_TYPES[claim.plan.purchase]}
    yield from _field_issue("ReservationType", reservation.get("ReservationType"), kinds)


def unusable_issues(reservation: "Reservation") -> Iterator[Issue]:
    """Yield the fields of a reservation that keep the nodes of every pool out of it."""
    yield from _field_issue("InstancePlatform", reservation.get("InstancePlatform"), {_PLATFORM})
    yield from _field_issue("Tenancy", reservation.get("Tenancy"), {_TENANCY})
    for field, value, why in (
        ("OutpostArn", reservation.get("OutpostArn"), "its instances are on an Outpost"),
        (
            "PlacementGroupArn",
            reservation.get("PlacementGroupArn"),
            "only instances of that placement group launch into it",
        ),
    ):
        if value:
            yield Issue(
                state="fail",
                evidence=f"{field} is {value}: {why}",
                fix="make a reservation without it",
            )
    if reservation.get("Interruptible"):
        yield Issue(
            state="fail",
            evidence="Interruptible is true: EC2 takes its instances back within two minutes",
            fix="name a reservation that is not interruptible",
        )
    if reservation.get("LaunchStatus") == "unlaunchable" and reservation.get("State") == "active":
        yield Issue(
            state="fail",
            evidence="LaunchStatus is unlaunchable: its UltraServer takes no instances",
            fix="open a support case with the reservation's id",
        )


def _field_issue(
    field: str, value: str | None, wanted: set[str], *, beside: str | None = None
) -> Iterator[Issue]:
    if value in wanted:
        return
    ours = " or ".join(sorted(wanted))
    if value is None:
        evidence = f"EC2 reports no {field}; the plan needs {ours}"
        yield Issue(state="unknown", evidence=evidence, fix="ask again, or look in the console")
        return
    theirs = f"{value} ({beside})" if beside else value
    evidence = f"{field} is {theirs} in the account, {ours} in the plan"
    yield Issue(state="fail", evidence=evidence, fix=_RIGHT_ONE)


def _state_issue(claim: Claim, reservation: "Reservation", at: datetime) -> Iterator[Issue]:
    state, starts = reservation.get("State"), in_utc(reservation.get("StartDate"))
    if state == "active":
        return
    if state not in _TO_COME:
        evidence = f"State is {state}: nothing launches into it"
        yield Issue(state="fail", evidence=evidence, fix="name a reservation that is there")
        return
    when = f", to start {time_text(starts)}" if starts else ""
    if not claim.block:
        # A node group is created with all of its nodes, and fails without them.
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


def _end_issue(reservation: "Reservation", at: datetime) -> Iterator[Issue]:
    ends = in_utc(reservation.get("EndDate"))
    if reservation.get("EndDateType") != "limited" or ends is None:
        return
    keep = f"`{modify_command(reservation)} --end-date-type unlimited`"
    if ends <= at:
        evidence = f"EndDate is {time_text(ends)}, which is over"
        yield Issue(state="fail", evidence=evidence, fix="name a reservation that is there")
    else:
        evidence = (
            f"EndDate is {time_text(ends)}: its nodes run on then, at the On-Demand price, and "
            "no new one is certain"
        )
        yield Issue(state="warn", evidence=evidence, fix=keep)


def _open_issue(reservation: "Reservation") -> Iterator[Issue]:
    if reservation.get("InstanceMatchCriteria") == "open":
        yield Issue(
            state="warn",
            evidence="InstanceMatchCriteria is open: any instance of the account that is alike "
            "takes its place",
            fix=f"`{modify_command(reservation)} --instance-match-criteria targeted`",
        )


def _owner_issue(claim: Claim, reservation: "Reservation", account: str) -> Iterator[Issue]:
    owner = reservation.get("OwnerId")
    if owner in (None, account):
        return
    if claim.reservation.spill and claim.reservation.id is not None:
        # The plan puts the reservation into a resource group, which takes only the account's own.
        yield Issue(
            state="fail",
            evidence=f"OwnerId is {owner}: purchase.spill needs a reservation of the account",
            fix="set spill: never",
        )
    else:
        evidence = f"OwnerId is {owner}: it is lost once that account stops sharing it"
        yield Issue(
            state="warn", evidence=evidence, fix="agree with its owner how long it is shared"
        )


def count_issues(claim: Claim, usable: "Sequence[Reservation]") -> Iterator[Issue]:
    """Yield an issue if all usable reservations together have too few or too many instances."""
    total = sum(reservation.get("TotalInstanceCount", 0) for reservation in usable)
    free = sum(reservation.get("AvailableInstanceCount", 0) for reservation in usable)
    if total < claim.nodes:
        yield _too_few_issue(claim, usable, total)
    elif total > claim.nodes:
        yield Issue(
            state="warn",
            evidence=f"TotalInstanceCount is {total}, the pools take {claim.nodes}: "
            f"{total - claim.nodes} are paid for and not used by this cluster",
            fix="raise the pools' nodes, unless another cluster uses them",
        )
    active = all(reservation.get("State") == "active" for reservation in usable)
    if active and free < min(claim.nodes, total):
        yield Issue(
            state="warn",
            evidence=f"AvailableInstanceCount is {free} of {total}: the others are in use, by "
            "nodes of this cluster or by other instances",
            fix="before a first deployment, see which instances run in it",
        )


def _too_few_issue(claim: Claim, usable: "Sequence[Reservation]", total: int) -> Issue:
    """Return the issue that the usable reservations have too few instances.

    A block never grows, a node group launches all of its nodes at once, and for a static NodePool
    Karpenter makes NodeClaims without end while instances are missing, and serves no other pool.

    Source: https://github.com/kubernetes-sigs/karpenter/issues/3198
    """
    spills = claim.reservation.spill
    waits = claim.at_once > total and not spills
    static = any(pool.plan.is_node_pool and pool.plan.static for pool in claim.pools)
    incremental = any(
        reservation.get("DeliveryPreference") == "incremental" for reservation in usable
    )
    committed = sum(
        reservation.get("CommitmentInfo", {}).get("CommittedInstanceCount", 0)
        for reservation in usable
    )
    notes = ", delivered incrementally" if incremental else ""
    notes += f", {committed} committed" if committed else ""
    fix = f"set nodes to {total} in all"
    if not claim.block and len(usable) == 1:
        fix += f", or `{modify_command(usable[0])} --instance-count {claim.nodes}`"
    return Issue(
        state="fail" if claim.block or waits or static else "warn",
        evidence=f"TotalInstanceCount is {total}{notes}, the pools take {claim.nodes}",
        fix=fix,
    )


def modify_command(reservation: "Reservation") -> str:
    """Return the command that changes a reservation, without the options for the changes."""
    id = reservation["CapacityReservationId"]
    return f"aws ec2 modify-capacity-reservation --capacity-reservation-id {id}"
