"""Requests for capacity, and the offers that answer them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from ultrascale.catalog.price_list import PriceList, catalog_prices
from ultrascale.errors import UnansweredError

Option = Literal["capacity-block", "training-plan", "spot"]

OPTIONS: tuple[Option, ...] = ("capacity-block", "training-plan", "spot")
RESERVED: tuple[Option, ...] = ("capacity-block", "training-plan")
"""The options that buy a window and are paid up front."""
DOLLARS = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for capacity.

    Attributes:
        pool: Pool of the cluster file that it is for; None for a request of options alone.
        regions: AWS Regions.
        instance_types: EC2 names; each of them is acceptable.
        count: Nodes.
        days: Duration in days; None for Spot alone.
        starts: Earliest start, in UTC; None for now.
        until: Latest start; None for any.
        zones: Names or ids of acceptable zones; empty for all.
        options: Purchase options.
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
    """Capacity without a gap, in one zone. Most offers have one part.

    Attributes:
        zone: Name of its zone, in this account; None where AWS does not tell it.
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
        """Hours in which jobs can run on it."""
        seconds = max(int((self.usable_until - self.starts).total_seconds()), 0)
        return Decimal(seconds) / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An offer of AWS.

    Attributes:
        id: Its id, to buy it by; None for Spot.
        option: Purchase option.
        request: The request that found it.
        region: Its Region.
        zone: Name of the zone of its first part; None where unknown.
        zone_id: Id of that zone; likewise.
        instance_type: EC2 name.
        count: Nodes.
        parts: Its capacity; empty for Spot, which has no window.
        fee: Upfront fee; None for Spot, and where AWS does not tell it.
        currency: Currency of all its prices.
        hourly: Price of a node for a usable hour; None where unknown.
        on_demand: The On-Demand price; None where none is known in that currency.
        score: Spot placement score of the zone, from 1 to 10; None where unknown.
        notes: Remarks for the user.
        refused: Why no cluster file, or not the one at hand, can use it; empty where one can.
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
    refused: tuple[str, ...] = ()

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
        """Its price divided by the On-Demand price; None where one of them is unknown."""
        if self.hourly is None or self.on_demand is None:
            return None
        return self.hourly / self.on_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A question that AWS did not answer.

    Attributes:
        what: Subject of the question.
        action: IAM action of the request, or the denied one.
        reason: Reason of the missing answer.
        denied: Whether a policy has to allow `action`.
    """

    what: str
    action: str
    reason: str
    denied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a search.

    Attributes:
        offers: Offers of AWS, in no order.
        unknown: Questions that AWS did not answer.
        remarks: Questions that were not asked, with the reason, and remarks on the offers.
        prices: On-Demand prices that the offers are held against.
    """

    offers: tuple[Offer, ...]
    unknown: tuple[Unknown, ...]
    remarks: tuple[str, ...]
    prices: PriceList = field(default_factory=catalog_prices, repr=False, compare=False)


def repriced(found: Found, price_list: PriceList) -> Found:
    """Return what was found, held against the On-Demand prices of ``price_list``."""
    offers = (
        offer
        if offer.on_demand is None and offer.option == "spot"
        else replace(
            offer,
            on_demand=on_demand_price(
                offer.region, offer.instance_type, offer.currency, price_list
            ),
        )
        for offer in found.offers
    )
    return replace(found, offers=tuple(offers), prices=price_list)


def node_hours(parts: Sequence[Part]) -> Decimal:
    """Return the usable hours of all nodes of ``parts`` together."""
    return sum((part.usable_hours * part.count for part in parts), Decimal())


def nodes_at_once(parts: Sequence[Part]) -> int:
    """Return the most nodes of ``parts`` at the same time; 0 without parts."""
    return max(
        (
            sum(each.count for each in parts if each.starts <= part.starts < each.ends)
            for part in parts
        ),
        default=0,
    )


def hourly(fee: Decimal | None, parts: Sequence[Part]) -> Decimal | None:
    """Return the price of a node for a usable hour; None where it is unknown.

    Args:
        fee: Upfront fee.
        parts: Capacity that it buys.
    """
    hours = node_hours(parts)
    return fee / hours if fee is not None and hours else None


def on_demand_price(
    region: str,
    instance_type: str,
    currency: str = DOLLARS,
    price_list: PriceList | None = None,
) -> Decimal | None:
    """Return the On-Demand price of a node for an hour; None where none is known.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
        currency: Currency of the offer; the prices are in US dollars.
        price_list: Prices; None takes those of the catalog.
    """
    price = (price_list or catalog_prices()).find(region, "ec2", instance_type)
    return Decimal(str(price.price)) if price is not None and currency == DOLLARS else None


def fee_of(text: str | None, action: str) -> Decimal | None:
    """Return the upfront fee of an offering; None where AWS does not tell it.

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
