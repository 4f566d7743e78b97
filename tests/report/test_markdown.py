"""The report as Markdown for a pull request."""

import re

from msgspec.structs import replace

from tests.report.test_page import CLUSTERS, document_of, needs_of
from tests.support.cases import for_each
from tests.support.needs import needs
from tests.support.pages import at_path
from ultrascale.plan.model import AgreedLimit, ClusterNeeds
from ultrascale.report import render_markdown
from ultrascale.report.render import LIMIT


def render(found: ClusterNeeds) -> str:
    """Return the text of a cluster."""
    return render_markdown(found, file="cluster.yaml", version="1.2.3")


@for_each(CLUSTERS)
def test_it_has_the_sections_of_the_page_and_fits_a_comment(cluster: str) -> None:
    needs = needs_of(cluster)
    text = render(needs)

    assert len(text) < LIMIT
    assert text.startswith(f"## {needs.name} in ")
    for title in ("### Pools", "### Calendar and cost", "### Control plane", "### Quotas"):
        assert f"\n{title}\n" in text
    nodes = at_path(document_of(cluster), "totals.nodes.value")
    assert f"{nodes:,}" in text


@for_each(CLUSTERS)
def test_each_row_of_a_table_has_as_many_cells_as_its_head(cluster: str) -> None:
    """A cell that holds a line's end, or a bar, would part a row."""
    width = 0
    for line in render(needs_of(cluster)).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells


def test_a_text_that_is_too_long_loses_the_last_rows_of_its_longest_tables_and_says_so() -> None:
    found = needs_of("ultra-100k")
    found = replace(found, decisions=found.decisions * 60, load=found.load * 30)

    text = render(found)

    assert len(text) <= LIMIT
    assert len(text) > LIMIT * 0.6
    counts = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) more rows", text)]
    assert counts
    kept = sum(line.startswith("|") for line in text.splitlines())
    assert sum(counts) + kept > 60 * len(needs_of("ultra-100k").decisions)
    assert "### Quotas" in text
    assert "without asking an account" in text


@for_each(CLUSTERS)
def test_diagrams_show_every_pool_and_every_window(cluster: str) -> None:
    found = needs_of(cluster)

    diagrams = re.findall(r"```mermaid\n(.*?)\n```", render(found), re.DOTALL)
    assert len(diagrams) == 1 + bool(found.calendar)
    for pool in found.topology.pools:
        assert f'["{pool.pool}<br/>' in diagrams[0]
        assert f"{pool.nodes_max:,} nodes" in diagrams[0]
    assert diagrams[0].count("subgraph") == len(re.findall(r"^ +end$", diagrams[0], re.MULTILINE))
    for window in found.calendar:
        assert f"  section {window.pool}\n" in diagrams[1]
        assert f"drain :crit, {window.usable_until:%Y-%m-%dT%H:%M}, " in diagrams[1]


def test_a_name_ends_no_diagram() -> None:
    found = needs()
    evil = '"] --> x\n```\n<b>#1</b>'
    pools = (replace(found.topology.pools[0], pool=evil), *found.topology.pools[1:])

    text = render(replace(found, topology=replace(found.topology, pools=pools)))

    (diagram,) = re.findall(r"```mermaid\n(.*?)\n```", text, re.DOTALL)
    assert "#quot;] --#gt; x #96;#96;#96; #lt;b#gt;#35;1#lt;/b#gt;" in diagram


def test_a_text_notifies_nobody_links_nowhere_and_is_no_markup() -> None:
    evil = "@octocat <img src=x> [a](https://example.com) `x` | #1\n# heading www.example.com"
    found = needs()
    quota = replace(
        found.quotas[0],
        state="agreed",
        agreed=AgreedLimit(code="L-1", value=7, reference=evil),
        advice=None,
    )

    text = render(replace(found, quotas=(quota, *found.quotas[1:])))

    (line,) = (line for line in text.splitlines() if "octocat" in line)
    assert "@octocat" not in line
    assert "<img" not in line.replace("\\<img", "")
    assert "https://" not in line
    assert "www.example" not in line
    assert "\\# heading" in line
    assert len(re.findall(r"(?<!\\)\|", line)) == 7
