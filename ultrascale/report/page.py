"""The report as one page of HTML, which loads nothing from anywhere."""

from collections.abc import Iterator
from typing import NamedTuple

from ultrascale.plan.model import ClusterNeeds
from ultrascale.report import changes, headline
from ultrascale.report.calendar import draw_calendar
from ultrascale.report.changes import Comparison, changes_table, nodes_table
from ultrascale.report.limits import load_table, quotas_table, tier_table
from ultrascale.report.markup import Content, Markup, element, joined, plain, shown_time, text
from ultrascale.report.style import PAGE_STYLE
from ultrascale.report.table import Row, Table
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
from ultrascale.report.topology import WIDTHS, draw_topology

# The browser itself refuses whatever the page might ask for.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


class _Section(NamedTuple):
    """A section of the page."""

    id: str
    title: str
    body: Markup


def render_page(
    needs: ClusterNeeds, *, file: str, version: str, comparison: Comparison | None = None
) -> str:
    """Return the page.

    Args:
        needs: What the cluster needs.
        file: Name of the cluster file.
        version: Version of this product.
        comparison: Comparison with an earlier state; None without one.
    """
    sections = [*_sections(needs, comparison)]
    title = f"{needs.name} in {needs.region}"
    links = joined(
        element("li", element("a", section.title, href=f"#{section.id}")) for section in sections
    )
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            Markup('<meta name="referrer" content="no-referrer">'),
            element("title", f"{title}: cluster report"),
            Markup(f"<style>{PAGE_STYLE}</style>"),
        ],
        "\n",
    )
    header = element(
        "header",
        element("h1", title),
        element("p", *_lede(needs, file), class_="lede"),
        element("nav", element("ul", links), aria_label="Sections"),
    )
    main = element("main", joined(map(_section, sections), "\n"), id="content")
    body = joined(
        [
            element("a", "Skip to the report", class_="skip", href="#content"),
            header,
            main,
            element("footer", element("p", *_footer(version))),
        ],
        "\n",
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _lede(needs: ClusterNeeds, file: str) -> Iterator[Content]:
    yield f"Planned from {file}, at full size"
    if needs.at is not None:
        yield ", for "
        yield shown_time("at", needs.at)
        yield " UTC"
    yield ". No account was asked."


def _footer(version: str) -> Iterator[Content]:
    yield (
        f"Made by ultrascale {version}. Every figure is one of ultrascale plan FILE --json, where "
        "each has its formula and its sources. The page loads nothing from anywhere."
    )


def _section(section: _Section) -> Markup:
    heading = f"{section.id}-heading"
    return element(
        "section",
        element("h2", section.title, id=heading),
        section.body,
        id=section.id,
        aria_labelledby=heading,
    )


def _sections(needs: ClusterNeeds, comparison: Comparison | None) -> Iterator[_Section]:
    yield _Section("answer", "Answer", _answer(needs))
    if comparison is not None:
        yield _Section("changes", "Changes", _changes(comparison))
    yield _Section("topology", "Topology", _topology(needs))
    yield _Section("calendar", "Calendar and cost", _calendar(needs))
    if needs.services:
        yield _Section("services", "Services", _table(services_table(needs)))
    yield _Section("control-plane", "Control plane", _control_plane(needs))
    yield _Section("quotas", "Quotas", _quotas(needs))
    yield _Section("decisions", "Decisions", _decisions(needs))


def _answer(needs: ClusterNeeds) -> Markup:
    strong = element("strong", *headline.verdict(needs))
    tiles = joined(
        element("div", element("dt", tile.name), element("dd", tile.value))
        for tile in headline.tiles(needs)
    )
    facts = joined(
        element("li", element("strong", f"{label}: "), *line)
        for label, line in headline.facts(needs)
    )
    return joined(
        [
            element("p", strong, class_=f"verdict {headline.tone(needs)}"),
            element("dl", tiles, class_="tiles"),
            element("ul", facts, class_="facts"),
        ],
        "\n",
    )


def _topology(needs: ClusterNeeds) -> Markup:
    return joined(
        [
            *(
                draw_topology(needs, f"topology-{name}", width, class_=name)
                for name, width in WIDTHS.items()
            ),
            element("h3", "Pools"),
            _table(pools_table(needs)),
            _more("Subnets and their addresses", _table(subnets_table(needs))),
        ],
        "\n",
    )


def _calendar(needs: ClusterNeeds) -> Markup:
    drawings = [
        draw_calendar(needs, f"calendar-{name}", width, class_=name)
        for name, width in WIDTHS.items()
    ]
    parts: list[Markup] = [each for each in drawings if each is not None]
    if not needs.calendar:
        parts.insert(0, _note("The file has no window: no Capacity Block and no training plan."))
    spend = needs.spend
    if spend.without:
        command = needs.answer.money.command
        more = f" Get prices by {command}." if command is not None else ""
        parts.append(
            _note(f"Not in the cost, for want of a price: {', '.join(spend.without)}.{more}")
        )
    if needs.calendar:
        parts.append(_table(calendar_table(needs)))
    if spend.parts:
        parts += [
            _table(steps_table(needs)),
            _more("What each part costs a day", _table(parts_table(needs))),
        ]
    if needs.money.items:
        parts.append(_more("What is paid beside nodes", _table(items_table(needs))))
    parts.append(_note(f"Assumed: {'; '.join(spend.assumptions)}."))
    return joined(parts, "\n")


def _control_plane(needs: ClusterNeeds) -> Markup:
    own = needs.control_plane
    parts = [_note(f"Control plane: {own.advice}.")] if own.advice is not None else []
    parts += [
        _table(tier_table(needs)),
        _table(load_table(needs, judged=True)),
        _more("Load by its origin", _table(load_table(needs, judged=False))),
        _more("Launch of all nodes", _table(launch_table(needs))),
    ]
    if (gangs := placement_table(needs)).rows:
        parts.append(_more("Gangs by network layer", _table(gangs)))
    if (queues := queues_table(needs)).rows:
        parts.append(_more("Queues and their nodes", _table(queues)))
    return joined(parts, "\n")


def _quotas(needs: ClusterNeeds) -> Markup:
    to_raise, others = quotas_table(needs, to_raise=True), quotas_table(needs, to_raise=False)
    commands = joined(
        element("li", element("code", quota.command))
        for quota in needs.answer.quotas
        if quota.command is not None
    )
    parts: list[Markup] = []
    if to_raise.rows:
        parts.append(_table(to_raise))
    else:
        parts.append(_note("No quota has to be raised: the defaults hold the cluster."))
    if commands:
        parts.append(_more("Commands that ask for them", element("ul", commands, class_="facts")))
    if others.rows:
        parts.append(_more("Quotas that hold the cluster", _table(others)))
    return joined(parts, "\n")


def _decisions(needs: ClusterNeeds) -> Markup:
    parts = [_table(decisions_table(needs))]
    assumptions = joined(element("li", each) for each in needs.money.assumptions)
    parts.append(_more("What the money rests on", element("ul", assumptions, class_="facts")))
    return joined(parts, "\n")


def _changes(comparison: Comparison) -> Markup:
    strong = element("strong", changes.verdict(comparison))
    parts = [
        element("p", strong, class_=f"verdict {changes.tone(comparison)}"),
        element(
            "p", f"Against {comparison.against}: ", *changes.summary(comparison), ".", class_="note"
        ),
    ]
    for table in (changes_table(comparison), nodes_table(comparison)):
        if table.rows:
            parts.append(_table(table))
    return joined(parts, "\n")


def _note(words: str) -> Markup:
    return element("p", words, class_="note")


def _more(title: str, body: Markup) -> Markup:
    return element("details", element("summary", title), body)


def _table(table: Table) -> Markup:
    """Return a table in a box that scrolls by itself where it is too wide."""
    head = joined(
        element("th", column.title, scope="col", class_="n" if column.is_number else None)
        if column.title
        else element("th", Markup('<span class="hidden">state</span>'), scope="col")
        for column in table.columns
    )
    rows = [_row(table, row) for row in table.rows]
    foot = rows.pop() if table.last_is_total else None
    parts = [
        element("caption", element("span", table.caption)),
        element("thead", element("tr", head)),
        element("tbody", joined(rows, "\n")),
    ]
    if foot is not None:
        parts.append(element("tfoot", foot))
    # A box that scrolls has to be reached by the keyboard, and to have a name.
    return element(
        "div",
        element("table", joined(parts, "\n")),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=table.caption,
    )


def _row(table: Table, row: Row) -> Markup:
    cells: list[Markup] = []
    for place, (column, cell) in enumerate(zip(table.columns, row.cells, strict=True)):
        if not place:
            wide = "w" if column.is_wide else None
            cells.append(element("th", *cell, scope="row", class_=wide))
        elif column.is_state:
            cells.append(element("td", _state(row, text(*cell))))
        elif column.is_number:
            cells.append(element("td", *cell, class_="n"))
        elif column.is_list:
            names = "".join(map(plain, cell)).split(", ")
            items = joined((element("span", name) for name in names), ", ")
            cells.append(element("td", items, class_="l"))
        else:
            class_ = "k" if column.is_short else "w" if column.is_wide else None
            cells.append(element("td", *cell, class_=class_))
    return element("tr", joined(cells))


def _state(row: Row, words: Markup) -> Markup:
    parts = [element("span", words, class_=f"tag {row.tone}")] if words else []
    if row.share is not None:
        parts.append(_bar(row))
    return joined(parts)


def _bar(row: Row) -> Markup:
    """Return a bar of what is taken of a limit, which the figures beside it say."""
    share = min(row.share or 0, 1)
    tone = row.tone if row.tone in ("bad", "warn") else None
    inner = element("i", style=f"width:{round(100 * share, 1):g}%")
    return element("span", inner, class_=f"bar {tone}" if tone else "bar", aria_hidden="true")
