"""Drawing of the calendar: windows of reserved capacity above the cost of each day."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ultrascale.plan.model import ClusterNeeds, SpendStep
from ultrascale.plan.needs.pools import PURCHASES
from ultrascale.plan.needs.tables import (
    Content,
    Line,
    daily_total,
    dollars_at,
    figure_at,
    time_at,
)
from ultrascale.report.drawing import LINE, PAD, WIDTH, Box, Card, Drawing, box_of, legend_of

_DAY = timedelta(days=1)
_STEPS_OF_DAYS = (1, 2, 7, 14, 28, 56, 91, 182, 364)
_TOP, _LEFT, _RIGHT = 24, 230, WIDTH - PAD
_LABEL, _LEGEND = 90, 560
_BAR, _CHART, _TICKS = 16, 220, 4
_LEAST = 3
_CHARACTER = 10
_MILLION, _THOUSAND = 1_000_000, 1_000


Column = tuple[float, float, Sequence[float]]
"""Left and right edge of a column, and its value of each band."""


class _Band(NamedTuple):
    """A band in the graph of cost: a pool, or all charges other than nodes."""

    name: str  # Its name
    fill: str  # Its colour and pattern
    words: Line  # Its cost a day, while it exists
    parts: frozenset[str]  # Names of the parts in it

    def cost_in(self, step: SpendStep) -> float:
        """Return the band's cost a day in a step of time."""
        return sum(usd for name, usd in step.usd_per_day.items() if name in self.parts)


class Axis(NamedTuple):
    """The time axis."""

    first: datetime
    last: datetime

    def place(self, moment: datetime) -> float:
        """Return the place of ``moment`` on the axis."""
        return _LEFT + (moment - self.first) / (self.last - self.first) * (_RIGHT - _LEFT)

    def days(self) -> Iterator[datetime]:
        """Yield the days with a label."""
        whole = (self.last - self.first) // _DAY
        most = (_RIGHT - _LEFT) / _LABEL
        step = next((days for days in _STEPS_OF_DAYS if whole / days <= most), whole)
        return (self.first + _DAY * day for day in range(0, whole, max(step, 1)))


def calendar_drawing(needs: ClusterNeeds) -> Drawing | None:
    """Return the drawing of windows and of cost over time; None for a file that has neither."""
    if not needs.calendar and not needs.spend.parts:
        return None
    # Without a window, the cost of all days is equal.
    steps = needs.spend.steps
    first, last = steps[0].starts, steps[-1].ends
    axis = None if first is None or last is None else Axis(first, last)
    boxes = [] if axis is None else [*_reservation_boxes(needs, axis)]
    bands = [*_bands(needs)]
    if bands:
        boxes += _cost_boxes(needs, bands, axis, boxes[-1].end if boxes else 2)
    bottom = boxes[-1].y + boxes[-1].height
    shapes, texts = ([box for box in boxes if bool(box.lines) == is_text] for is_text in (0, 1))
    if axis is not None:
        shapes = [*day_boxes(axis, bottom), *shapes, *_now_boxes(needs.at, axis, bottom)]
    names = {band.name: (band.fill, band.words) for band in bands}
    boxes = [*shapes, *texts, *legend_of(bottom + 2 * PAD, _LEGEND, names)]
    return Drawing(WIDTH, max(box.y + box.height for box in boxes) + 2, tuple(boxes))


def _bands(needs: ClusterNeeds) -> Iterator[_Band]:
    spend, pools = needs.spend, {pool.pool for pool in needs.pools}
    beside = frozenset(part.name for part in spend.parts if part.kind == "baseline")
    if beside:
        # Parts of the band without a known price.
        without = [name for name in spend.without if name not in pools]
        path, value = "spend.baseline_usd_per_day", spend.baseline_usd_per_day
        usd = dollars_at(path, value, without=without)
        yield _Band("beside nodes", "baseline", ("beside nodes ", usd, " a day"), beside)
    for index, part in enumerate(spend.parts):
        if part.kind == "pool":
            usd = dollars_at(f"spend.parts.{index}.usd_per_day", part.usd_per_day)
            words = (f"{part.name} ", usd, " a day")
            yield _Band(part.name, part.purchase or "baseline", words, frozenset({part.name}))


def _text_box(style: str, words: Content | Line, x: float, y: float, width: float) -> Box:
    return box_of(Card(((style, words),)), x, y, width)


def _shape(style: str, fill: str, x: float, y: float, width: float, height: float) -> Box:
    return box_of(Card(style=style, fill=fill), x, y, width, height)


def day_boxes(axis: Axis, bottom: float) -> Iterator[Box]:
    """Yield a line and a label for the days of an axis."""
    year = None
    for day in axis.days():
        x = axis.place(day)
        yield _shape("line", "grid", x, _TOP, 1, bottom - _TOP)
        if x + _LABEL <= WIDTH:
            words = f"{day.day} {day:%b}" + (f" {day.year}" if day.year != year else "")
            yield box_of(Card((("s m", words),), axis="time"), x, 0, _LABEL)
        year = day.year


def _now_boxes(at: datetime | None, axis: Axis, bottom: int) -> Iterator[Box]:
    if at is not None and axis.first <= at <= axis.last:
        yield _shape("line", "now", axis.place(at), _TOP, 2, bottom - _TOP)
        yield _text_box("s b", time_at("at", at), min(axis.place(at), _RIGHT - 130), bottom, 130)


def _reservation_boxes(needs: ClusterNeeds, axis: Axis) -> Iterator[Box]:
    """Yield a row for each window, and for each reservation without an end."""
    y = _TOP
    for index, window in enumerate(needs.calendar):
        at, drain = f"calendar.{index}", window.figures["drain_minutes"]
        words = (
            time_at(f"{at}.starts", window.starts),
            " to ",
            time_at(f"{at}.ends", window.ends),
            ", drain ",
            figure_at(f"{at}.figures.drain_minutes", drain),
            " min",
        )
        starts, drained, ends = map(axis.place, (window.starts, window.usable_until, window.ends))
        # A drain of one hour would be too small to see in a month.
        drained = min(drained, ends - _LEAST)
        yield _shape("bar", window.purchase, starts, y + 22, drained - starts, _BAR)
        yield _shape("bar", "drain", drained, y + 22, ends - drained, _BAR)
        yield from (row := _row_boxes(window.pool, window.purchase, words, y))
        y = row[-1].end
    for pool in needs.topology.pools:
        if pool.purchase == "odcr":
            yield _shape("bar", pool.purchase, _LEFT, y + 22, _RIGHT - _LEFT, _BAR)
            words = ("reserved; the file states no end",)
            yield from (row := _row_boxes(pool.pool, pool.purchase, words, y))
            y = row[-1].end


def _row_boxes(name: str, purchase: str, words: Line, y: int) -> Sequence[Box]:
    """Return the boxes of a row's texts; the last box has the row's height."""
    label = Card((("n b", name), ("s m", PURCHASES.get(purchase, purchase))))
    head = box_of(label, 2, y, _LEFT - PAD)
    line = _text_box("s halo", words, _LEFT, y, _RIGHT - _LEFT)
    return (line, head._replace(height=max(head.height, 22 + _BAR)))


def _cost_boxes(
    needs: ClusterNeeds, bands: Sequence[_Band], axis: Axis | None, y: int
) -> Iterator[Box]:
    """Yield the daily cost over time, as a stack of bands for each step."""
    spend = needs.spend
    lacking = len(spend.without)
    words: Line = ("every day ", daily_total(needs, 0), ", at full size")
    if axis is not None:
        bound = f"at least; parts without a price: {lacking}" if lacking else "at full size"
        words = (f"USD a day, {bound}",)
    yield _text_box("n b halo", words, 2, y, WIDTH - 4)
    columns: list[Column] = []
    for step in spend.steps:
        starts, ends = _LEFT, _RIGHT
        if axis is not None:
            starts, ends = axis.place(step.starts or axis.first), axis.place(step.ends or axis.last)
        columns.append((starts, ends, [band.cost_in(step) for band in bands]))
    yield from stack_boxes(columns, [(band.name, band.fill) for band in bands], y + 2 * LINE)


def stack_boxes(
    columns: Sequence[Column], bands: Sequence[tuple[str, str]], y: float, unit: str = "$"
) -> Iterator[Box]:
    """Yield a graph of stacked columns with its axis.

    Args:
        columns: Left and right edge of each column, and its value of each band.
        bands: Names and fills of the bands, the lowest first.
        y: Upper edge.
        unit: Unit of the values, in front of them.
    """
    ticks = _ticks(max(sum(values) for *_, values in columns))
    bottom, scale = y + _CHART, _CHART / ticks[-1]
    for tick in ticks:
        level = bottom - tick * scale
        yield _shape("line", "grid", _LEFT, level, _RIGHT - _LEFT, 1)
        card = Card((("s m", _short(tick, unit)),), axis="usd")
        yield box_of(card, _LEFT - 50, level - 10, 46)
    for starts, ends, values in columns:
        level, width = float(bottom), ends - starts
        for (name, fill), value in zip(bands, values, strict=True):
            height = value * scale
            level -= height
            if height:
                yield _shape("bar", fill, starts, level, width, height)
            # The band's name, if there is room for it.
            if height >= LINE and width >= _CHARACTER * len(name):
                middle = level + (height - LINE) / 2
                yield _text_box("t b halo", name, starts + PAD // 2, middle, width - PAD)
    yield _shape("line", "axis", _LEFT, bottom, _RIGHT - _LEFT, 1)


def _ticks(most: float) -> Sequence[float]:
    """Return round numbers from 0 up to at least ``most``."""
    if most <= 0:
        return (0.0, 1.0)
    rough = most / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return [step * count for count in range(math.ceil(most / step) + 1)]


def _short(value: float, unit: str) -> str:
    """Return an amount for the axis, with k for thousands and M for millions."""
    for size, letter in ((_MILLION, "M"), (_THOUSAND, "k")):
        if abs(value) >= size:
            return f"{unit}{value / size:,.3g}{letter}"
    return f"{unit}{value:,.3g}"
