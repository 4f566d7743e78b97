"""What is looked for, and what AWS offers of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from ultrascale.errors import UnansweredError

Option = Literal["capacity-block", "training-plan", "spot"]

OPTIONS: tuple[Option, ...] = ("capacity-block", "training-plan", "spot")
RESERVED: tuple[Option, ...] = ("capacity-block", "training-plan")
"""What is bought for a window, and paid up front."""
DOLLARS = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is looked for.

    Attributes:
        pool: Pool of the cluster file that it is for; None where options say all of it.
        regions: Where to look.
        instance_types: EC2 names, each of which will do.
        count: Nodes.
        days: For how long; None where only Spot is asked.
        starts: Earliest start, in UTC; None for now.
        until: Latest start; None where any will do.
        zones: Names or ids of the zones that will do; empty for all.
        options: What to ask for.
    """

    pool: str | None
    regions: tuple[str, ...]
    instance_types: tuple[str, ...]
    count: int
    days: int | None
    starts: datetime | None
    until: datetime | None
    zones: tuple[str, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Capacity without a gap, in one zone. Most offers are one.

    Attributes:
        zone: Name of its zone, in this account; None where AWS does not say it.
        zone_id: Id of its zone; likewise.
        instance_type: EC2 name.
        count: Nodes.
        starts: Its start, in UTC.
        usable_until: When its nodes are drained.
        ends: Its end.
    """

    zone: str | None
    zone_id: str | None
    instance_type: str
    count: int
    starts: datetime
    usable_until: datetime
    ends: datetime

    @property
    def usable_hours(self) -> Decimal:
        """Hours in which jobs run on it."""
        seconds = max(int((self.usable_until - self.starts).total_seconds()), 0)
        return Decimal(seconds) / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What AWS offers at the moment.

    Attributes:
        id: What it is bought by; None for Spot.
        option: Purchase option.
        request: What it was found for.
        region: Its Region.
        zone: Name of the zone, of the first part where there are several; None where unknown.
        zone_id: Id of that zone; likewise.
        instance_type: EC2 name.
        count: Nodes.
        parts: Its capacity; empty for Spot, which has no window.
        fee: What is paid up front; None for Spot, and where AWS does not say it.
        currency: Of all its money.
        hourly: Price of a node for an hour in which it is of use; None where unknown.
        on_demand: The same On-Demand, by the catalog; None where it has none in that currency.
        score: Spot placement score of the zone, from 1 to 10; None where unknown.
        notes: What else there is to know.
    """

    id: str | None
    option: Option
    request: Request
    region: str
    zone: str | None
    zone_id: str | None
    instance_type: str
    count: int
    parts: tuple[Part, ...]
    fee: Decimal | None
    currency: str
    hourly: Decimal | None
    on_demand: Decimal | None
    score: int | None
    notes: tuple[str, ...]

    @property
    def starts(self) -> datetime | None:
        """Start of its first part, in UTC; None for Spot."""
        return min((part.starts for part in self.parts), default=None)

    @property
    def ends(self) -> datetime | None:
        """End of its last part, in UTC; None for Spot."""
        return max((part.ends for part in self.parts), default=None)

    @property
    def usable_hours(self) -> Decimal | None:
        """Hours in which jobs run on all of its nodes; None for Spot."""
        return node_hours(self.parts) / self.count if self.parts else None

    @property
    def ratio(self) -> Decimal | None:
        """Its price by that of On-Demand; None where one of them is unknown."""
        if self.hourly is None or self.on_demand is None:
            return None
        return self.hourly / self.on_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A question that AWS did not answer.

    Attributes:
        what: What was asked for.
        action: The request as IAM calls it; what is denied, where something is.
        reason: Why there is no answer.
        denied: Whether a policy has to allow `action`.
    """

    what: str
    action: str
    reason: str
    denied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that was found.

    Attributes:
        offers: What AWS offers, in no order.
        unknown: What it did not answer.
        remarks: What was not asked for, and why; and what to know of the offers.
    """

    offers: tuple[Offer, ...]
    unknown: tuple[Unknown, ...]
    remarks: tuple[str, ...]


def node_hours(parts: Sequence[Part]) -> Decimal:
    """Return for how many hours all nodes of ``parts`` together are of use."""
    return sum((part.usable_hours * part.count for part in parts), Decimal())


def nodes_at_once(parts: Sequence[Part]) -> int:
    """Return the nodes of ``parts`` that are there at the same time, 0 without any."""
    return max(
        (
            sum(each.count for each in parts if each.starts <= part.starts < each.ends)
            for part in parts
        ),
        default=0,
    )


def hourly(fee: Decimal | None, parts: Sequence[Part]) -> Decimal | None:
    """Return what a node costs for each hour in which it is of use, None where that is unknown.

    Args:
        fee: What is paid up front.
        parts: What is had for it.
    """
    hours = node_hours(parts)
    return fee / hours if fee is not None and hours else None


def fee_of(text: str | None, action: str) -> Decimal | None:
    """Return what an offering costs up front; None where AWS does not say it.

    Args:
        text: The fee, as AWS writes it.
        action: The request that told it, as IAM calls it.

    Raises:
        UnansweredError: It is no number.
    """
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        reason = f"an offering came with a fee that is no number, {text!r}"
        raise UnansweredError(action, reason=reason) from None
