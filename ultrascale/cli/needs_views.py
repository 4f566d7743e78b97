"""Views of `ultrascale plan`: its opening lines, its tables, the remarks and sums beside them."""

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.box import MARKDOWN, Box

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table as PrintedTable
from ultrascale.cli.screen import screen
from ultrascale.cli.table_names import TABLES
from ultrascale.plan.amounts import amount, cell, name_list, number
from ultrascale.plan.model import ClusterNeeds, Figures, MoneyAnswer, PlanAnswer, WindowNeeds
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.quotas import beyond_limits
from ultrascale.plan.needs.report import MONEY, all_figures, needs_table, verdict_line
from ultrascale.plan.needs.tables import Datum, Line, Table, plain

# --- Opening lines of `ultrascale plan`: at most twelve, of 80 columns ----------------------------


LINES = 12
COLUMNS = 80
_LABEL = 8
_TEXT = COLUMNS - _LABEL
# Most characters for the names of parts without a price, in lines that may not be cut.
_NAMED = 40
# Words in the names of quotas that add nothing to the other words.
_FILLING = re.compile(r"^(Running|All|Concurrent|Rate of) | (instances|Instance Requests)$|\(.*\)")


class _Part(NamedTuple):
    """A label with its text, which is shortened if the line lacks room, unless ``whole``.

    ``rank`` orders second lines.
    """

    label: str
    text: str
    rank: int | None = None
    whole: bool = False


def answer_lines(needs: ClusterNeeds, file: Path) -> Iterator[str]:
    """Yield lines that answer the first questions about a cluster.

    Args:
        needs: The needs of the cluster.
        file: The cluster file, as the commands in the lines name it.
    """
    yield _shortened(f"{needs.name} in {needs.region}: {plain(verdict_line(needs))}", COLUMNS)
    parts = [*_parts(needs.answer, file)]
    second = sorted(
        (part.rank, part) for part in parts if part.rank and len(_wrapped_lines(part, 9)) > 1
    )
    room = LINES - 1 - sum(len(_wrapped_lines(part, 1)) for part in parts)
    wide = {part.label or part.text for _, part in second[:room]}
    for part in parts:
        lines = _wrapped_lines(part, 2 if (part.label or part.text) in wide else 1)
        for index, line in enumerate(lines):
            yield f"{'' if index else part.label:<{_LABEL}}{line}".rstrip()


def _parts(answer: PlanAnswer, file: Path) -> Iterator[_Part]:
    yield _Part("Why", "; ".join(answer.why), 2)
    yield _Part("Raise", _quotas(answer), 4)
    if answer.quotas:
        yield _Part("", _command_text("ultrascale preflight FILE --request-quotas", file))
    elif answer.quotas_unknown:
        yield _Part("", _command_text("ultrascale preflight FILE", file))
    yield _Part("Money", "; ".join(_money_lines(answer.money)), whole=True)
    if answer.money.command is not None:
        yield _Part("", _command_text(answer.money.command, file))
    yield _Part("Window", _window(answer.window), 3)
    risk = answer.risk
    yield _Part("Risk", f"{risk.text}; {risk.advice}" if risk.advice else risk.text, 1)
    old = answer.expired_facts
    more = (
        f"; {old} expired facts: `ultrascale facts FILE`"
        if old
        else ", such as: pools quotas money"
    )
    yield _Part("More", f"tables: --all, or by name{more}")


def _quotas(answer: PlanAnswer) -> str:
    if answer.quotas:
        return ", ".join(f"{_short(quota.name)} to {quota.needed:,}" for quota in answer.quotas)
    if answer.quotas_unknown:
        return f"look up, no default is published: {', '.join(answer.quotas_unknown)}"
    return "no quota: the defaults hold it"


def _short(name: str) -> str:
    return " ".join(_FILLING.sub("", name).split())


def _money_lines(money: MoneyAnswer) -> Iterator[str]:
    """Yield the price at full size, its largest parts, and the parts without a price."""
    hourly, monthly = money.usd_per_hour, money.usd_per_month
    sizes = f"{money.nodes:,} nodes at most, {money.nodes_at_first:,} at first"
    if hourly.value is None or monthly.value is None or not money.nodes_priced:
        yield f"{sizes}: no node has a known price"
    else:
        price = f"{hourly.value:,.2f} USD/hour, {monthly.value:,.0f} USD/month"
        priced = amount(hourly.value, price, without=hourly.without)
        if money.nodes_priced < money.nodes:
            priced = f"{priced} for {money.nodes_priced:,} of them"
        yield f"{sizes}: {priced}"
    if hourly.without:
        yield _unpriced_parts(money)
    if money.spot_at_on_demand:
        yield "Spot at On-Demand prices"
    dated = f"prices {'of' if money.oldest == money.newest else 'from'} {money.oldest}, "
    yield f"{'' if money.oldest is None else dated}without usage"


def _unpriced_parts(money: MoneyAnswer) -> str:
    named = [*money.lacking]
    while len(named) > 1 and len(", ".join(named)) > _NAMED:
        named.pop()
    text = ", ".join(named)
    if len(named) == len(money.lacking):
        return f"no price: {text}"
    return f"no price of {money.without_count:,} parts, such as {text}"


def _window(window: WindowNeeds | None) -> str:
    if window is None:
        return "none"
    drain = window.figures["drain_minutes"].value or 0
    return (
        f"{window.starts:%Y-%m-%d %H:%M} to {window.ends:%Y-%m-%d %H:%M} UTC, "
        f"drain {drain:,.0f} min, {window.pool}"
    )


def _command_text(words: str, file: Path) -> str:
    """Return a command; without the file's name if the line has no room for it."""
    whole = words.replace("FILE", shlex.quote(str(file)))
    return whole if len(whole) <= _TEXT else words


def _wrapped_lines(part: _Part, most: int) -> list[str]:
    return textwrap.wrap(
        part.text,
        _TEXT,
        max_lines=None if part.whole else most,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


# --- Remarks of `ultrascale plan` beside its tables, and the formula behind each number -----------


# Longer lists of names end with the number of further names.
_NAMES = 8


def remarks(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the remarks of a plan beside its tables."""
    for window in needs.calendar:
        if window.note is not None:
            yield f"{window.pool}: {window.note}."
    for subnets in needs.subnets:
        if subnets.holds_skew is False:
            yield (
                f"{subnets.zone}: does not hold all nodes that may launch in its {subnets.kind} "
                f"subnets, as pools of several zones may all at once: "
                f"{subnets.figures['nodes_of_skew'].formula}. Nodes beyond that find no address."
            )
    if needs.queues is not None:
        yield (
            "Queues: a queue gets its guaranteed nodes back when it waits for them; at most are "
            "those with all that others leave idle."
        )
    if needs.services:
        yield (
            "Services: dollars are of whole nodes, idle or not; a million tokens cost that much "
            "while all replicas are fully used, and twice as much while they are half used."
        )
    yield from (line for part in needs.parts for line in part.remarks)
    yield from _remarks_on_money(needs)
    if needs.control_plane.advice is not None:
        yield f"Control plane: {needs.control_plane.advice}."
    leases = needs.control_plane.figures["leases_per_second"]
    yield f"Kubelets write {cell(leases, places=1)} leases a second: {leases.formula}."
    yield from (f"{line}." for line in needs.remarks)
    yield from (
        f"{row.name}: {row.advice}." for row in needs.load if row.state == "ask" and row.advice
    )
    yield from _remarks_on_launch(needs.launch)


def unpriced(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the pools without a price, each with the reason."""
    reasons: dict[str, list[str]] = {}
    for pool in needs.pools:
        if pool.figures[MONEY[0]].value is None:
            reasons.setdefault(pool.figures[MONEY[0]].formula, []).append(pool.pool)
    for why, names in reasons.items():
        yield f"{name_list(names, _NAMES)}: no price: {why}."


def _remarks_on_money(needs: ClusterNeeds) -> Iterator[str]:
    yield from unpriced(needs)
    yield f"{needs.money.half[0].upper()}{needs.money.half[1:]}."
    money = needs.money
    if money.unpriced:
        count = len(money.unpriced)
        counted = "1 thing beside nodes has" if count == 1 else f"{count} things beside nodes have"
        yield f"{counted} no price: {name_list(money.unpriced, _NAMES)}."
    if needs.answer.money.command is not None:
        yield f"Prices that are missing: {needs.answer.money.command}, then --prices prices.csv."


def _remarks_on_launch(launch: Figures) -> Iterator[str]:
    wanted, most = launch["coredns_replicas"], launch["coredns_replicas_most"]
    if wanted.value is not None and most.value is not None:
        yield (
            f"CoreDNS: EKS would take {cell(wanted, places=0)} replicas ({wanted.formula}), and "
            f"may take {cell(most, places=0)}."
        )
    minutes, measured = launch["run_instances_minutes"], launch["measured_minutes"]
    if minutes.value:
        text = cell(minutes, places=0)
        yield f"Launching all nodes takes about {text} minutes: {minutes.formula}."
        text = cell(measured, places=1)
        yield f"{text} minutes instead, for which to open a support case: {measured.formula}."


def explained(needs: ClusterNeeds) -> Iterator[str]:
    """Yield each number with its formula and sources, and the sources of the prices."""
    for figure in all_figures(needs):
        value = "unknown"
        if figure.value is not None:
            value = number(figure.value, places=2 if abs(figure.value) >= 1 else 4)
        yield f"{figure.id} = {value} {figure.unit}".rstrip() + f": {figure.formula}"
        yield from (f"    {page}" for page in figure.sources)
    yield from (f"assumed: {each}" for each in needs.money.assumptions)


# --- Tables of `ultrascale plan`: the needs of a cluster ------------------------------------------


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
