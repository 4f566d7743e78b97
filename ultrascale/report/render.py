"""The report as a page, a text and a picture, rendered by templates."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from ultrascale.ledger.showback import Showback
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs import pools
from ultrascale.plan.needs.tables import Table, plain, time_at
from ultrascale.report import headline, words
from ultrascale.report.calendar import calendar_drawing
from ultrascale.report.sections import Comparison, Section, sections_of
from ultrascale.report.topology import topology_drawing
from ultrascale.report.usage import usage_drawing, usage_sections

LIMIT = 60_000
"""Most characters of the Markdown text: a comment of GitHub holds 65,536."""

_LEAST_ROWS = 5
# Characters that XML cannot hold.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters that Markdown, or GitHub's own syntax, takes for markup.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~#!$]")
# Separates two characters of markup before a name: GitHub would notify the person of that name.
_MENTION = re.compile(r"@(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|www|ftp)(?=://|\.)")
_MERMAID = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}


def render_page(
    needs: ClusterNeeds,
    *,
    file: str,
    version: str,
    comparison: Comparison | None = None,
    seen: Sequence[Section] = (),
    ledger: Sequence[Showback] = (),
) -> str:
    """Return the HTML page, which loads nothing from elsewhere.

    Args:
        needs: What the cluster needs.
        file: Name of the cluster file.
        version: Version of this product.
        comparison: Comparison with an earlier state; None without one.
        seen: Sections on what was seen of the live cluster; they come first.
        ledger: The ledger, priced by days; empty without one.
    """
    return _rendered_template(
        "page.html.jinja",
        needs,
        file=file,
        version=version,
        sections=[*seen, *usage_sections(ledger), *sections_of(needs, comparison)],
        seen=seen,
        usage=usage_drawing(ledger) if ledger else None,
        topology=topology_drawing(needs),
        calendar=calendar_drawing(needs),
    )


def render_picture(needs: ClusterNeeds) -> str:
    """Return the topology of a cluster as a self-contained SVG file."""
    return _rendered_template("topology.svg.jinja", needs, topology=topology_drawing(needs))


def render_markdown(
    needs: ClusterNeeds,
    *,
    file: str,
    version: str,
    comparison: Comparison | None = None,
    ledger: Sequence[Showback] = (),
) -> str:
    """Return Markdown of at most `LIMIT` characters: the longest tables lose their last rows.

    Args:
        needs: What the cluster needs.
        file: Name of the cluster file.
        version: Version of this product.
        comparison: Comparison with an earlier state; None without one.
        ledger: The ledger, priced by days; empty without one.
    """
    sections = [*usage_sections(ledger), *sections_of(needs, comparison)]
    blocks = [block for section in sections for block in section.blocks if not block.page_only]
    tables = [block.table for block in blocks if block.table is not None]
    dropped = Counter[str]()

    def left(table: Table) -> int:
        return len(table.rows) - dropped[table.caption]

    while True:
        own = {"file": file, "version": version, "sections": sections, "dropped": dropped}
        text = _rendered_template("report.md.jinja", needs, **own)
        if len(text) <= LIMIT:
            return text
        long = [table for table in tables if left(table) > _LEAST_ROWS]
        if not long:
            return text[: LIMIT - 1].rsplit("\n", 1)[0] + "\n"
        longest = max(long, key=lambda table: _table_length(table, left(table)))
        dropped[longest.caption] += max(1, (left(longest) - _LEAST_ROWS) // 4)


def _table_length(table: Table, rows: int) -> int:
    return sum(len(plain(cell)) for line in table.lines[:rows] for cell in line)


def _rendered_template(name: str, needs: ClusterNeeds, **own: object) -> str:
    template = _templates(is_markup=not name.startswith("report.md")).get_template(name)
    shared = {"headline": headline, "words": words, "pools": pools, "plain": plain, "zip": zip}
    return template.render(needs=needs, time_at=time_at, **shared, **own)


@cache
def _templates(*, is_markup: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("ultrascale.report"),
        autoescape=is_markup,
        undefined=StrictUndefined,
        finalize=_clean_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"md": _escaped_line, "label": _node_label, "task": _task_name}
    return environment


def _clean_value(value: object) -> object:
    """Return a template's value without characters that a page must not contain."""
    # A macro's output is a subclass of str, and clean already.
    return _FORBIDDEN.sub("\ufffd", value) if type(value) is str else value


def _escaped_line(text: str) -> str:
    """Return text as one line of Markdown, in which nothing acts as markup, mention or link."""
    line = _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
    line = _MENTION.sub("@<!-- -->", line)
    return _LINK.sub(r"\g<0><!-- -->", line)


def _node_label(lines: Sequence[str]) -> str:
    """Return lines as the quoted text of a Mermaid node."""
    texts = (" ".join(line.split()) for line in lines if line)
    escaped = ("".join(_MERMAID.get(letter, letter) for letter in text) for text in texts)
    return f'"{"<br/>".join(escaped)}"'


def _task_name(name: str) -> str:
    """Return ``name`` without the characters that separate fields of a Mermaid task."""
    return "".join(letter if letter.isalnum() or letter in "-_. " else " " for letter in name)
