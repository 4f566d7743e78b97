"""Requests for capacity, made from options or from a cluster file's pools, and their mistakes.

A request is judged by AWS's published limits before AWS is asked: AWS's answer takes seconds, and
names only one mistake at a time.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, regions, spot, training_plans
from ultrascale.errors import CatalogError, ConfigError
from ultrascale.frozen import Frozen
from ultrascale.offers.model import OPTIONS, RESERVED, Option, Request, size_remark, sizes
from ultrascale.plan import ClusterPlan, PoolPlan

FOR_POOLS = "HyperPod pools run on training plans, all others on Capacity Blocks or Spot"
"""Sentence on the purchase options of a cluster file's pools."""

_DAY = timedelta(days=1)


class Wish(Frozen):
    """Options of the command; an omitted option is empty or None."""

    regions: tuple[str, ...] = ()  # AWS Regions
    instance_types: tuple[str, ...] = ()  # EC2 names
    count: int | None = None  # Nodes
    days: int | None = None  # Duration in days
    starts: str | None = None  # Earliest start, as the user wrote it
    until: str | None = None  # Latest start, as the user wrote it
    zones: tuple[str, ...] = ()  # Names or ids of zones
    options: tuple[str, ...] = ()  # Purchase options, as the user wrote them


def request_of(wish: Wish, at: datetime) -> Request:
    """Return the request that the options alone describe.

    Args:
        wish: The options.
        at: The time that counts as now, in UTC.

    Raises:
        ConfigError: The options are wrong; all mistakes at once.
    """
    options, mistakes = _options(wish)
    starts, until, wrong = _times(wish)
    mistakes += wrong
    needed: dict[str, object] = {
        "--region us-west-2": wish.regions,
        "--type p5.48xlarge": wish.instance_types,
        "--count 16": wish.count is not None,
    }
    if set(options) & set(RESERVED):
        needed["--days 7"] = wish.days is not None
    missing = [example for example, value in needed.items() if not value]
    mistakes += [f"{example.split()[0]}: missing; write it as in {example}" for example in missing]
    request = Request(
        pool=None,
        regions=wish.regions,
        instance_types=wish.instance_types,
        count=wish.count or 0,
        days=wish.days,
        starts=starts,
        until=until,
        zones=wish.zones,
        options=options,
    )
    mistakes += _mistakes_of(request, at)
    if wish.count is not None:
        mistakes += _count_mistakes(request)
    return _valid_requests([request], mistakes)[0]


def requests_of(plan: ClusterPlan, pool: str | None, wish: Wish, at: datetime) -> list[Request]:
    """Return the requests of a cluster file's pools; each shard has a request of its own.

    Options override the file. Without ``pool``, every pool but the system pools has a request.

    Args:
        plan: The cluster.
        pool: Name of one of its pools; None for all.
        wish: The options.
        at: The time that counts as now, in UTC.

    Raises:
        ConfigError: There is no such pool, or a request is wrong; all mistakes at once.
    """
    pools = {planned.pool: planned for planned in plan.all_pools}
    if pool is not None and pool not in pools:
        raise ConfigError([f"{pool}: no such pool; the file has {', '.join(pools)}"])
    chosen = [
        planned for planned in pools.values() if planned.role != "system" and planned.max_nodes
    ]
    if pool is not None:
        chosen = [pools[pool]]
    if not chosen:
        raise ConfigError([f"{plan.name}: no pools but system ones; name one behind the file"])
    options, mistakes = _options(wish)
    starts, until, wrong = _times(wish)
    mistakes += wrong
    requests = [_pool_request(plan.region, each, wish, options, starts, until) for each in chosen]
    if not any(request.options for request in requests):
        names = " or ".join(planned.pool for planned in chosen)
        mistakes.append(f"--option: none of these is for {names}; {FOR_POOLS}")
    # A mistake in options is the same for every pool, and reported once.
    mistakes += dict.fromkeys(line for request in requests for line in _mistakes_of(request, at))
    if wish.count is not None:
        mistakes += dict.fromkeys(line for request in requests for line in _count_mistakes(request))
    return _valid_requests(requests, mistakes)


def _pool_request(
    region: str,
    pool: PoolPlan,
    wish: Wish,
    options: tuple[Option, ...],
    starts: datetime | None,
    until: datetime | None,
) -> Request:
    window = pool.window
    days = wish.days
    if days is None and window is not None:
        days = _sold_days(window.ends - window.starts)
    here = not wish.regions or wish.regions == (region,)
    # HyperPod runs on training plans and SageMaker's own capacity, the others on EC2's.
    possible = ("capacity-block", "spot") if pool.facts.in_account else ("training-plan",)
    return Request(
        pool=pool.pool,
        regions=wish.regions or (region,),
        instance_types=wish.instance_types or pool.instance_types,
        count=pool.max_nodes if wish.count is None else wish.count,
        days=days,
        starts=window.starts if starts is None and window is not None else starts,
        until=until,
        zones=wish.zones or (pool.zones if here else ()),
        options=tuple(option for option in options if option in possible),
    )


def _sold_days(length: timedelta) -> int:
    """Return the days of the shortest block that lasts ``length``; else of the longest block."""
    days = math.ceil(length / _DAY)
    return min(
        (sold for sold in capacity_blocks.DAYS if sold >= days), default=max(capacity_blocks.DAYS)
    )


def _options(wish: Wish) -> tuple[tuple[Option, ...], list[str]]:
    wanted = set(wish.options)
    known: list[Option] = [option for option in OPTIONS if wanted & {option}]
    wrong = [option for option in wish.options if option not in OPTIONS]
    mistakes = [f"--option: unknown {option!r}; write {', '.join(OPTIONS)}" for option in wrong]
    return tuple(known) or OPTIONS, mistakes


def _times(wish: Wish) -> tuple[datetime | None, datetime | None, list[str]]:
    times: list[datetime | None] = []
    mistakes: list[str] = []
    for name, text in (("--starts", wish.starts), ("--until", wish.until)):
        try:
            times.append(None if text is None else _instant(text))
        except ValueError:
            times.append(None)
            mistakes.append(f"{name}: not a time in UTC, got {text!r}; write 2026-12-01T11:30:00Z")
    return times[0], times[1], mistakes


def _instant(text: str) -> datetime:
    """Return an ISO 8601 time; a date stands for its midnight in UTC.

    Raises:
        ValueError: The text is no time, or has no time zone.
    """
    value = datetime.fromisoformat(text)
    if value.tzinfo is None and len(text) == len("2026-12-01"):
        return value.replace(tzinfo=UTC)
    if value.tzinfo is None:
        raise ValueError(text)
    return value.astimezone(UTC)


def _mistakes_of(request: Request, at: datetime) -> Iterator[str]:
    """Yield the mistakes of a request, made from options or from a file.

    Args:
        request: The request.
        at: The time that counts as now, in UTC.
    """
    for region in request.regions:
        try:
            regions.lookup_region(region)
        except CatalogError as error:
            yield f"--region: {error}"
    partitions = {
        regions.REGIONS[region].partition: region
        for region in request.regions
        if region in regions.REGIONS
    }
    if len(partitions) > 1:
        yield (
            f"--region: no credentials work in both {' and '.join(partitions.values())}; ask for "
            "each by itself"
        )
    if len(request.regions) > spot.SCORED_REGIONS:
        yield f"--region: {len(request.regions)} Regions; AWS scores {spot.SCORED_REGIONS} at most"
    for name in request.instance_types:
        try:
            catalog.lookup(name)
        except CatalogError as error:
            plain = name.removeprefix(training_plans.TYPE_PREFIX)
            wrong = f"an instance type with SageMaker's prefix, got {name!r}; write {plain}"
            yield f"--type: {error if plain == name else wrong}"
    yield from _zone_mistakes(request)
    yield from _days_mistakes(request)
    yield from _time_mistakes(request, at)


def _zone_mistakes(request: Request) -> Iterator[str]:
    known = [each for each in request.regions if each in regions.REGIONS]
    for zone in request.zones:
        if known and not any(regions.zone_in_region(zone, region) for region in known):
            names = ", ".join(known)
            yield f"--zone: not a zone of {names}, got {zone!r}; write us-west-2b or usw2-az2"


def _count_mistakes(request: Request) -> Iterator[str]:
    """Yield the mistakes in the number of nodes that the options ask for."""
    if request.count < 1:
        yield f"--count: no nodes, got {request.count}; write 1 or more"
    most = capacity_blocks.MOST_TOGETHER
    if request.count > most and "capacity-block" in request.options:
        yield (
            f"--count: an account may have {most} instances in Capacity Blocks at a time, got "
            f"{request.count}; ask for fewer, or add --option training-plan or spot"
        )


def _days_mistakes(request: Request) -> Iterator[str]:
    days, blocks = request.days, "capacity-block" in request.options
    if days is None or not set(request.options) & set(RESERVED):
        return
    most = training_plans.LONGEST_DAYS
    if not 1 <= days <= most:
        yield f"--days: Capacity Blocks and training plans last 1 to {most} days, got {days}"
    elif blocks and days not in capacity_blocks.DAYS:
        shorter = max(sold for sold in capacity_blocks.DAYS if sold < days)
        yield (
            f"--days: Capacity Blocks last 1 to {capacity_blocks.LONGEST_BY_THE_DAY} days, or "
            f"whole weeks up to {most}, got {days}; write {shorter} or "
            f"{min(sold for sold in capacity_blocks.DAYS if sold > days)}, or add --option "
            "training-plan, which is sold by the day"
        )


def _time_mistakes(request: Request, at: datetime) -> Iterator[str]:
    if not set(request.options) & set(RESERVED):
        return
    latest = at + capacity_blocks.LONGEST_AHEAD
    starts = "--starts" if request.pool is None else f"{request.pool}: --starts or purchase.starts"
    for name, time in ((starts, request.starts), ("--until", request.until)):
        if time is not None and time > latest:
            weeks = capacity_blocks.LONGEST_AHEAD // timedelta(weeks=1)
            yield (
                f"{name}: nothing is sold more than {weeks} weeks ahead, got {_iso_text(time)}; "
                f"ask for {_iso_text(latest)} at the latest"
            )
        elif time is not None and time < at:
            # The next full hour: it lies ahead while the user writes it.
            soon = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            option = "--until" if name == "--until" else "--starts"
            yield f"{name}: over, got {_iso_text(time)}; write {option} {_iso_text(soon)} or later"
    if request.starts is not None and request.until is not None and request.until < request.starts:
        yield f"--until: before the earliest start, {_iso_text(request.starts)}; write a later time"


def _iso_text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%MZ}"


def _valid_requests(requests: list[Request], mistakes: Sequence[str]) -> list[Request]:
    if mistakes:
        raise ConfigError(mistakes)
    return requests


# --- Scope of a request: the requests to AWS, and remarks on requests that are not sent -----------


_NAMES: dict[Option, str] = {"capacity-block": "Capacity Blocks", "training-plan": "training plans"}
_FEW_TYPES = (
    f"Spot placement scores of fewer than {spot.TYPES_FOR_A_SCORE} instance types are always low; "
    f"AWS scores the best {spot.SCORED_ZONES} zones only"
)


def reservable(request: Request, instance_type: str) -> frozenset[Option]:
    """Return the purchase options of reserved capacity to request for one type.

    Args:
        request: The request.
        instance_type: EC2 name.
    """
    if request.days is None:
        return frozenset()
    options = _options_on_sale(instance_type) & set(request.options)
    return options - {"capacity-block"} if _is_above_limit(request) else options


def remarks(requests: Sequence[Request]) -> tuple[str, ...]:
    """Return remarks: the requests that are not sent, with reasons, and the sizes on sale."""
    lines = [
        line
        for request in requests
        for line in (*_unasked_remarks(request), *_size_remarks(request))
    ]
    for option, name in _NAMES.items():
        without = dict.fromkeys(
            instance_type
            for request in requests
            for instance_type in request.instance_types
            if option in request.options and option not in _options_on_sale(instance_type)
        )
        if without:
            lines.append(f"no {name} are sold of {', '.join(without)}")
    if any(
        "spot" in request.options and len(request.instance_types) < spot.TYPES_FOR_A_SCORE
        for request in requests
    ):
        lines.append(_FEW_TYPES)
    return tuple(dict.fromkeys(lines))


def warnings(request: Request) -> Iterator[str]:
    """Yield a warning for each type that the catalog does not list in a Region."""
    planned = request.options == ("training-plan",)
    where = "for HyperPod" if planned else "On-Demand"
    for region in request.regions:
        for name in request.instance_types:
            if regions.offered(name, region, by="sagemaker" if planned else "ec2") is False:
                yield (
                    f"{name} is not listed {where} in {region}; AWS is asked nevertheless, for the "
                    "list ages and knows no blocks and plans"
                )


def _options_on_sale(instance_type: str) -> frozenset[Option]:
    spec = catalog.lookup(instance_type)
    options: set[Option] = set()
    # Without a source, AWS is asked.
    if not spec.knows("capacity_block") or spec.capacity_block:
        options.add("capacity-block")
    if spec.training_plan:
        options.add("training-plan")
    return frozenset(options)


def _is_above_limit(request: Request) -> bool:
    return request.count > capacity_blocks.MOST_TOGETHER


def _unasked_remarks(request: Request) -> Iterator[str]:
    where = "" if request.pool is None else f"{request.pool}: "
    if not request.options:
        yield f"{where}nothing is asked for: {FOR_POOLS}"
    wanted = {option for name in request.instance_types for option in _options_on_sale(name)}
    wanted &= set(request.options)
    if wanted and request.days is None:
        names = " and ".join(name for option, name in _NAMES.items() if option in wanted)
        yield f"{where}{names} are not asked for: add --days"
    elif "capacity-block" in wanted and _is_above_limit(request):
        yield (
            f"{where}{request.count:,} nodes are more than the {capacity_blocks.MOST_TOGETHER} "
            "that an account may have in Capacity Blocks at a time, which are not asked for: ask "
            "your account team, or add a smaller --count"
        )


def _size_remarks(request: Request) -> Iterator[str]:
    for name in request.instance_types:
        options = reservable(request, name)
        pieces = size_remark(name, request.count) if options else None
        if pieces is not None:
            yield pieces
        for size in sizes(name, request.count) if "training-plan" in options else ():
            if size.ultraserver is None and size.count not in training_plans.SIZES:
                sold = ", ".join(str(count) for count in training_plans.SIZES)
                yield (
                    f"training plans are of {sold} nodes by AWS's guide; {size.count} may never be "
                    "on offer"
                )
