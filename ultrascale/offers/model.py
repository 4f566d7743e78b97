"""Requests for capacity, and the offers that answer them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog import UltraServer, capacity_blocks
from ultrascale.catalog.prices import PriceList, catalog_prices
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

Option = Literal["capacity-block", "training-plan", "spot"]

OPTIONS: tuple[Option, ...] = ("capacity-block", "training-plan", "spot")
RESERVED: tuple[Option, ...] = ("capacity-block", "training-plan")
"""Purchase options for a window of capacity that is paid up front."""
DOLLARS = "USD"


class Request(Frozen):
    """A request for capacity."""

    pool: (
        str | None
    )  # Pool of the cluster file that it is for; None for a request from options alone
    regions: tuple[str, ...]  # AWS Regions
    instance_types: tuple[str, ...]  # EC2 names of acceptable types
    count: int  # Nodes
    days: int | None  # Duration in days; None where only Spot is asked for
    starts: datetime | None  # Earliest start, in UTC; None for now
    until: datetime | None  # Latest start; None for any
    zones: tuple[str, ...]  # Names or ids of acceptable zones; empty for all
    options: tuple[Option, ...]  # Purchase options


class Part(Frozen):
    """Capacity without a gap, in one zone; most offers have one part."""

    zone: str | None  # Name of its zone, in this account; None where AWS does not tell it
    zone_id: str | None  # Id of its zone; None where AWS does not tell it
    instance_type: str  # EC2 name
    count: int  # Nodes
    starts: datetime  # Its start, in UTC
    usable_until: datetime  # When its nodes are drained
    ends: datetime  # Its end

    @property
    def usable_hours(self) -> Decimal:
        """Hours in which jobs can run on the part."""
        seconds = max(int((self.usable_until - self.starts).total_seconds()), 0)
        return Decimal(seconds) / 3600


class Offer(Frozen):
    """An offer of AWS for a request."""

    id: str | None  # Its id, to buy it by; None for Spot
    option: Option  # Purchase option
    request: Request  # The request that found it
    region: str  # Its Region
    zone: str | None  # Name of the zone of its first part; None where unknown
    zone_id: str | None  # Id of that zone; None where unknown
    instance_type: str  # EC2 name
    count: int  # Nodes
    parts: tuple[Part, ...]  # Its capacity; empty for Spot, which has no window
    fee: Decimal | None  # Upfront fee; None for Spot, and where AWS does not tell it
    currency: str  # Currency of all its prices
    hourly: Decimal | None  # Price of a node for a usable hour; None where unknown
    on_demand: Decimal | None  # The On-Demand price; None where unknown in that currency
    score: int | None  # Spot placement score of the zone, from 1 to 10; None where unknown
    notes: tuple[str, ...]  # Remarks for the user
    # Why no cluster file, or not the given file, can use it; empty for a usable offer.
    refused: tuple[str, ...] = ()

    @property
    def starts(self) -> datetime | None:
        """Start of the first part, in UTC; None for Spot."""
        return min((part.starts for part in self.parts), default=None)

    @property
    def ends(self) -> datetime | None:
        """End of the last part, in UTC; None for Spot."""
        return max((part.ends for part in self.parts), default=None)

    @property
    def usable_hours(self) -> Decimal | None:
        """Hours in which jobs can run on all nodes of the offer; None for Spot."""
        return node_hours(self.parts) / self.count if self.parts else None

    @property
    def ratio(self) -> Decimal | None:
        """Price divided by the On-Demand price; None if one of them is unknown."""
        if self.hourly is None or self.on_demand is None:
            return None
        return self.hourly / self.on_demand


class Unknown(Frozen):
    """A request that AWS did not answer."""

    what: str  # Subject of the question
    action: str  # IAM action of the request, or the denied one
    reason: str  # Reason of the missing answer
    denied: bool  # Whether a policy has to allow `action`


class Found(Frozen):
    """Result of a search for offers."""

    offers: tuple[Offer, ...]  # Offers of AWS, in no order
    unknown: tuple[Unknown, ...]  # Questions that AWS did not answer
    # Questions that were not asked, with the reason, and remarks on the offers.
    remarks: tuple[str, ...]
    # On-Demand prices for comparison with the offers.
    prices: PriceList = field(default_factory=catalog_prices)


def repriced(found: Found, price_list: PriceList) -> Found:
    """Return ``found`` with the On-Demand prices of ``price_list`` for comparison."""
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
    """Return the usable node-hours of all ``parts`` together."""
    return sum((part.usable_hours * part.count for part in parts), Decimal())


def nodes_at_once(parts: Sequence[Part]) -> int:
    """Return the most nodes that ``parts`` have at the same time; 0 without parts."""
    return max(
        (
            sum(each.count for each in parts if each.starts <= part.starts < each.ends)
            for part in parts
        ),
        default=0,
    )


def hourly(fee: Decimal | None, parts: Sequence[Part]) -> Decimal | None:
    """Return the price of a node for a usable hour; None if it is unknown.

    Args:
        fee: Upfront fee.
        parts: Capacity that the fee buys.
    """
    hours = node_hours(parts)
    return fee / hours if fee is not None and hours else None


def on_demand_price(
    region: str,
    instance_type: str,
    currency: str = DOLLARS,
    price_list: PriceList | None = None,
) -> Decimal | None:
    """Return the On-Demand price of a node for an hour; None if it is unknown.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
        currency: Currency of the offer; the prices are in US dollars.
        price_list: Prices; None takes the catalog's prices.
    """
    price = (price_list or catalog_prices()).find(region, "ec2", instance_type)
    return Decimal(str(price.price)) if price is not None and currency == DOLLARS else None


def fee_of(text: str | None, action: str) -> Decimal | None:
    """Return the upfront fee of an offering; None if AWS does not state it.

    Args:
        text: The fee, as AWS writes it.
        action: The request that returned it, as IAM calls it.

    Raises:
        UnansweredError: The fee is no number.
    """
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        reason = f"an offering came with a fee that is no number, {text!r}"
        raise UnansweredError(action, reason=reason) from None


# --- Orders of offers: by price or by start -------------------------------------------------------


Order = Literal["price", "start"]
ORDERS: Mapping[str, Order] = MappingProxyType({"price": "price", "start": "start"})

# Spot starts now, before every reservation.
_NOW = datetime.min.replace(tzinfo=UTC)


def ranked(offers: Iterable[Offer], order: Order) -> list[Offer]:
    """Return ``offers``, the best first; offers without a price come late, refused offers last.

    Args:
        offers: Offers of AWS.
        order: ``price``: the cheapest for each usable node-hour first, the earliest of equal ones;
            ``start``: the earliest first, the cheapest of equal ones. Of equal Spot offers the
            zone with the higher score is first.
    """
    return sorted(offers, key=lambda offer: _sort_key(offer, order))


def _sort_key(offer: Offer, order: Order) -> tuple[object, ...]:
    price = (offer.hourly is None, offer.hourly or Decimal())
    start = (offer.starts or _NOW,)
    first = (*price, *start) if order == "price" else (*start, *price)
    return (
        bool(offer.refused),
        *first,
        -(offer.score or 0),
        offer.instance_type,
        offer.zone or "",
        offer.id or "",
    )


# --- Sizes in which AWS sells nodes: up to 64 single instances, and whole UltraServers ------------


class Size(Frozen):
    """A size of one purchase."""

    count: int  # Its nodes
    pieces: int  # Number of purchases of this size
    ultraserver: UltraServer | None = None  # Its UltraServer; None for single instances
    ultraservers: int = 0  # Number of UltraServers; 0 for single instances


def sizes(instance_type: str, count: int) -> tuple[Size, ...]:
    """Return the sizes in which ``count`` nodes are sold.

    AWS sells at most 64 single instances at once. Of UltraServers it sells only whole ones, so the
    sizes may hold more nodes than requested.

    Args:
        instance_type: EC2 name.
        count: Nodes.
    """
    spec = catalog.lookup(instance_type)
    if spec.knows("ultraserver") and spec.ultraserver:
        whole = [(server, -(-count // server.instances)) for server in spec.ultraserver]
        return tuple(
            Size(count=number * server.instances, pieces=1, ultraserver=server, ultraservers=number)
            for server, number in whole
        )
    full, rest = divmod(count, capacity_blocks.MOST_INSTANCES)
    full_sizes = [Size(count=capacity_blocks.MOST_INSTANCES, pieces=full)] if full else []
    return (*full_sizes, *([Size(count=rest, pieces=1)] if rest else []))


def size_remark(instance_type: str, count: int) -> str | None:
    """Return a remark on the sizes of ``count`` nodes; None if one purchase is enough."""
    needed = sizes(instance_type, count)
    if needed[0].ultraserver is not None:
        ways = " or ".join(
            f"{size.ultraservers} x {size.ultraserver.name} ({size.count} nodes)"
            for size in needed
            if size.ultraserver is not None
        )
        return f"{instance_type} is sold in whole UltraServers: {ways}"
    pieces = sum(size.pieces for size in needed)
    if pieces == 1:
        return None
    listed = " and ".join(f"{size.pieces} of {size.count}" for size in needed)
    return (
        f"{count} x {instance_type} are bought in {pieces} pieces, {listed}: an offer is of one "
        "piece, and EFA reaches all of them in the same zone only"
    )
