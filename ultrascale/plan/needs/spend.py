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
    hourly = {pool.pool: pool.figures["usd_per_hour"].value for pool in pools}
    parts = [*baseline]
    parts += [
        SpendPart(name=name, kind="pool", purchase=purchases[name], usd_per_day=value * _HOURS)
        for name, value in hourly.items()
        if value is not None
    ]
    unpriced = [
        item.name for item in money.items if item.kind == "baseline" and item.unit_price is None
    ]
    unpriced += [name for name, value in hourly.items() if value is None]
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
) -> Sequence[SpendStep]:
    """Return the steps; a window that changes no cost prolongs the step before it."""
    by_pool: dict[str | None, WindowNeeds] = {window.pool: window for window in calendar}
    windows = {
        part.name: by_pool.get(part.name if part.kind == "pool" else pool_of[part.name])
        for part in parts
    }
    steps: list[SpendStep] = []
    for starts, ends in _spans(calendar):
        usd = {
            part.name: part.usd_per_day
            for part in parts
            if starts is None
            or (window := windows[part.name]) is None
            or window.starts <= starts < window.ends
        }
        if steps and steps[-1].usd_per_day == usd:
            steps[-1] = replace(steps[-1], ends=ends)
        else:
            total = sum(usd.values())
            steps.append(
                SpendStep(starts=starts, ends=ends, usd_per_day=usd, total_usd_per_day=total)
            )
    return steps


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
