"""Tables, remarks and JSON of offers of AWS."""

import json
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from rich.box import SIMPLE

from ultrascale.catalog import capacity_blocks, training_plans
from ultrascale.catalog.prices import Price
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.offers.model import DOLLARS, Found, Offer, Part, Request, Unknown

_NOTHING_KNOWN = "no offer is known, and not all was answered:"
_LEFT = ("option", "pool", "type", "zone", "starts", "ends")
_RIGHT = ("nodes", "usable\nhours", "fee", "by usable\nnode-hour", "of On-\nDemand", "score")


def print_offers(
    found: Found,
    offers: Sequence[Offer],
    requests: Sequence[Request],
    profile: str | None,
    file: Path | None = None,
) -> None:
    """Print a table of ``offers``, and below it remarks and unanswered questions.

    Args:
        found: Result of the search.
        offers: The result's offers in order.
        requests: Requests of the search.
        profile: Profile that the user named.
        file: The cluster file that was searched for; None for options alone.
    """
    console = screen()
    if offers:
        console.print(_table(offers))
    else:
        say(_NOTHING_KNOWN if found.unknown else "nothing is on offer")
    for line in _remark_lines(found, offers, requests, profile, file):
        say(line)


def as_json(
    found: Found,
    offers: Sequence[Offer],
    requests: Sequence[Request],
    at: datetime,
    profile: str | None,
    file: Path | None = None,
) -> str:
    """Return the result of a search as JSON.

    Args:
        found: Result of the search.
        offers: The result's offers in order.
        requests: Requests of the search.
        at: Time of the search, in UTC.
        profile: Profile that the user named.
        file: The cluster file that was searched for; None for options alone.
    """
    document = {
        "at": _instant(at),
        "offers": [_offer(offer, profile, file) for offer in offers],
        "unknown": [
            {"what": each.what, "action": each.action, "reason": each.reason, "denied": each.denied}
            for each in found.unknown
        ],
        "on_demand": [
            {
                "region": region,
                "instance_type": name,
                "usd_per_hour": None if price is None else price.price,
                "on": None if price is None else str(price.valid_on),
            }
            for region, name, price in _on_demand_prices(found, requests)
        ],
        "remarks": list(found.remarks),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def buy_command(offer: Offer, profile: str | None, file: Path | None = None) -> str | None:
    """Return the command that shows the terms of ``offer``; None for an offer without purchase.

    Args:
        offer: An offer of AWS.
        profile: Profile that the user named: without it, another account may pay.
        file: The cluster file that was searched for; None for options alone.
    """
    if offer.id is None or offer.refused:
        return None
    request = offer.request
    words = [f"ultrascale capacity buy {offer.id}", f"--option {offer.option}"]
    words.append(f"--region {offer.region}")
    words += [f"--type {offer.instance_type}", f"--count {request.count}", f"--days {request.days}"]
    if request.starts is not None:
        words.append(f"--starts {_instant(request.starts)}")
    if request.until is not None:
        words.append(f"--until {_instant(request.until)}")
    if offer.fee is not None:
        words.append(f"--fee {offer.fee:f}")
    if file is not None and request.pool is not None:
        words.append(f"--file {shlex.quote(str(file))} --pool {request.pool}")
    if profile is not None:
        words.append(f"--profile {shlex.quote(profile)}")
    return " ".join(words)


def _table(offers: Sequence[Offer]) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for title in _LEFT:
        table.add_column(title, no_wrap=True)
    for title in _RIGHT:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("offering", no_wrap=True)
    for offer in offers:
        hours = offer.usable_hours
        table.add_row(
            offer.option,
            offer.request.pool or "",
            offer.instance_type,
            _zone_text(offer),
            "now" if offer.starts is None else _minute(offer.starts),
            "" if offer.ends is None else _minute(offer.ends),
            str(offer.count),
            "" if hours is None else f"{hours:,.1f}",
            _money(offer.fee, offer) if offer.option != "spot" else "",
            _money(offer.hourly, offer),
            "unknown" if offer.ratio is None else f"{offer.ratio:.2f}",
            "" if offer.score is None else str(offer.score),
            offer.id or "",
        )
    return table


def _remark_lines(
    found: Found,
    offers: Sequence[Offer],
    requests: Sequence[Request],
    profile: str | None,
    file: Path | None,
) -> Iterator[str]:
    for offer in offers:
        yield from (f"{offer.id}: CANNOT BE USED: {reason}" for reason in offer.refused)
        yield from (f"{offer.id or _zone_text(offer)}: {note}" for note in offer.notes)
        for part in offer.parts if len(offer.parts) > 1 else ():
            place = part.zone or part.zone_id or "a zone that is unknown"
            yield (
                f"{offer.id}: {part.count} nodes in {place} from {_minute(part.starts)} until "
                f"{_minute(part.ends)}"
            )
    yield from (_unanswered(each) for each in found.unknown)
    yield from _on_demand_lines(found, requests)
    yield from found.remarks
    if any(offer.option == "training-plan" for offer in offers):
        yield (
            "training plans here are for HyperPod pools alone, and held against EC2's price; the "
            "catalog has none of SageMaker"
        )
    commands = (buy_command(offer, profile, file) for offer in offers)
    buyable = [command for command in commands if command is not None]
    if buyable:
        drained = capacity_blocks.DRAINED_BEFORE_RECLAIM
        early = [
            (capacity_blocks.reclaimed_before_end(ultraserver=each) + drained)
            // timedelta(minutes=1)
            for each in (False, True)
        ]
        yield (
            f"usable hours end when nodes are drained: {early[0]} minutes before the end of a "
            f"Capacity Block, {early[1]} of an UltraServer's, "
            f"{training_plans.RECLAIMED_EARLY_MINUTES} of a training plan"
        )
        yield f"the terms of the first, which buys nothing: {buyable[0]}"


def _on_demand_lines(found: Found, requests: Sequence[Request]) -> Iterator[str]:
    unpriced: dict[str, list[str]] = {}
    for region, name, price in _on_demand_prices(found, requests):
        if price is None:
            unpriced.setdefault(region, []).append(name)
        else:
            each = f"${price.price:g} an hour on {price.valid_on}"
            yield f"On-Demand: {name} in {region}: {each}"
    for region, names in unpriced.items():
        yield (
            f"On-Demand: unknown: no price in {region} of {', '.join(names)}; get it with: "
            f"ultrascale prices {region} -o prices.csv, and add --prices prices.csv"
        )


def _unanswered(unknown: Unknown) -> str:
    line = f"unknown: {unknown.what}: {unknown.action}: {unknown.reason}"
    return f"{line}; allow {unknown.action} in a policy" if unknown.denied else line


def _on_demand_prices(
    found: Found, requests: Sequence[Request]
) -> Iterator[tuple[str, str, Price | None]]:
    """Yield Region, type and On-Demand price of every searched type; None for an unknown price."""
    pairs = dict.fromkeys(
        (region, name)
        for request in requests
        for region in request.regions
        for name in request.instance_types
    )
    for region, name in pairs:
        yield region, name, found.prices.find(region, "ec2", name)


def _offer(offer: Offer, profile: str | None, file: Path | None) -> dict[str, object]:
    return {
        "id": offer.id,
        "option": offer.option,
        "pool": offer.request.pool,
        "region": offer.region,
        "zone": offer.zone,
        "zone_id": offer.zone_id,
        "instance_type": offer.instance_type,
        "count": offer.count,
        "starts": None if offer.starts is None else _instant(offer.starts),
        "ends": None if offer.ends is None else _instant(offer.ends),
        "usable_hours": _float(offer.usable_hours),
        "fee": _float(offer.fee),
        "currency": offer.currency,
        "per_usable_node_hour": _float(offer.hourly),
        "on_demand": _float(offer.on_demand),
        "ratio": _float(offer.ratio),
        "score": offer.score,
        "parts": [_part_document(part) for part in offer.parts],
        "notes": list(offer.notes),
        "refused": list(offer.refused),
        "buy": buy_command(offer, profile, file),
    }


def _part_document(part: Part) -> dict[str, object]:
    return {
        "zone": part.zone,
        "zone_id": part.zone_id,
        "instance_type": part.instance_type,
        "count": part.count,
        "starts": _instant(part.starts),
        "usable_until": _instant(part.usable_until),
        "ends": _instant(part.ends),
    }


def _zone_text(offer: Offer) -> str:
    both = [each for each in (offer.zone, offer.zone_id) if each is not None]
    return " ".join(both) or f"{offer.region}, zone unknown"


def _money(value: Decimal | None, offer: Offer) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if offer.currency == DOLLARS else f"{value:,.2f} {offer.currency}"


def _float(value: Decimal | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _instant(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
