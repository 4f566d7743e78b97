"""Opening lines of `ultrascale plan`: at most twelve, of 80 columns."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ultrascale.plan.amounts import amount
from ultrascale.plan.model import ClusterNeeds, MoneyAnswer, PlanAnswer, WindowNeeds
from ultrascale.plan.needs.report import verdict_line
from ultrascale.plan.needs.tables import plain

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
        for number, line in enumerate(lines):
            yield f"{'' if number else part.label:<{_LABEL}}{line}".rstrip()


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
    yield _Part("More", "tables: --all, or by name, such as: pools quotas money")


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
