"""Windows of reserved capacity, compared with a point in time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ultrascale import config
from ultrascale.catalog import capacity_blocks
from ultrascale.errors import UsageError
from ultrascale.plan.model import (
    ClusterNeeds,
    Figure,
    PoolPlan,
    WindowNeeds,
    WindowPlan,
    WindowState,
)
from ultrascale.plan.needs.pools import shards_of
from ultrascale.plan.needs.tables import Line, Row, figures_at

_HOUR = timedelta(hours=1)
_SOURCES: Mapping[str, str] = {
    "capacity-block": "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html",
    "training-plan": "https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html",
}
_SELLERS: Mapping[str, str] = {
    "capacity-block": "EC2 sells blocks",
    "training-plan": "SageMaker sells plans",
}


def read_time(text: str) -> datetime:
    """Return the time that ``text`` states in ISO 8601.

    Raises:
        UsageError: It is no time, or says of no offset from UTC.
    """
    time = _utc(text)
    if time is None:
        wrong = f"--at: not a time in UTC, got {text!r}; write it as 2026-12-15T00:00Z"
        raise UsageError([wrong])
    return time


def _utc(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        # At the ends of the calendar there is no such time in UTC.
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def plan_calendar(pools: Sequence[PoolPlan], at: datetime | None) -> tuple[WindowNeeds, ...]:
    """Return the windows of Capacity Blocks and training plans.

    Args:
        pools: Pools of the cluster, those of the system first.
        at: The time to hold them against; None leaves them unjudged.
    """
    return tuple(
        _window(shards[0], window, at)
        for shards in shards_of(pools).values()
        if (window := shards[0].window) is not None
    )


def window_mistakes(
    cluster: config.Cluster, calendar: Sequence[WindowNeeds], at: datetime
) -> Iterator[config.Mistake]:
    """Yield the windows of the cluster file that are over.

    Args:
        cluster: The file.
        calendar: Its windows, held against ``at``.
        at: The time.
    """
    over = {window.pool for window in calendar if window.state == "over"}
    for index, pool in enumerate(cluster.pools):
        if pool.name in over:
            yield config.refuse(
                f"pools.{index}.purchase.ends",
                f"the window of {pool.name} is over at {_time(at)}",
                "write the window and the reservation that follow it, or take the pool out",
            )


def _window(pool: PoolPlan, window: WindowPlan, at: datetime | None) -> WindowNeeds:
    name, usable = pool.pool, window.usable_until - window.starts
    drained = window.ends - window.usable_until
    figures = {
        "usable_hours": Figure(
            id=f"{name}.usable_hours",
            value=usable / _HOUR,
            unit="hours",
            formula=f"{_time(window.starts)} until {_time(window.usable_until)}, when its nodes "
            f"are drained; it ends at {_time(window.ends)}",
            sources=(_SOURCES[pool.purchase],),
        ),
        "drain_minutes": Figure(
            id=f"{name}.drain_minutes",
            value=drained / timedelta(minutes=1),
            unit="minutes",
            formula=f"{_time(window.usable_until)} until {_time(window.ends)}, paid for and not "
            f"of use: its instances are taken back from {_time(window.reclaimed_from)}",
        ),
    }
    state = None if at is None else _state(window, at)
    if at is not None and state == "ahead":
        figures["hours_ahead"] = _span(name, "hours_ahead", at, window.starts)
    if at is not None and state == "running":
        figures["hours_left"] = _span(name, "hours_left", at, window.usable_until)
    return WindowNeeds(
        pool=name,
        purchase=pool.purchase,
        starts=window.starts,
        usable_until=window.usable_until,
        ends=window.ends,
        state=state,
        note=None if at is None else _note(pool.purchase, window, at),
        figures=figures,
    )


def _state(window: WindowPlan, at: datetime) -> WindowState:
    if at < window.starts:
        return "ahead"
    if at < window.usable_until:
        return "running"
    return "draining" if at < window.ends else "over"


def _note(purchase: str, window: WindowPlan, at: datetime) -> str | None:
    """Return the note on a window that its user cannot rely on; None without one."""
    state = _state(window, at)
    ahead = capacity_blocks.LONGEST_AHEAD
    opens = window.starts - ahead
    if state == "ahead" and at < opens:
        return (
            f"it cannot have been bought yet: {_SELLERS[purchase]} {ahead // timedelta(weeks=1)} "
            f"weeks ahead, this one from {_time(opens)} on"
        )
    if state == "draining":
        return "its nodes are drained: it is of no use any more"
    if state == "over":
        return "it is over: write the window that follows, or take the pool out"
    return None


def _span(name: str, key: str, start: datetime, end: datetime) -> Figure:
    return Figure(
        id=f"{name}.{key}",
        value=(end - start) / _HOUR,
        unit="hours",
        formula=f"{_time(start)} until {_time(end)}",
    )


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def window_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the windows of reserved capacity."""
    for index, window in enumerate(needs.calendar):
        at = f"calendar.{index}"
        ahead, left = figures_at(
            f"{at}.figures", window.figures, "hours_ahead", "hours_left", places=1
        )
        state: Line = (window.state or "",)
        if ahead:
            state = ("starts in ", ahead, " hours")
        elif left:
            state = ("running, ", left, " usable hours left")
        yield Row(at, {"state": state})
