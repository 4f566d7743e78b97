"""Search for offers: parallel requests to AWS, and one result."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec.structs import replace

from ultrascale.account.zones import Zones, zones_of
from ultrascale.catalog import capacity_blocks, training_plans
from ultrascale.catalog.regions import is_zone_id
from ultrascale.errors import UnansweredError
from ultrascale.offers.blocks import Throttle, block_offers, starts_in_time
from ultrascale.offers.model import (
    DOLLARS,
    RESERVED,
    Found,
    Offer,
    Part,
    Request,
    Size,
    Unknown,
    fee_of,
    hourly,
    nodes_at_once,
    on_demand_price,
    sizes,
)
from ultrascale.offers.request import remarks, reservable
from ultrascale.offers.spot import (
    Scores,
    SpotPrice,
    spot_offer,
    spot_prices,
    spot_scores,
    unpriced_offer,
)
from ultrascale.plan.advice.purchases import PoolOfFile, Purchase, why_not_in, why_not_planned
from ultrascale.plan.capacity import training_plan_window

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.literals import ReservedCapacityInstanceTypeType
    from mypy_boto3_sagemaker.type_defs import (
        ReservedCapacityOfferingTypeDef,
        SearchTrainingPlanOfferingsRequestTypeDef,
        TrainingPlanOfferingTypeDef,
    )

    from ultrascale.account import Account
    from ultrascale.config import Reading


# --- Reasons why no cluster file can use an offer, by the plan's rules for the resulting pool -----


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


# --- Search for offers: parallel requests to AWS, and one result ----------------------------------


# --- Offerings of SageMaker training plans, for HyperPod ------------------------------------------
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html


ACTION = "sagemaker:SearchTrainingPlanOfferings"
_HOURS = 24
# Like Capacity Blocks, plans end at a fixed time of day.
_LONGER = timedelta(days=1)


def plan_offers(
    account: "Account", request: Request, region: str, instance_type: str, size: Size
) -> list[Offer]:
    """Return the training plans that AWS offers of one type and size; the answer has one page.

    We assume that EC2 reclaims each part of a plan with gaps as early as a whole plan: AWS's pages
    describe only whole plans.

    Args:
        account: The account that asks.
        request: The request, with `days`.
        region: AWS Region.
        instance_type: EC2 name.
        size: Nodes of a plan.

    Raises:
        UnansweredError: AWS did not answer, or an offering lacks a field.
    """
    answer = account.ask(
        account.client("sagemaker", region).search_training_plan_offerings,
        **_parameters(request, instance_type, size),
    )
    offers = [
        _offer(offering, request, region, instance_type, size)
        for offering in answer["TrainingPlanOfferings"]
    ]
    return [offer for offer in offers if starts_in_time(offer, request)]


def _parameters(
    request: Request, instance_type: str, size: Size
) -> "SearchTrainingPlanOfferingsRequestTypeDef":
    assert request.days is not None, "training plans are sold by days"
    parameters: SearchTrainingPlanOfferingsRequestTypeDef = {
        "DurationHours": request.days * _HOURS,
        "TargetResources": [training_plans.TARGET],
    }
    if size.ultraserver is None:
        parameters["InstanceType"] = cast(
            "ReservedCapacityInstanceTypeType", training_plans.TYPE_PREFIX + instance_type
        )
        parameters["InstanceCount"] = size.count
    else:
        parameters["UltraServerType"] = training_plans.TYPE_PREFIX + size.ultraserver.name
        parameters["UltraServerCount"] = size.ultraservers
    if request.starts is not None:
        parameters["StartTimeAfter"] = request.starts
    if request.until is not None:
        parameters["EndTimeBefore"] = request.until + timedelta(days=request.days) + _LONGER
    return parameters


def _offer(
    offering: "TrainingPlanOfferingTypeDef",
    request: Request,
    region: str,
    instance_type: str,
    size: Size,
) -> Offer:
    capacities = offering.get("ReservedCapacityOfferings", [])
    parts = tuple(sorted(map(_part_of_plan, capacities), key=lambda part: part.starts))
    fee = fee_of(offering.get("UpfrontFee"), ACTION)
    currency = offering.get("CurrencyCode", DOLLARS)
    notes = [f"in {len(parts)} parts"] if len(parts) > 1 else []
    if size.ultraserver is not None:
        # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingPlan.html
        notes.append(f"{size.ultraservers} x {size.ultraserver.name}, one instance of each a spare")
    return Offer(
        id=offering["TrainingPlanOfferingId"],
        option="training-plan",
        request=request,
        region=region,
        zone=parts[0].zone if parts else None,
        zone_id=None,
        instance_type=instance_type,
        count=nodes_at_once(parts) or size.count,
        parts=parts,
        fee=fee,
        currency=currency,
        hourly=hourly(fee, parts),
        on_demand=on_demand_price(region, instance_type, currency),
        score=None,
        notes=tuple(notes),
    )


def _part_of_plan(capacity: "ReservedCapacityOfferingTypeDef") -> Part:
    window = training_plan_window(capacity["StartTime"], capacity["EndTime"])
    return Part(
        zone=capacity.get("AvailabilityZone"),
        zone_id=None,
        instance_type=capacity["InstanceType"].removeprefix(training_plans.TYPE_PREFIX),
        count=capacity["InstanceCount"],
        starts=window.starts,
        usable_until=window.usable_until,
        ends=window.ends,
    )


# Parallel requests.
_WORKERS = 8

_T = TypeVar("_T")
Gates = Callable[[str], Throttle]


@dataclass(slots=True)
class _Desk:
    """Collector of answers, which notes every missing answer."""

    unknown: dict[str, Unknown] = field(default_factory=dict[str, Unknown])

    def wait(self, what: str, answer: "Future[_T]", otherwise: _T) -> _T:
        """Return an answer; ``otherwise`` if AWS did not answer."""
        try:
            return answer.result()
        except UnansweredError as error:
            self.unknown[what] = Unknown(
                what=what, action=error.action, reason=error.reason, denied=error.denied
            )
            return otherwise


@dataclass(slots=True, kw_only=True)
class _Questions:
    """Pending requests to AWS for a `Request`, each with its subject."""

    request: Request
    reserved: list[tuple[str, "Future[list[Offer]]"]]
    prices: list[tuple[str, "Future[list[SpotPrice]]"]]
    scores: "Future[Scores] | None"


def region_gates() -> Gates:
    """Return a throttle of requests for offerings for each Region: AWS limits them by Region."""
    gates: dict[str, Throttle] = {}

    def gate(region: str) -> Throttle:
        if region not in gates:
            gates[region] = Throttle(
                at_once=capacity_blocks.OFFERING_REQUESTS_AT_ONCE,
                per_second=capacity_blocks.OFFERING_REQUESTS_PER_SECOND,
            )
        return gates[region]

    return gate


def find(
    requests: Sequence[Request],
    account: "Account",
    at: datetime,
    gates: Gates,
    file: "Reading | None" = None,
) -> Found:
    """Return the current offers for ``requests``; unusable offers carry their reasons.

    Args:
        requests: The requests.
        account: The account that asks.
        at: The time that counts as now, in UTC.
        gates: Throttle of requests for offerings, by Region.
        file: The cluster file whose pools the requests are for; None for any file.
    """
    regions = dict.fromkeys(region for request in requests for region in request.regions)
    desk = _Desk()
    with _threads() as threads:
        zones = {region: threads.submit(zones_of, account, region) for region in regions}
        asked = [_start_requests(threads, request, account, at, gates) for request in requests]
        known = {
            region: desk.wait(f"zones of {region}", answer, {}) for region, answer in zones.items()
        }
        offers = [
            offer for questions in asked for offer in _answered_offers(desk, questions, known)
        ]
    wanted = [offer for offer in offers if is_in(offer, offer.request.zones)]
    lines = remarks(requests)
    if hidden := len(offers) - len(wanted):
        lines += (f"{hidden} more in other zones than requested",)
    wanted = [
        replace(offer, refused=why_refused(offer, at=at, place=_place(offer, file)))
        for offer in wanted
    ]
    return Found(offers=tuple(wanted), unknown=tuple(desk.unknown.values()), remarks=lines)


def _place(offer: Offer, file: "Reading | None") -> PoolOfFile | None:
    pool = offer.request.pool
    return PoolOfFile(reading=file, pool=pool) if file is not None and pool is not None else None


@contextmanager
def _threads() -> Generator[ThreadPoolExecutor]:
    """Yield threads that begin no further request once the user interrupts."""
    with ThreadPoolExecutor(max_workers=_WORKERS) as threads:
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _start_requests(
    threads: ThreadPoolExecutor, request: Request, account: "Account", at: datetime, gates: Gates
) -> _Questions:
    reserved: list[tuple[str, Future[list[Offer]]]] = []
    for region in request.regions:
        gate = gates(region)
        for name in request.instance_types:
            options = reservable(request, name)
            for size in sizes(name, request.count):
                of = f"of {size.count} x {name} in {region}"
                if "capacity-block" in options:
                    answer = threads.submit(
                        block_offers, account, request, region, name, size, gate
                    )
                    reserved.append((f"Capacity Blocks {of}", answer))
                if "training-plan" in options:
                    answer = threads.submit(plan_offers, account, request, region, name, size)
                    reserved.append((f"training plans {of}", answer))
    with_spot = "spot" in request.options
    names = ", ".join(request.instance_types)
    return _Questions(
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


def _answered_offers(desk: _Desk, asked: _Questions, zones: dict[str, Zones]) -> Iterator[Offer]:
    request = asked.request
    offers = [offer for what, answer in asked.reserved for offer in desk.wait(what, answer, [])]
    prices = [price for what, answer in asked.prices for price in desk.wait(what, answer, [])]
    scores: Scores = {}
    if asked.scores is not None:
        what = f"Spot placement scores of {', '.join(request.instance_types)}"
        scores = desk.wait(what, asked.scores, {})
    offers += _spot_offers(request, prices, scores, zones)
    for offer in offers:
        yield placed(offer, zones[offer.region])


def _spot_offers(
    request: Request, prices: Iterable[SpotPrice], scores: Scores, zones: dict[str, Zones]
) -> Iterator[Offer]:
    priced: set[str | None] = set()
    for price in prices:
        offer = placed(spot_offer(request, price), zones[price.region])
        priced.add(offer.zone_id)
        score = scores.get(offer.zone_id or "")
        yield replace(offer, score=None if score is None else score[1])
    for zone_id, (region, score) in scores.items():
        if zone_id not in priced:
            names = " or ".join(request.instance_types)
            yield replace(unpriced_offer(request, region, zone_id, names), score=score)


def placed(offer: Offer, zones: Zones) -> Offer:
    """Return ``offer`` with name and id of each zone, as far as ``zones`` has them."""
    zone = zones.get(offer.zone or offer.zone_id or "")
    name, zone_id = _name_and_id(offer.zone, offer.zone_id, zones)
    notes = offer.notes
    if zone is not None and not zone.opted_in:
        notes += (
            f"opt in to {zone.name} first: `aws ec2 modify-availability-zone-group --region "
            f"{offer.region} --group-name {zone.group} --opt-in-status opted-in`",
        )
    parts = tuple(_placed_part(part, zones) for part in offer.parts)
    return replace(offer, zone=name, zone_id=zone_id, parts=parts, notes=notes)


def is_in(offer: Offer, wanted: tuple[str, ...]) -> bool:
    """Return whether all parts of ``offer`` are, or may be, in the ``wanted`` zones."""
    places = [(part.zone, part.zone_id) for part in offer.parts] or [(offer.zone, offer.zone_id)]
    return not wanted or all(_may_be(name, zone_id, wanted) for name, zone_id in places)


def _may_be(name: str | None, zone_id: str | None, wanted: tuple[str, ...]) -> bool:
    if {name, zone_id} & set(wanted):
        return True
    # The user may have named this zone by its name or id, whichever AWS left out.
    by_id = any(is_zone_id(zone) for zone in wanted)
    by_name = not all(is_zone_id(zone) for zone in wanted)
    return (zone_id is None and by_id) or (name is None and by_name)


def _placed_part(part: Part, zones: Zones) -> Part:
    name, zone_id = _name_and_id(part.zone, part.zone_id, zones)
    return replace(part, zone=name, zone_id=zone_id)


def _name_and_id(
    name: str | None, zone_id: str | None, zones: Zones
) -> tuple[str | None, str | None]:
    zone = zones.get(name or zone_id or "")
    return (name, zone_id) if zone is None else (zone.name, zone.id)
