"""Drawing of the calendar: windows of reserved capacity, and what a day costs below them."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ultrascale.plan.amounts import amount
from ultrascale.plan.model import ClusterNeeds, PoolPart, SpendNeeds, SpendStep, WindowNeeds
from ultrascale.report.markup import (
    Content,
    Markup,
    Shown,
    short_dollars,
    shown,
    shown_time,
    shown_usd,
)
from ultrascale.report.svg import Canvas, text_width, width_of
from ultrascale.report.table import daily_total
from ultrascale.report.words import PURCHASES

_DAY = timedelta(days=1)
_STEPS_OF_DAYS = (1, 2, 7, 14, 28, 56, 91, 182, 364)
_GUTTER, _PAD = 216.0, 14.0
_ROW, _BAR = 50.0, 15.0
_CHART, _STACK = 220.0, 36.0
_LEAST = 3.0
_LABEL = 86.0
_TICKS = 4
_LINE = 16.0
_WIDE = 700.0


def draw_calendar(
    needs: ClusterNeeds, id: str, width: float, *, class_: str | None = None
) -> Markup | None:
    """Return the drawing of windows and cost; None where the file has neither.

    Args:
        needs: The cluster.
        id: Prefix of the ids in the drawing.
        width: Its width, in pixels.
        class_: Class of the element.
    """
    if not needs.calendar and not needs.spend.parts:
        return None
    drawing = _Calendar(needs, id, width) if needs.calendar else _EveryDay(needs, id, width)
    height = drawing.draw()
    return drawing.canvas.document(
        height,
        title=f"Calendar and cost a day of {needs.name}",
        description=_described(needs),
        class_=class_,
    )


def _described(needs: ClusterNeeds) -> str:
    windows = "; ".join(
        f"{window.pool}: {window.purchase} from {window.starts:%Y-%m-%d %H:%M} to "
        f"{window.ends:%Y-%m-%d %H:%M} UTC, drained at {window.usable_until:%Y-%m-%d %H:%M}"
        for window in needs.calendar
    )
    return f"{windows or 'No window'}. The tables beside the drawing hold the same figures."


class _Band(NamedTuple):
    """A band of the stack: a pool, or all charges beside nodes.

    Attributes:
        name: Its name.
        fill: Its colour and pattern.
        path: Place of its cost in the JSON.
        usd_per_day: What it costs a day, while it is there.
        parts: Names of the parts in it.
        without: Names of parts of no known price, which belong to it.
    """

    name: str
    fill: str
    path: str
    usd_per_day: float
    parts: frozenset[str]
    without: tuple[str, ...] = ()

    def in_step(self, step: SpendStep) -> float:
        """Return what it costs a day in a step."""
        return sum(usd for name, usd in step.usd_per_day.items() if name in self.parts)


def _bands(spend: SpendNeeds, unpriced: tuple[str, ...]) -> Iterator[_Band]:
    beside = frozenset(part.name for part in spend.parts if part.kind == "baseline")
    if beside:
        at = "spend.baseline_usd_per_day"
        yield _Band("beside nodes", "baseline", at, spend.baseline_usd_per_day, beside, unpriced)
    for index, part in enumerate(spend.parts):
        if part.kind == "pool":
            at = f"spend.parts.{index}.usd_per_day"
            fill = part.purchase or "baseline"
            yield _Band(part.name, fill, at, part.usd_per_day, frozenset({part.name}))


def _unpriced_beside_nodes(needs: ClusterNeeds) -> tuple[str, ...]:
    pools = {pool.pool for pool in needs.pools}
    return tuple(name for name in needs.spend.without if name not in pools)


class _Base:
    """Colours of the parts of the cost, and their legend, as both drawings have them.

    Attributes:
        canvas: Where it is drawn.
    """

    def __init__(self, needs: ClusterNeeds, id: str, width: float) -> None:
        self.canvas = Canvas(id, width)
        self._needs = needs
        self._spend = needs.spend
        self._bands = [*_bands(needs.spend, _unpriced_beside_nodes(needs))]
        self._y = 4.0

    def draw(self) -> float:
        """Draw all of it; returns the height."""
        raise NotImplementedError

    def _legend(self) -> None:
        x = left = 2.0
        for band in self._bands:
            own = shown_usd(band.path, band.usd_per_day)
            usd = amount(band.usd_per_day, own.text, without=band.without)
            words: list[Content] = [f"{band.name} ", Shown(own.path, own.value, usd), " a day"]
            width = 28 + text_width(words, 12) + 18
            if x > left and x + width > self.canvas.width:
                x, self._y = left, self._y + 21
            self.canvas.swatch(x, self._y, 20, 13, band.fill)
            self.canvas.write(x + 28, self._y + 11, *words)
            x += width
        self._y += 20


class _EveryDay(_Base):
    """One bar, as all days are alike."""

    def draw(self) -> float:
        (step,) = self._spend.steps
        total = step.total_usd_per_day or 1
        self._y += 14
        usd = daily_total(self._needs, 0)
        self.canvas.write(2, self._y, "every day ", usd, ", at full size", class_="t b")
        self._y += 10
        x, whole = 2.0, self.canvas.width - 4
        for band in self._bands:
            width = whole * band.usd_per_day / total
            self.canvas.swatch(x, self._y, max(width, 1), _STACK, band.fill)
            self.canvas.rect(x, self._y, max(width, 1), _STACK, "edge")
            if width_of(band.name, 12, bold=True) + 16 < width:
                self.canvas.write(x + 8, self._y + 22, band.name, class_="t b halo")
            x += width
        self._y += _STACK + 14
        self._legend()
        return self._y


class _Calendar(_Base):
    """Windows and the cost over one axis of time."""

    def __init__(self, needs: ClusterNeeds, id: str, width: float) -> None:
        super().__init__(needs, id, width)
        self._is_wide = width >= _WIDE
        first, last = self._spend.steps[0].starts, self._spend.steps[-1].ends
        assert first is not None
        assert last is not None
        self._first, self._last = first, last
        self._left = _GUTTER if self._is_wide else 52.0
        self._right = width - _PAD

    def draw(self) -> float:
        top = self._y
        self._axis_labels()
        for index, window in enumerate(self._needs.calendar):
            self._window(index, window)
        for pool in self._needs.topology.pools:
            if pool.purchase == "odcr":
                self._open_ended(pool)
        if self._spend.parts:
            self._cost()
        bottom = self._y
        self._grid(top + 20, bottom)
        self._y += 22
        if self._spend.parts:
            self._legend()
        return self._y

    def _x(self, moment: datetime) -> float:
        share = (moment - self._first) / (self._last - self._first)
        return self._left + share * (self._right - self._left)

    # --- The axis -----------------------------------------------------------------------------

    def _days(self) -> Sequence[datetime]:
        """Return the days that the axis names."""
        whole = (self._last - self._first) // _DAY
        most = (self._right - self._left) / _LABEL
        step = next((days for days in _STEPS_OF_DAYS if whole / days <= most), whole)
        return [self._first + _DAY * day for day in range(0, whole, max(step, 1))]

    def _axis_labels(self) -> None:
        self._y += 12
        year = None
        for day in self._days():
            words = f"{day.day} {day:%b}" + (f" {day.year}" if day.year != year else "")
            year = day.year
            if self._x(day) + width_of(words, 11) <= self.canvas.width:
                self.canvas.write(self._x(day), self._y, words, class_="s m", axis="time")
        self._y += 8

    def _grid(self, top: float, bottom: float) -> None:
        for day in self._days():
            self.canvas.back_line(self._x(day), top, self._x(day), bottom, "grid")
        at = self._needs.at
        if at is not None and self._first <= at <= self._last:
            x = self._x(at)
            self.canvas.mark_line(x, top, x, bottom + 2, "now")
            words = shown_time("at", at)
            width = text_width([words], 11, bold=True)
            left = max(min(x - width / 2, self._right - width), 2)
            self.canvas.write(left, bottom + 13, words, class_="s b")

    # --- Windows ------------------------------------------------------------------------------

    def _window(self, index: int, window: WindowNeeds) -> None:
        at = f"calendar.{index}"
        x1, x2, x3 = (
            self._x(moment) for moment in (window.starts, window.usable_until, window.ends)
        )
        # A drain of an hour in a month would be too small to be seen.
        drain = max(x3 - x2, _LEAST)
        times: list[Content] = [
            shown_time(f"{at}.starts", window.starts),
            " to ",
            shown_time(f"{at}.ends", window.ends),
        ]
        drained: list[Content] = [
            ", drain ",
            shown(f"{at}.figures.drain_minutes.value", window.figures["drain_minutes"].value),
            " min",
        ]
        y = self._head(window.pool, PURCHASES.get(window.purchase, window.purchase))
        line = [*times, *drained]
        self._beside(x1, y, line)
        self.canvas.swatch(x1, y + 6, max(x3 - drain - x1, 1), _BAR, window.purchase)
        self.canvas.swatch(x3 - drain, y + 6, drain, _BAR, "drain")
        self._y = y + 6 + _BAR + 12

    def _open_ended(self, pool: PoolPart) -> None:
        y = self._head(pool.pool, PURCHASES[pool.purchase])
        self._beside(self._left, y, ["reserved; the file states no end"])
        self.canvas.swatch(self._left, y + 6, self._right - self._left, _BAR, pool.purchase)
        self._y = y + 6 + _BAR + 12

    def _head(self, name: str, purchase: str) -> float:
        """Write the name of a row; returns the base line of the text beside it."""
        y, write = self._y + 14, self.canvas.paragraph
        if self._is_wide:
            end = write(2, y, name, self._left - 12, 13, "n b")
            end = write(2, end + 15, purchase, self._left - 12, 11, "s m")
            # A long name takes more lines than the bar does.
            return max(y, end - 15)
        return write(2, y, f"{name}, {purchase}", self._right - 4, 12, "t b") + 15

    def _beside(self, x: float, y: float, line: Sequence[Content]) -> None:
        """Write a line from ``x`` on, or further to the left where it would not fit."""
        width = text_width(line, 11)
        self.canvas.write(max(min(x, self._right - width), 2), y, *line, class_="s halo")

    # --- Cost ---------------------------------------------------------------------------------

    def _cost(self) -> None:
        most = max(step.total_usd_per_day for step in self._spend.steps)
        ticks = _ticks(most)
        self._y += 22
        lacking = len(self._spend.without)
        bound = f"at least, {lacking} parts without a price" if lacking else "at full size"
        self.canvas.write(2, self._y, f"USD a day, {bound}", class_="n b")
        self._y += 12
        bottom = self._y + _CHART
        scale = _CHART / ticks[-1]
        for tick in ticks:
            y = bottom - tick * scale
            self.canvas.back_line(self._left, y, self._right, y, "grid")
            self.canvas.write(
                self._left - 6,
                y + 4,
                short_dollars(tick),
                class_="s m",
                anchor="end",
                axis="usd",
            )
        for step in self._spend.steps:
            self._stack(step, *self._ends(step), bottom, scale)
        self.canvas.line(self._left, bottom, self._right, bottom, "axis")
        self._names(bottom, scale)
        self._y = bottom + 4

    def _stack(self, step: SpendStep, x1: float, x2: float, bottom: float, scale: float) -> None:
        for band in self._bands:
            height = band.in_step(step) * scale
            if height:
                bottom -= height
                self.canvas.swatch(x1, bottom, x2 - x1, height, band.fill)
                self.canvas.rect(x1, bottom, x2 - x1, height, "edge")

    def _names(self, bottom: float, scale: float) -> None:
        """Write the name of each band into the step in which it is widest."""
        for place, band in enumerate(self._bands):
            height = band.usd_per_day * scale
            own = [step for step in self._spend.steps if band.in_step(step)]
            if height < _LINE or not own:
                continue
            step = max(own, key=lambda each: self._ends(each)[1] - self._ends(each)[0])
            x1, x2 = self._ends(step)
            below = sum(other.in_step(step) for other in self._bands[:place])
            if width_of(band.name, 12, bold=True) + 16 < x2 - x1:
                y = bottom - below * scale - height / 2 + 4
                self.canvas.write(x1 + 8, y, band.name, class_="t b halo")

    def _ends(self, step: SpendStep) -> tuple[float, float]:
        return self._x(step.starts or self._first), self._x(step.ends or self._last)


def _ticks(most: float) -> Sequence[float]:
    """Return round numbers from 0 to ``most`` or above."""
    if most <= 0:
        return (0.0, 1.0)
    rough = most / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return [step * count for count in range(math.ceil(most / step) + 1)]
