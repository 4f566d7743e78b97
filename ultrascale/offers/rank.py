"""Orders of offers: by price or by start."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from ultrascale.offers.model import Offer

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
