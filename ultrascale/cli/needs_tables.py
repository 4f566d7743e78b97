"""Tables of `ultrascale plan`: the needs of a cluster."""

from collections.abc import Iterator, Sequence

from rich.box import MARKDOWN, Box

from ultrascale.cli.needs_remarks import explained, remarks
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table as PrintedTable
from ultrascale.cli.screen import screen
from ultrascale.cli.table_names import TABLES
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.quotas import beyond_limits
from ultrascale.plan.needs.report import needs_table
from ultrascale.plan.needs.tables import Datum, Line, Table

_MORE = {"money": ("items",)}
_LEGEND = (
    "At full size. NAU: Network Address Usage. Money of pools: nodes alone.",
    "--explain prints the sum and the sources of each number.",
)


def print_needs(needs: ClusterNeeds, box: Box, tables: Sequence[str], *, explain: bool) -> None:
    """Print tables of ``needs`` to the terminal.

    Args:
        needs: The needs of a cluster.
        box: Borders of the tables.
        tables: Some of ``TABLES``. A table without rows is left out.
        explain: Whether each number follows with its formula and its sources.
    """
    console = screen()
    if tables:
        at = "" if needs.at is None else f" at {needs.at:%Y-%m-%d %H:%M} UTC"
        heading = "## " if box is MARKDOWN else ""
        say(f"{heading}{needs.name} in {needs.region}{at}")
    parts = (part for name in TABLES if name in tables for part in (name, *_MORE.get(name, ())))
    for table in (needs_table(needs, part).text() for part in parts if part != "notes"):
        if table.rows:
            console.print(_printed_table(table, box))
    if "notes" in tables:
        for line in (*_note_lines(needs, box), *_LEGEND):
            say(f"- {line}" if box is MARKDOWN else line)
    if explain:
        say()
        # As code: Markdown would change the meaning of the lines.
        lines = explained(needs)
        for line in ("```text", *lines, "```") if box is MARKDOWN else lines:
            say(line)


def _note_lines(needs: ClusterNeeds, box: Box) -> Iterator[str]:
    # A reader of the page does not see the error output of the command.
    if box is MARKDOWN:
        lines = (*beyond_limits(needs), *beyond_published(needs.load))
        yield from (f"{line}." for line in lines)
    yield from remarks(needs)


def _printed_table(table: Table, box: Box) -> PrintedTable:
    """Return a printable table that never wraps its first column."""
    printed = PrintedTable(box=box)
    for place, column in enumerate(table.columns):
        justify = "right" if column.kind in ("number", "span") else "left"
        printed.add_column(column.title, no_wrap=not place, justify=justify)
    for line in table.lines:
        printed.add_row(*(_cell_text(cell, box) for cell in line))
    return printed


def _cell_text(line: Line, box: Box) -> str:
    """Return a cell as a line, with a user's text escaped for Markdown."""
    text = "".join(part.cell if isinstance(part, Datum) else part for part in line)
    text = " ".join(text.split())
    return text.replace("|", "\\|") if box is MARKDOWN else text
