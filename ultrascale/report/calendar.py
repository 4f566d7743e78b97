"""Drawing of the calendar: windows of reserved capacity, and what a day costs below them."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ultrascale.plan.amounts import amount
from ultrascale.plan.model import ClusterNeeds, SpendStep
from ultrascale.report.drawing import LINE, PAD, WIDTH, Box, Card, Drawing, box_of, legend_of
from ultrascale.report.figures import (
    Content,
    Line,
    daily_total,
    dollars_at,
    number_at,
    short_dollars,
    time_at,
)
from ultrascale.report.words import PURCHASES

_DAY = timedelta(days=1)
_STEPS_OF_DAYS = (1, 2, 7, 14, 28, 56, 91, 182, 364)
_TOP, _LEFT, _RIGHT = 24, 230, WIDTH - PAD
_LABEL = 90
_BAR, _CHART, _TICKS = 16, 220, 4
_LEAST = 3
_LEGEND = 560
_CHARACTER = 10


class _Band(NamedTuple):
    """A band of the cost: a pool, or all charges beside nodes.

    Attributes:
        name: Its name.
        fill: Its colour and pattern.
        words: Its cost a day, while it is there.
        parts: Names of the parts in it.
    """

    name: str
    fill: str
    words: Line
    parts: frozenset[str]

    def cost_in(self, step: SpendStep) -> float:
        """Return what it costs a day in a step."""
        return sum(usd for name, usd in step.usd_per_day.items() if name in self.parts)


def calendar_drawing(needs: ClusterNeeds) -> Drawing | None:
    """Return the drawing of windows and cost; None where the file has neither."""
    if not needs.calendar and not needs.spend.parts:
        return None
    bands = [*_bands(needs)]
    boxes = [*(_windows(needs, bands) if needs.calendar else _every_day(needs, bands))]
    names = {band.name: (band.fill, band.words) for band in bands}
    boxes += legend_of(max(box.y + box.height for box in boxes) + PAD, _LEGEND, names)
    return Drawing(WIDTH, max(box.y + box.height for box in boxes) + 2, tuple(boxes))


def _bands(needs: ClusterNeeds) -> Iterator[_Band]:
    spend, pools = needs.spend, {pool.pool for pool in needs.pools}
    beside = frozenset(part.name for part in spend.parts if part.kind == "baseline")
    if beside:
        # Parts of no known price that belong to it.
        without = [name for name in spend.without if name not in pools]
        usd = dollars_at("spend.baseline_usd_per_day", spend.baseline_usd_per_day)
        words = usd._replace(text=amount(spend.baseline_usd_per_day, usd.text, without=without))
        yield _Band("beside nodes", "baseline", ("beside nodes ", words, " a day"), beside)
    for index, part in enumerate(spend.parts):
        if part.kind == "pool":
            usd = dollars_at(f"spend.parts.{index}.usd_per_day", part.usd_per_day)
            words = (f"{part.name} ", usd, " a day")
            yield _Band(part.name, part.purchase or "baseline", words, frozenset({part.name}))


def _text(style: str, words: Content | Line, x: float, y: float, width: float) -> Box:
    return box_of(Card(((style, words),)), x, y, width)


def _bars(
    fill: str, x: float, y: float, width: float, height: float, name: str = ""
) -> Iterator[Box]:
    """Yield a bar, with its name where there is room for one."""
    yield box_of(Card(style="bar", fill=fill), x, y, width, height)
    if name and height >= LINE and width >= _CHARACTER * len(name) + PAD:
        yield _text("t b halo", name, x + PAD // 2, y + (height - LINE) / 2, width - PAD)


def _every_day(needs: ClusterNeeds, bands: Sequence[_Band]) -> Iterator[Box]:
    """Yield one bar, as all days are alike."""
    (step,) = needs.spend.steps
    words = ("every day ", daily_total(needs, 0), ", at full size")
    yield _text("n b", words, 2, 0, WIDTH - 4)
    x, scale = 2.0, (WIDTH - 4) / (step.total_usd_per_day or 1)
    for band in bands:
        width = band.cost_in(step) * scale
        yield from _bars(band.fill, x, 2 * LINE, width, 36, band.name)
        x += width


class _Axis(NamedTuple):
    """The axis of time."""

    first: datetime
    last: datetime

    def place(self, moment: datetime) -> float:
        """Return where ``moment`` lies on it."""
        return _LEFT + (moment - self.first) / (self.last - self.first) * (_RIGHT - _LEFT)

    def days(self) -> Iterator[datetime]:
        """Yield the days that it names."""
        whole = (self.last - self.first) // _DAY
        most = (_RIGHT - _LEFT) / _LABEL
        step = next((days for days in _STEPS_OF_DAYS if whole / days <= most), whole)
        return (self.first + _DAY * day for day in range(0, whole, max(step, 1)))


def _windows(needs: ClusterNeeds, bands: Sequence[_Band]) -> Iterator[Box]:
    """Yield windows and the cost over one axis of time."""
    first, last = needs.spend.steps[0].starts, needs.spend.steps[-1].ends
    assert first is not None
    assert last is not None
    axis = _Axis(first, last)
    boxes = [*_reservations(needs, axis)]
    if needs.spend.parts:
        boxes += _cost(needs, bands, axis, boxes[-1].end)
    height = boxes[-1].y + boxes[-1].height - _TOP
    year = None
    for day in axis.days():
        x = axis.place(day)
        yield box_of(Card(style="line", fill="grid"), x, _TOP, 1, height)
        if x + _LABEL <= WIDTH:
            words = f"{day.day} {day:%b}" + (f" {day.year}" if day.year != year else "")
            yield box_of(Card((("s m", words),), axis="time"), x, 0, _LABEL)
        year = day.year
    yield from (box for box in boxes if not box.lines)
    if needs.at is not None and first <= needs.at <= last:
        x = axis.place(needs.at)
        yield box_of(Card(style="line", fill="now"), x, _TOP, 2, height)
        yield _text("s b", time_at("at", needs.at), min(x, _RIGHT - 130), _TOP + height, 130)
    yield from (box for box in boxes if box.lines)


def _reservations(needs: ClusterNeeds, axis: _Axis) -> Iterator[Box]:
    """Yield a row for each window, and for each reservation without an end."""
    y = _TOP
    for index, window in enumerate(needs.calendar):
        at, drain = f"calendar.{index}", window.figures["drain_minutes"]
        words = (
            time_at(f"{at}.starts", window.starts),
            " to ",
            time_at(f"{at}.ends", window.ends),
            ", drain ",
            number_at(f"{at}.figures.drain_minutes.value", drain.value),
            " min",
        )
        starts, drained, ends = map(axis.place, (window.starts, window.usable_until, window.ends))
        # A drain of an hour in a month would be too small to be seen.
        drained = min(drained, ends - _LEAST)
        bars = ((window.purchase, starts, drained), ("drain", drained, ends))
        yield from (rows := _row(y, window.pool, window.purchase, words, bars))
        y = rows[-1].end
    for pool in needs.topology.pools:
        if pool.purchase == "odcr":
            bars = ((pool.purchase, _LEFT, _RIGHT),)
            words = ("reserved; the file states no end",)
            yield from (rows := _row(y, pool.pool, pool.purchase, words, bars))
            y = rows[-1].end


def _row(
    y: int, name: str, purchase: str, words: Line, bars: Sequence[tuple[str, float, float]]
) -> Sequence[Box]:
    """Return a row of the calendar; its last box is the one that ends it."""
    label = Card((("n b", name), ("s m", PURCHASES.get(purchase, purchase))))
    head = box_of(label, 2, y, _LEFT - PAD)
    return (
        _text("s halo", words, _LEFT, y, _RIGHT - _LEFT),
        *(box for fill, x1, x2 in bars for box in _bars(fill, x1, y + 22, x2 - x1, _BAR)),
        head._replace(height=max(head.height, 22 + _BAR)),
    )


def _cost(needs: ClusterNeeds, bands: Sequence[_Band], axis: _Axis, y: int) -> Iterator[Box]:
    """Yield the cost a day over time, as a stack of bands for each step."""
    spend = needs.spend
    lacking = len(spend.without)
    bound = f"at least, {lacking} parts without a price" if lacking else "at full size"
    yield _text("n b halo", f"USD a day, {bound}", 2, y, WIDTH - 4)
    y += 2 * LINE
    ticks = _ticks(max(step.total_usd_per_day for step in spend.steps))
    bottom, scale = y + _CHART, _CHART / ticks[-1]
    for tick in ticks:
        level = bottom - tick * scale
        yield box_of(Card(style="line", fill="grid"), _LEFT, level, _RIGHT - _LEFT, 1)
        card = Card((("s m", short_dollars(tick)),), axis="usd")
        yield box_of(card, _LEFT - 50, level - 10, 46)
    for step in spend.steps:
        x1, x2 = axis.place(step.starts or axis.first), axis.place(step.ends or axis.last)
        level = float(bottom)
        for band in bands:
            height = band.cost_in(step) * scale
            if height:
                level -= height
                yield from _bars(band.fill, x1, level, x2 - x1, height, band.name)
    yield box_of(Card(style="line", fill="axis"), _LEFT, bottom, _RIGHT - _LEFT, 1)


def _ticks(most: float) -> Sequence[float]:
    """Return round numbers from 0 to ``most`` or above."""
    if most <= 0:
        return (0.0, 1.0)
    rough = most / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return [step * count for count in range(math.ceil(most / step) + 1)]
