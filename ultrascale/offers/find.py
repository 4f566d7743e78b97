"""Asks for all that is looked for at the same time, and puts the answers together."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from ultrascale import catalog
from ultrascale.account import Account
from ultrascale.catalog import capacity_blocks, spot, training_plans
from ultrascale.errors import UnansweredError
from ultrascale.offers.blocks import block_offers
from ultrascale.offers.model import Found, Offer, Request, Unknown
from ultrascale.offers.plans import plan_offers
from ultrascale.offers.request import is_reservable, not_asked
from ultrascale.offers.sizes import sizes, told
from ultrascale.offers.spot import Scores, SpotPrice, spot_offer, spot_prices, spot_scores, unpriced
from ultrascale.offers.throttle import Throttle
from ultrascale.offers.zones import Zones, is_in, placed, zones_of

# Requests under way at the same time.
_WORKERS = 8
_FEW_TYPES = (
    f"Spot placement scores of fewer than {spot.TYPES_FOR_A_SCORE} instance types are always low; "
    f"AWS scores the best {spot.SCORED_ZONES} zones only"
)

_T = TypeVar("_T")
Gates = Callable[[str], Throttle]


@dataclass(slots=True)
class _Desk:
    """Takes answers, and notes what was not answered."""

    unknown: dict[str, Unknown] = field(default_factory=dict[str, Unknown])

    def wait(self, what: str, answer: "Future[_T]", otherwise: _T) -> _T:
        """Return an answer, ``otherwise`` where there is none."""
        try:
            return answer.result()
        except UnansweredError as error:
            self.unknown[what] = Unknown(
                what=what, action=error.action, reason=error.reason, denied=error.denied
            )
            return otherwise


@dataclass(slots=True, kw_only=True)
class _Asked:
    """The questions of one request, each with what it is about."""

    request: Request
    reserved: list[tuple[str, "Future[list[Offer]]"]]
    prices: list[tuple[str, "Future[list[SpotPrice]]"]]
    scores: "Future[Scores] | None"


def region_gates() -> Gates:
    """Return what lets requests for offerings through: AWS counts them in each Region alone."""
    gates: dict[str, Throttle] = {}

    def gate(region: str) -> Throttle:
        if region not in gates:
            gates[region] = Throttle(
                at_once=capacity_blocks.OFFERING_REQUESTS_AT_ONCE,
                per_second=capacity_blocks.OFFERING_REQUESTS_PER_SECOND,
            )
        return gates[region]

    return gate


def find(requests: Sequence[Request], account: Account, at: datetime, gates: Gates) -> Found:
    """Return what AWS offers of ``requests`` at the moment.

    Args:
        requests: What is looked for.
        account: Who asks.
        at: What counts as now, in UTC.
        gates: What lets requests for offerings through, by Region.
    """
    regions = dict.fromkeys(region for request in requests for region in request.regions)
    desk = _Desk()
    with _threads() as threads:
        zones = {region: threads.submit(zones_of, account, region) for region in regions}
        asked = [_ask(threads, request, account, at, gates) for request in requests]
        known = {
            region: desk.wait(f"zones of {region}", answer, {}) for region, answer in zones.items()
        }
        offers = [offer for each in asked for offer in _answered(desk, each, known)]
    wanted = [offer for offer in offers if is_in(offer, offer.request.zones)]
    remarks = dict.fromkeys(line for request in requests for line in _remarks(request))
    if hidden := len(offers) - len(wanted):
        remarks[f"in other zones than were asked for: {hidden} more"] = None
    return Found(offers=tuple(wanted), unknown=tuple(desk.unknown.values()), remarks=tuple(remarks))


@contextmanager
def _threads() -> Generator[ThreadPoolExecutor]:
    """Give threads, which take no further question once the user interrupts them."""
    with ThreadPoolExecutor(max_workers=_WORKERS) as threads:
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def reservable(request: Request, instance_type: str) -> tuple[bool, bool]:
    """Return whether Capacity Blocks, and training plans, of a type are asked for.

    Args:
        request: What is looked for.
        instance_type: EC2 name.
    """
    options = request.options if is_reservable(request) else ()
    spec = catalog.lookup(instance_type)
    # What no source says, AWS is asked.
    block = not spec.knows("capacity_block") or spec.capacity_block
    plan = instance_type in training_plans.INSTANCE_TYPES
    return block and "capacity-block" in options, plan and "training-plan" in options


def _ask(
    threads: ThreadPoolExecutor, request: Request, account: Account, at: datetime, gates: Gates
) -> _Asked:
    reserved: list[tuple[str, Future[list[Offer]]]] = []
    for region in request.regions:
        gate = gates(region)
        for name in request.instance_types:
            blocks, plans = reservable(request, name)
            for size in sizes(name, request.count):
                of = f"of {size.count} x {name} in {region}"
                if blocks:
                    answer = threads.submit(
                        block_offers, account, request, region, name, size, gate
                    )
                    reserved.append((f"Capacity Blocks {of}", answer))
                if plans:
                    answer = threads.submit(plan_offers, account, request, region, name, size)
                    reserved.append((f"training plans {of}", answer))
    with_spot = "spot" in request.options
    names = ", ".join(request.instance_types)
    return _Asked(
        request=request,
        reserved=reserved,
        prices=[
            (
                f"Spot prices of {names} in {region}",
                threads.submit(spot_prices, account, request, region, at),
            )
            for region in (request.regions if with_spot else ())
        ],
        scores=threads.submit(spot_scores, account, request) if with_spot else None,
    )


def _answered(desk: _Desk, asked: _Asked, zones: dict[str, Zones]) -> Iterator[Offer]:
    request = asked.request
    offers = [offer for what, answer in asked.reserved for offer in desk.wait(what, answer, [])]
    prices = [price for what, answer in asked.prices for price in desk.wait(what, answer, [])]
    scores: Scores = {}
    if asked.scores is not None:
        what = f"Spot placement scores of {', '.join(request.instance_types)}"
        scores = desk.wait(what, asked.scores, {})
    offers += _spot(request, prices, scores, zones)
    for offer in offers:
        yield placed(offer, zones[offer.region])


def _spot(
    request: Request, prices: Iterable[SpotPrice], scores: Scores, zones: dict[str, Zones]
) -> Iterator[Offer]:
    """Yield Spot in each zone that has a price or a score."""
    priced: set[str | None] = set()
    for price in prices:
        offer = placed(spot_offer(request, price), zones[price.region])
        priced.add(offer.zone_id)
        score = scores.get(offer.zone_id or "")
        yield replace(offer, score=None if score is None else score[1])
    for zone_id, (region, score) in scores.items():
        if zone_id not in priced:
            names = " or ".join(request.instance_types)
            yield replace(unpriced(request, region, zone_id, names), score=score)


def _remarks(request: Request) -> Iterator[str]:
    yield from not_asked(request)
    for name in request.instance_types:
        blocks, plans = reservable(request, name)
        if not is_reservable(request):
            continue
        if "capacity-block" in request.options and not blocks:
            yield f"no Capacity Blocks are sold of {name}"
        if "training-plan" in request.options and not plans:
            yield f"no training plans are sold of {name}"
        if plans:
            yield from _odd_sizes(name, request.count)
        pieces = told(name, request.count) if blocks or plans else None
        if pieces is not None:
            yield pieces
    if "spot" in request.options and len(request.instance_types) < spot.TYPES_FOR_A_SCORE:
        yield _FEW_TYPES


def _odd_sizes(instance_type: str, count: int) -> Iterator[str]:
    sold = ", ".join(str(size) for size in training_plans.SIZES)
    for size in sizes(instance_type, count):
        if size.ultraserver is None and size.count not in training_plans.SIZES:
            yield (
                f"training plans are of {sold} nodes by AWS's guide; {size.count} may never be on "
                "offer"
            )
