"""Tables of the report that hold needs against limits: control plane, load and quotas."""

from collections.abc import Iterator
from dataclasses import replace

from ultrascale.plan.model import ClusterNeeds, LoadNeed, QuotaNeed
from ultrascale.report.markup import Content, Shown, shown
from ultrascale.report.table import (
    Cell,
    Column,
    Row,
    Table,
    figure,
    number_column,
    short_column,
    text_column,
)
from ultrascale.report.words import LOAD_STATES, QUOTA_STATES


def tier_table(needs: ClusterNeeds) -> Table:
    """Return what the control plane is asked for, beside what its tier has."""
    own = needs.control_plane
    lines = (
        ("pods scheduled a second, one for each node", "pods_per_second", "tier_pods_per_second"),
        ("API seats, of writes alone", "write_seats", "tier_api_seats"),
        ("GB stored, one pod of a job on each node", "database", "tier_database"),
        ("GB stored, every node full of pods", "database_most", "tier_database"),
    )
    rows: list[Row] = []
    for words, key, limit in lines:
        at, needed, most = "control_plane.figures", own.figures[key], own.figures[limit]
        has: Content = (
            Shown(f"{at}.{limit}.value", None, "not fixed")
            if most.value is None
            else figure(f"{at}.{limit}", most)
        )
        share = None if not most.value else (needed.value or 0) / most.value
        tone = "plain" if share is None else "bad" if share > 1 else "good"
        cells = ((words,), (figure(f"{at}.{key}", needed, places=2),), (has,))
        rows.append(Row(cells=cells, tone=tone, share=share))
    return Table(
        caption=f"What the tier {own.tier} is asked for, beside what it has.",
        columns=(text_column("need"), number_column("needed"), number_column(own.tier)),
        rows=tuple(rows),
    )


def load_table(needs: ClusterNeeds, *, judged: bool) -> Table:
    """Return what the control plane carries.

    Args:
        needs: The cluster.
        judged: Whether it holds the rows that somebody published a limit of, or the others.
    """
    rows = [
        _load_row(index, row)
        for index, row in enumerate(needs.load)
        if (row.state != "unpublished") == judged
    ]
    columns = (
        short_column("group"),
        text_column("load"),
        number_column("planned"),
        short_column("unit"),
        *((number_column("published or quota"), Column(title="", is_state=True)) if judged else ()),
    )
    caption = (
        "Load of the control plane that somebody has published, or that a quota bounds."
        if judged
        else "Load of the control plane by its origin; nobody publishes a limit of these."
    )
    return Table(caption=caption, columns=columns, rows=tuple(rows))


def _load_row(index: int, row: LoadNeed) -> Row:
    at = f"load.{index}"
    places = 2 if row.needed.unit == "GB" else 1
    tone, words = LOAD_STATES[row.state]
    cells: list[Cell] = [
        (row.group,),
        (row.name,),
        (figure(f"{at}.needed", row.needed, places=places),),
        (row.needed.unit,),
    ]
    if row.state != "unpublished":
        cells.append((shown(f"{at}.most", row.most) if row.most is not None else "",))
        cells.append((*_agreed(f"{at}.agreed", row, words),))
    share = None if not row.most else (row.needed.value or 0) / row.most
    return Row(cells=tuple(cells), tone=tone, share=share)


def quotas_table(needs: ClusterNeeds, *, to_raise: bool) -> Table:
    """Return the quotas: needed, beside the default.

    Args:
        needs: The cluster.
        to_raise: Whether it holds those that ask for something, or the others.
    """
    quiet = ("within", "agreed")
    rows = [
        _quota_row(index, need)
        for index, need in enumerate(needs.quotas)
        if (need.state not in quiet) == to_raise
    ]
    table = Table(
        caption="Quotas to raise, or to look up." if to_raise else "Quotas that hold the cluster.",
        columns=(
            Column(title="quota", is_wide=True),
            short_column("code"),
            *map(number_column, ("needed", "default", "AWS grants at most")),
            Column(title="", is_state=True),
            *((Column(title="what to do", is_wide=True),) if to_raise else ()),
        ),
        rows=tuple(rows),
    )
    return _without_empty_columns(table)


def _without_empty_columns(table: Table) -> Table:
    kept = [
        place
        for place, column in enumerate(table.columns)
        if column.is_state or any(row.cells[place] not in ((), ("",)) for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(
            replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows
        ),
    )


def _quota_row(index: int, need: QuotaNeed) -> Row:
    at = f"quotas.{index}"
    tone, words = QUOTA_STATES[need.state]
    limits: list[Cell] = [
        (shown(f"{at}.{key}", value) if value is not None else "",)
        for key, value in (("default", need.default), ("most", need.most))
    ]
    cells: tuple[Cell, ...] = (
        (need.name,),
        (need.code or "",),
        (figure(f"{at}.needed", need.needed, places=1),),
        *limits,
        (*_agreed(f"{at}.agreed", need, words),),
    )
    if need.state not in ("within", "agreed"):
        cells = (*cells, (need.advice or "",))
    share = None if not need.default else (need.needed.value or 0) / need.default
    return Row(cells=cells, tone=tone, share=share)


def _agreed(at: str, need: QuotaNeed | LoadNeed, words: str) -> Iterator[Content]:
    yield words
    if need.agreed is not None:
        yield ": "
        yield shown(f"{at}.value", need.agreed.value)
        yield f", {' '.join(need.agreed.reference.split())}"
