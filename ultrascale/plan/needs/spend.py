"""Cost of a cluster a day, over the time of its windows."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise

from msgspec.structs import replace

from ultrascale.plan.model import (
    ClusterNeeds,
    MoneyItem,
    MoneyNeeds,
    PoolNeeds,
    SpendNeeds,
    SpendPart,
    SpendStep,
    WindowNeeds,
)
from ultrascale.plan.needs.pools import PURCHASES
from ultrascale.plan.needs.tables import Row, daily_total, dollars_at

_HOURS = 24
_DAY = timedelta(days=1)
_USD_PER_HOUR = "usd_per_hour"
_ASSUMPTIONS = (
    "every pool has all of its nodes, for all of the time that it may have any",
    "a pool with a window costs from its start to its end, the drain included",
)


def plan_spend(
    pools: Sequence[PoolNeeds], money: MoneyNeeds, calendar: Sequence[WindowNeeds]
) -> SpendNeeds:
    """Return the cost of a cluster a day.

    Args:
        pools: Needs of its pools.
        money: Their costs, in the same order.
        calendar: Windows of the pools that have one.
    """
    purchases = {pool.pool: pool.purchase for pool in money.pools}
    baseline = _baseline(money.items)
    pool_of = {item.name: item.pool for item in money.items}
    parts = [*baseline]
    parts += [
        SpendPart(
            name=pool.pool,
            kind="pool",
            purchase=purchases[pool.pool],
            usd_per_day=value * _HOURS,
        )
        for pool in pools
        if (value := pool.figures[_USD_PER_HOUR].value) is not None
    ]
    unpriced = [
        item.name for item in money.items if item.kind == "baseline" and item.unit_price is None
    ]
    unpriced += [pool.pool for pool in pools if pool.figures[_USD_PER_HOUR].value is None]
    return SpendNeeds(
        parts=tuple(parts),
        baseline_usd_per_day=sum(
            part.usd_per_day for part in baseline if pool_of[part.name] is None
        ),
        steps=tuple(_steps(parts, calendar, pool_of)),
        without=tuple(unpriced),
        assumptions=_ASSUMPTIONS,
    )


def _baseline(items: Sequence[MoneyItem]) -> Sequence[SpendPart]:
    return [
        SpendPart(name=item.name, kind="baseline", purchase=None, usd_per_day=value * _HOURS)
        for item in items
        if item.kind == "baseline" and (value := item.usd_per_hour.value)
    ]


def _steps(
    parts: Sequence[SpendPart],
    calendar: Sequence[WindowNeeds],
    pool_of: Mapping[str, str | None],
) -> Iterator[SpendStep]:
    """Yield the steps; a window that changes no cost prolongs the step before it."""
    by_pool = {window.pool: window for window in calendar}
    windows = {
        part.name: by_pool[pool]
        for part in parts
        if (pool := (part.name if part.kind == "pool" else pool_of[part.name])) in by_pool
    }
    last: SpendStep | None = None
    for starts, ends in _spans(calendar):
        step = _step(parts, windows, starts, ends)
        if last is not None and last.usd_per_day == step.usd_per_day:
            last = replace(last, ends=ends)
            continue
        if last is not None:
            yield last
        last = step
    if last is not None:
        yield last


def _spans(
    calendar: Sequence[WindowNeeds],
) -> Sequence[tuple[datetime | None, datetime | None]]:
    """Return the times between any two changes, from a day before the first to one after."""
    if not calendar:
        return [(None, None)]
    edges = sorted({edge for window in calendar for edge in (window.starts, window.ends)})
    # A day of the calendar before the first window, and one after the last.
    first, last = _midnight(edges[0]) - _DAY, _midnight(edges[-1]) + 2 * _DAY
    edges = sorted({first, *edges, last})
    return list(pairwise(edges))


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), moment.tzinfo)


def _step(
    parts: Sequence[SpendPart],
    windows: Mapping[str, WindowNeeds],
    starts: datetime | None,
    ends: datetime | None,
) -> SpendStep:
    own = {
        part.name: part.usd_per_day
        for part in parts
        if starts is None or _runs(windows.get(part.name), starts)
    }
    return SpendStep(starts=starts, ends=ends, usd_per_day=own, total_usd_per_day=sum(own.values()))


def _runs(window: WindowNeeds | None, moment: datetime) -> bool:
    return window is None or window.starts <= moment < window.ends


def step_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the cost a day between any two changes."""
    for index, step in enumerate(needs.spend.steps):
        cells = {"usd": daily_total(needs, index), "parts": ", ".join(step.usd_per_day)}
        yield Row(f"spend.steps.{index}", cells)


def part_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the cost of each part on the days on which it exists."""
    for index, part in enumerate(needs.spend.parts):
        at, purchase = f"spend.parts.{index}", PURCHASES.get(part.purchase or "", "beside nodes")
        cells = {"purchase": purchase, "usd": dollars_at(f"{at}.usd_per_day", part.usd_per_day)}
        yield Row(at, cells)
