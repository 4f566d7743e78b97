"""What is wrong with what is looked for.

It is judged by what AWS sells, before AWS is asked: its answers take seconds, and tell of one
mistake at a time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, hyperpod, regions, spot, training_plans
from ultrascale.errors import CatalogError
from ultrascale.offers.model import RESERVED, Request


def mistakes_of(request: Request, at: datetime) -> Iterator[str]:
    """Yield what is wrong with ``request``, whatever says it.

    Args:
        request: What is looked for.
        at: What counts as now, in UTC.
    """
    for region in request.regions:
        try:
            regions.lookup_region(region)
        except CatalogError as error:
            yield f"--region: {error}"
    partitions = {
        regions.REGIONS[each].partition: each for each in request.regions if each in regions.REGIONS
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
            plain = name.removeprefix(hyperpod.TYPE_PREFIX)
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


def count_mistakes(request: Request) -> Iterator[str]:
    """Yield what is wrong with the nodes that options ask for."""
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
        shorter = max(each for each in capacity_blocks.DAYS if each < days)
        yield (
            f"--days: Capacity Blocks last 1 to {capacity_blocks.LONGEST_BY_THE_DAY} days, or "
            f"whole weeks up to {most}, got {days}; write {shorter} or "
            f"{min(each for each in capacity_blocks.DAYS if each > days)}, or add --option "
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
                f"{name}: nothing is sold more than {weeks} weeks ahead, got {_told(time)}; ask "
                f"for {_told(latest)} at the latest"
            )
        elif time is not None and time < at:
            # A full hour, which is not over before it is written.
            soon = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            option = "--until" if name == "--until" else "--starts"
            yield f"{name}: over, got {_told(time)}; write {option} {_told(soon)} or later"
    if request.starts is not None and request.until is not None and request.until < request.starts:
        yield f"--until: before the earliest start, {_told(request.starts)}; write a later time"


def _told(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%MZ}"
