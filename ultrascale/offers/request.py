"""What is looked for, as options or the pools of a cluster file say it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ultrascale.catalog import capacity_blocks
from ultrascale.errors import ConfigError
from ultrascale.offers.mistakes import count_mistakes, mistakes_of
from ultrascale.offers.model import OPTIONS, RESERVED, Option, Request
from ultrascale.plan import ClusterPlan, PoolPlan

FOR_POOLS = "HyperPod pools run on training plans, all others on Capacity Blocks or Spot"
"""What can be bought for the pools of a cluster file."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What options say; what they leave out is empty or None.

    Attributes:
        regions: Where to look.
        instance_types: EC2 names.
        count: Nodes.
        days: For how long.
        starts: Earliest start, as written.
        until: Latest start, as written.
        zones: Names or ids of zones.
        options: What to ask for, as written.
    """

    regions: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    count: int | None = None
    days: int | None = None
    starts: str | None = None
    until: str | None = None
    zones: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def request_of(wish: Wish, at: datetime) -> Request:
    """Return what options alone ask for.

    Args:
        wish: The options.
        at: What counts as now, in UTC.

    Raises:
        ConfigError: They are wrong; all mistakes at once.
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
    mistakes += [f"{each.split()[0]}: missing; write it as in {each}" for each in missing]
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
    mistakes += mistakes_of(request, at)
    if wish.count is not None:
        mistakes += count_mistakes(request)
    return _or_refuse([request], mistakes)[0]


def requests_of(plan: ClusterPlan, pool: str | None, wish: Wish, at: datetime) -> list[Request]:
    """Return what the pools of a cluster file ask for, each of its shards for itself.

    Options replace what the file says. Without ``pool`` it is every pool but the system ones.

    Args:
        plan: The cluster.
        pool: Name of one of its pools; None for all.
        wish: The options.
        at: What counts as now, in UTC.

    Raises:
        ConfigError: There is no such pool, or something is wrong; all mistakes at once.
    """
    pools = {each.pool: each for each in plan.all_pools}
    if pool is not None and pool not in pools:
        raise ConfigError([f"{pool}: no such pool; the file has {', '.join(pools)}"])
    chosen = [each for each in pools.values() if each.role != "system" and each.max_nodes]
    if pool is not None:
        chosen = [pools[pool]]
    if not chosen:
        raise ConfigError([f"{plan.name}: no pools but system ones; name one behind the file"])
    options, mistakes = _options(wish)
    starts, until, wrong = _times(wish)
    mistakes += wrong
    requests = [_of_pool(plan, each, wish, options, starts, until) for each in chosen]
    if not any(each.options for each in requests):
        names = " or ".join(each.pool for each in chosen)
        mistakes.append(f"--option: none of these is for {names}; {FOR_POOLS}")
    # What options say is wrong for each pool alike, and told once.
    mistakes += dict.fromkeys(line for each in requests for line in mistakes_of(each, at))
    if wish.count is not None:
        mistakes += dict.fromkeys(line for each in requests for line in count_mistakes(each))
    return _or_refuse(requests, mistakes)


def _of_pool(
    plan: ClusterPlan,
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
    here = not wish.regions or wish.regions == (plan.region,)
    # HyperPod runs on training plans and SageMaker's own capacity, the others on EC2's.
    possible = ("training-plan",) if pool.is_hyperpod else ("capacity-block", "spot")
    return Request(
        pool=pool.pool,
        regions=wish.regions or (plan.region,),
        instance_types=wish.instance_types or pool.instance_types,
        count=pool.max_nodes if wish.count is None else wish.count,
        days=days,
        starts=window.starts if starts is None and window is not None else starts,
        until=until,
        zones=wish.zones or (pool.zones if here else ()),
        options=tuple(each for each in options if each in possible),
    )


def _sold_days(length: timedelta) -> int:
    """Return the days of the shortest block that lasts ``length``, the longest where none does."""
    days = math.ceil(length / _DAY)
    return min(
        (each for each in capacity_blocks.DAYS if each >= days), default=max(capacity_blocks.DAYS)
    )


def _options(wish: Wish) -> tuple[tuple[Option, ...], list[str]]:
    wanted = set(wish.options)
    known: list[Option] = [each for each in OPTIONS if wanted & {each}]
    wrong = [each for each in wish.options if each not in OPTIONS]
    mistakes = [f"--option: unknown {each!r}; write {', '.join(OPTIONS)}" for each in wrong]
    return tuple(known) or OPTIONS, mistakes


def _times(wish: Wish) -> tuple[datetime | None, datetime | None, list[str]]:
    found: list[datetime | None] = []
    mistakes: list[str] = []
    for name, text in (("--starts", wish.starts), ("--until", wish.until)):
        try:
            found.append(None if text is None else _instant(text))
        except ValueError:
            found.append(None)
            mistakes.append(f"{name}: not a time in UTC, got {text!r}; write 2026-12-01T11:30:00Z")
    return found[0], found[1], mistakes


def _instant(text: str) -> datetime:
    """Return an ISO 8601 time; a date is its midnight in UTC.

    Raises:
        ValueError: It is no time, or says no zone.
    """
    value = datetime.fromisoformat(text)
    if value.tzinfo is None and len(text) == len("2026-12-01"):
        return value.replace(tzinfo=UTC)
    if value.tzinfo is None:
        raise ValueError(text)
    return value.astimezone(UTC)


def _or_refuse(requests: list[Request], mistakes: Sequence[str]) -> list[Request]:
    if mistakes:
        raise ConfigError(mistakes)
    return requests
