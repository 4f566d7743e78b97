"""Section of the report on the ledger: days of use, stacked by team and by reason."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from ultrascale.ledger.price import Group, Key, dollars, group_by
from ultrascale.ledger.showback import Showback, groupings
from ultrascale.plan.needs.tables import words_table
from ultrascale.report.calendar import Axis, Column, day_boxes, stack_boxes
from ultrascale.report.drawing import LINE, PAD, WIDTH, Box, Card, Drawing, box_of, legend_of
from ultrascale.report.sections import Block, Section

_HOUR = 3600
# Fills that the legend names; the last is for all further names.
_FILLS = ("on-demand", "spot", "capacity-block", "training-plan", "odcr", "drain", "baseline")
_OTHERS = "others"
_TOP, _GRAPH, _LEGEND = 24, 260, 280
_TITLES = ("node-hours", "USD", "estimate")


def _team(key: Key) -> str:
    idle = key.reason and not key.namespace
    return "(idle)" if idle else key.team or f"(namespace {key.namespace})"


_GRAPHS: Mapping[str, Callable[[Key], str]] = {"team": _team, "reason": groupings({})["reason"]}


def usage_sections(days: Sequence[Showback]) -> Sequence[Section]:
    """Return the section on a ledger, priced by days, with a table for each graph; none without."""
    if not days:
        return []
    blocks = [
        Block(
            words_table(
                (name, *_TITLES), [(group, *_cells(sums)) for group, sums in groups.items()]
            ).page(f"Node-hours and cost by {name}.")
        )
        for name, groups in ((name, _groups(days, name_of)) for name, name_of in _GRAPHS.items())
    ]
    note = f"{_day(days[0].starts):%Y-%m-%d} to {_day(days[-1].ends):%Y-%m-%d} UTC; "
    note += "ultrascale ledger FILE has its months, prices and gaps."
    return [Section("ledger", "Who used it", (Block(note=note), *blocks))]


def usage_drawing(days: Sequence[Showback]) -> Drawing:
    """Return a graph by team above one by reason, with a column for each day."""
    axis = Axis(_day(days[0].starts), _day(days[-1].ends))
    priced = any(day.cents for day in days)
    boxes: list[Box] = []
    y = float(_TOP)
    for name, name_of in _GRAPHS.items():
        names = [*_groups(days, name_of)]
        kept = names if len(names) <= len(_FILLS) else [*names[: len(_FILLS) - 1], _OTHERS]
        bands = [*zip(kept, _FILLS, strict=False)]
        columns: list[Column] = []
        for day in days:
            sums = {
                group: total.total / 100 if priced else float(total.node_seconds) / _HOUR
                for group, total in _groups([day], name_of).items()
            }
            values = [sums.pop(group, 0.0) for group, _ in bands]
            if _OTHERS in kept:
                values[-1] = sum(sums.values())
            columns.append((axis.place(_day(day.starts)), axis.place(_day(day.ends)), values))
        words = f"{'USD' if priced else 'node-hours'} a day by {name}"
        boxes.append(box_of(Card((("n b halo", words),)), 2, y, WIDTH - 4))
        boxes += stack_boxes(columns, bands, y + 2 * LINE, "$" if priced else "")
        boxes += legend_of(y + _GRAPH, _LEGEND, {group: (fill, (group,)) for group, fill in bands})
        y = boxes[-1].end + 2 * PAD
    shapes, texts = ([box for box in boxes if bool(box.lines) == is_text] for is_text in (0, 1))
    return Drawing(WIDTH, round(y), (*day_boxes(axis, y), *shapes, *texts))


def _groups(days: Sequence[Showback], name_of: Callable[[Key], str]) -> Mapping[str, Group]:
    return group_by((line for day in days for line in day.lines), name_of)


def _cells(group: Group) -> tuple[str, str, str]:
    hours = f"{float(group.node_seconds) / _HOUR:,.1f}"
    return hours, dollars(group.cents), dollars(group.estimate)


def _day(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
