"""Reasons why no cluster file can use an offer, by the plan's rules for the resulting pool."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ultrascale.offers.model import RESERVED, Offer, Part
from ultrascale.plan.advice.purchases import PoolOfFile, Purchase, why_not_in, why_not_planned


def why_refused(
    offer: Offer, *, at: datetime | None = None, place: PoolOfFile | None = None
) -> tuple[str, ...]:
    """Return why an offer would be paid for and never used; empty for a usable offer.

    Args:
        offer: The offer. Spot is never refused: it has no upfront fee.
        at: The time that counts as now, in UTC; None judges no time.
        place: The cluster file's pool that the offer is for; None for any pool.
    """
    if offer.option not in RESERVED:
        return ()
    lines = [] if at is None else [*_times(offer, at)]
    for purchase in _purchases(offer):
        lines += why_not_planned(purchase) or (why_not_in(place, purchase) if place else ())
    return tuple(dict.fromkeys(lines))


def _times(offer: Offer, at: datetime) -> Iterator[str]:
    asked = offer.request.starts
    for part in offer.parts:
        if part.usable_until <= max(at, part.starts):
            until = f"{part.usable_until:%Y-%m-%d %H:%M} UTC"
            yield f"no time is left to use it: its nodes are drained at {until}"
        elif asked is not None and part.starts < asked and asked > at:
            yield (
                f"it starts at {part.starts:%Y-%m-%d %H:%M} UTC, before the {asked:%Y-%m-%d %H:%M} "
                "UTC that was asked for"
            )


def _purchases(offer: Offer) -> Iterator[Purchase]:
    """Yield the purchases that a cluster file would name: a whole plan, or each block."""
    parts = offer.parts
    if offer.option == "training-plan" and parts:
        yield _purchase(offer, parts, count=offer.count)
        return
    for part in parts:
        yield _purchase(offer, (part,), count=part.count)


def _purchase(offer: Offer, parts: Sequence[Part], *, count: int) -> Purchase:
    zones = (part.zone or part.zone_id for part in parts)
    return Purchase(
        option=offer.option,
        region=offer.region,
        instance_type=parts[0].instance_type,
        count=count,
        zones=tuple(dict.fromkeys(zone for zone in zones if zone is not None)),
        starts=parts[0].starts,
        ends=parts[-1].ends,
    )
