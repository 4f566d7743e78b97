"""The report as Markdown for a pull request, short enough for a comment of GitHub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ultrascale.plan.model import ClusterNeeds
from ultrascale.report import changes, headline
from ultrascale.report.changes import Comparison, changes_table, nodes_table
from ultrascale.report.limits import load_table, quotas_table, tier_table
from ultrascale.report.markup import plain
from ultrascale.report.mermaid import calendar_diagram, topology_diagram
from ultrascale.report.table import Cell, Column, Table
from ultrascale.report.tables import (
    calendar_table,
    decisions_table,
    items_table,
    launch_table,
    parts_table,
    placement_table,
    pools_table,
    queues_table,
    services_table,
    steps_table,
    subnets_table,
)

LIMIT = 60_000
"""Most characters of the text: a comment of GitHub holds 65,536."""

_LEAST_ROWS = 5
_BREAK = "<br>"
# What Markdown, or GitHub's own syntax, would take for markup.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~#!$]")
# A name after it would be told of the comment; two characters of markup part them.
_MENTION = re.compile(r"@(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|www|ftp)(?=://|\.)")
_MARKS: Mapping[str, str] = {"good": "✅", "warn": "⚠️", "bad": "❌", "plain": ""}


@dataclass(frozen=True, slots=True)
class _Part:
    """A heading, or a table, of the text.

    Attributes:
        lines: Lines that stand first.
        table: The table below them; None without one.
        folded: Title of a part that a reader opens; empty for what is open.
    """

    lines: tuple[str, ...] = ()
    table: Table | None = None
    folded: str = ""


def render_markdown(
    needs: ClusterNeeds, *, file: str, version: str, comparison: Comparison | None = None
) -> str:
    """Return the text, of at most `LIMIT` characters: the longest tables lose their last rows.

    Args:
        needs: What the cluster needs.
        file: Name of the cluster file.
        version: Version of this product.
        comparison: Comparison with an earlier state; None without one.
    """
    parts = [*_parts(needs, file, version, comparison)]
    dropped = dict.fromkeys(range(len(parts)), 0)
    while len(text := _text(parts, dropped)) > LIMIT:
        lengths = {
            index: len(_shown(part, dropped[index]))
            for index, part in enumerate(parts)
            if part.table is not None and len(part.table.rows) - dropped[index] > _LEAST_ROWS
        }
        if not lengths:
            return text[: LIMIT - 1].rsplit("\n", 1)[0] + "\n"
        longest = max(lengths, key=lengths.__getitem__)
        table = parts[longest].table
        assert table is not None
        left = len(table.rows) - dropped[longest]
        dropped[longest] += max(1, (left - _LEAST_ROWS) // 4)
    return text


def _text(parts: Sequence[_Part], dropped: Mapping[int, int]) -> str:
    return "\n".join(_shown(part, dropped[index]) for index, part in enumerate(parts)) + "\n"


def _shown(part: _Part, dropped: int) -> str:
    lines = [*part.lines]
    if part.table is not None:
        lines += ["", *_table(part.table, dropped)]
    if part.folded:
        summary = f"<details><summary>{part.folded}</summary>"
        lines = [summary, *lines, "", "</details>"]
    return "\n".join([*lines, ""])


def _parts(
    needs: ClusterNeeds, file: str, version: str, comparison: Comparison | None
) -> Iterator[_Part]:
    yield _Part(
        (
            f"## {_escaped(needs.name)} in {_escaped(needs.region)}",
            "",
            f"{_MARKS[headline.tone(needs)]} **{_cell(headline.verdict(needs))}**",
            "",
            *_answer(needs),
        )
    )
    if comparison is not None:
        yield from _changes(comparison)
    yield _Part(("### Topology", "", *_diagram(topology_diagram(needs))))
    yield _Part(("### Pools",), pools_table(needs))
    yield _Part((), subnets_table(needs), "Subnets and their addresses")
    yield from _calendar(needs)
    if needs.services:
        yield _Part(("### Services",), services_table(needs))
    advice = needs.control_plane.advice
    yield _Part(
        ("### Control plane", *(("", f"{_escaped(advice)}.") if advice is not None else ())),
        tier_table(needs),
    )
    yield _Part((), load_table(needs, judged=True))
    yield _Part((), load_table(needs, judged=False), "Load by its origin")
    yield _Part((), launch_table(needs), "Launch of all nodes")
    if placement_table(needs).rows:
        yield _Part((), placement_table(needs), "Gangs by network layer")
    if queues_table(needs).rows:
        yield _Part((), queues_table(needs), "Queues and their nodes")
    to_raise = quotas_table(needs, to_raise=True)
    if to_raise.rows:
        yield _Part(("### Quotas",), to_raise)
    else:
        yield _Part(("### Quotas", "", "No quota has to be raised."))
    yield _Part((), quotas_table(needs, to_raise=False), "Quotas that hold the cluster")
    yield _Part((), decisions_table(needs), "Decisions and their reasons")
    yield _Part(
        (
            f"Planned from {_escaped(file)} by ultrascale {_escaped(version)}, without asking an "
            "account. Each figure is one of `ultrascale plan FILE --json`.",
        )
    )


def _answer(needs: ClusterNeeds) -> Iterator[str]:
    tiles = [*headline.tiles(needs)]
    yield f"| {' | '.join(_escaped(tile.name) for tile in tiles)} |"
    yield f"|{'---:|' * len(tiles)}"
    yield f"| {' | '.join(_cell((tile.value,)) for tile in tiles)} |"
    yield ""
    for label, line in headline.facts(needs):
        yield f"- **{label}:** {_cell(line)}"


def _calendar(needs: ClusterNeeds) -> Iterator[_Part]:
    without = needs.spend.without
    note = ("", f"No price is known of: {_escaped(', '.join(without))}.") if without else ()
    if needs.calendar:
        diagram = _diagram(calendar_diagram(needs))
        yield _Part(("### Calendar and cost", "", *diagram, *note), calendar_table(needs))
    else:
        yield _Part(("### Calendar and cost", "", "The file has no window.", *note))
    if needs.spend.parts:
        yield _Part((), steps_table(needs))
        yield _Part((), parts_table(needs), "What each part costs a day")
    if needs.money.items:
        yield _Part((), items_table(needs), "What is paid beside nodes")


def _diagram(lines: Iterator[str]) -> Iterator[str]:
    yield "```mermaid"
    yield from lines
    yield "```"


def _changes(comparison: Comparison) -> Iterator[_Part]:
    yield _Part(
        (
            "### Changes",
            "",
            f"{_MARKS[changes.tone(comparison)]} **{_escaped(changes.verdict(comparison))}**",
            "",
            f"Against {_escaped(comparison.against)}: {_cell(tuple(changes.summary(comparison)))}.",
        )
    )
    for table in (changes_table(comparison), nodes_table(comparison)):
        if table.rows:
            yield _Part((), table)


def _table(table: Table, dropped: int) -> Iterator[str]:
    total = table.rows[-1:] if table.last_is_total else ()
    rows = table.rows[: len(table.rows) - len(total)]
    kept = rows[: len(rows) - dropped] if dropped else rows
    yield _escaped(table.caption)
    yield ""
    yield f"| {' | '.join(_escaped(column.title) for column in table.columns)} |"
    yield f"|{'|'.join(_rule(column) for column in table.columns)}|"
    for row in kept:
        cells = [
            f"{_MARKS[row.tone]} {_cell(cell)}".strip() if column.is_state else _cell(cell)
            for column, cell in zip(table.columns, row.cells, strict=True)
        ]
        yield f"| {' | '.join(cells)} |"
    for row in total:
        bold = [f"**{cell}**" if (cell := _cell(each)) else "" for each in row.cells]
        yield f"| {' | '.join(bold)} |"
    if dropped:
        yield ""
        yield f"{dropped:,} more rows are left out here; the page has them all."


def _rule(column: Column) -> str:
    return "---:" if column.is_number else "---"


def _cell(contents: Cell) -> str:
    return _escaped("".join(plain(content) for content in contents))


def _escaped(words: str) -> str:
    """Return one line of text that Markdown shows as it is: no markup, no mention, no link."""
    line = _SPECIAL.sub(lambda found: f"\\{found[0]}", " ".join(words.split()))
    line = _MENTION.sub("@<!-- -->", line)
    return _LINK.sub(lambda found: f"{found[0]}<!-- -->", line)
