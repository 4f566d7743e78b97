"""The page of a cluster: its figures, its markup, and what a browser makes of it."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.needs import needs
from tests.support.pages import Element, at_path, number_in, read_page
from tests.support.pools import pool_document
from ultrascale import plan
from ultrascale.documents import Json
from ultrascale.frozen import to_document
from ultrascale.plan.model import AgreedLimit, ClusterNeeds
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.needs.tables import plain
from ultrascale.report import render_page
from ultrascale.report.calendar import calendar_drawing
from ultrascale.report.drawing import Drawing
from ultrascale.report.topology import topology_drawing

CLUSTERS = sorted(file.stem for file in (ROOT / "clusters").glob("*.yaml"))
AT = datetime(2026, 12, 2, tzinfo=UTC)
TEMPLATES = ROOT / "ultrascale" / "report" / "templates"
DRAWING_STYLE = (TEMPLATES / "drawing.css").read_text(encoding="utf-8")
PAGE_STYLE = (TEMPLATES / "page.css").read_text(encoding="utf-8")
HEADINGS = ("h1", "h2", "h3", "h4")
LOADS = ("src", "href", "srcset", "data", "poster", "action", "xlink:href", "background")


@cache
def needs_of(cluster: str) -> ClusterNeeds:
    """Return what a file of ``clusters/`` needs at one time."""
    return plan_needs(plan.load(ROOT / "clusters" / f"{cluster}.yaml"), AT)


@cache
def text_of(cluster: str) -> str:
    """Return the page of a file of ``clusters/``."""
    return render_page(needs_of(cluster), file=f"{cluster}.yaml", version="1.2.3")


@cache
def page_of(cluster: str) -> Element:
    """Return the page of a file of ``clusters/``, read."""
    return read_page(text_of(cluster))


@cache
def document_of(cluster: str) -> Json:
    """Return what `plan --json` prints of a file of ``clusters/``."""
    return as_json(needs_of(cluster))


def as_json(found: ClusterNeeds) -> Json:
    return json.loads(json.dumps(to_document(found), default=_time))


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert isinstance(value, date)
    return value.isoformat()


def render(found: ClusterNeeds, file: str = "cluster.yaml") -> str:
    """Return the page of a cluster."""
    return render_page(found, file=file, version="1.2.3")


# --- Figures ------------------------------------------------------------------------------------


@for_each(CLUSTERS)
def test_each_figure_is_the_one_that_plan_prints_as_json(cluster: str) -> None:
    document, figures = document_of(cluster), [*_figures(page_of(cluster))]

    assert len(figures) > 100
    for path, value, text in figures:
        told = at_path(document, path)
        if told is None:
            assert (value, text) in [("", "unknown"), ("", "not fixed")], path
        elif isinstance(told, str):
            assert (value, text) == (told, told[:16].replace("T", " ")), path
        else:
            assert isinstance(told, int | float)
            assert float(value) == told, path
            assert text == "unknown" or abs(number_in(text) - told) <= 0.05 * abs(told) + 0.005, (
                path
            )


@for_each(CLUSTERS)
def test_no_number_stands_on_the_page_that_plan_does_not_print(cluster: str) -> None:
    """Numbers within sentences are those of the sentences in the JSON.

    A list that is cut says how many names it leaves out.
    """
    known = {number for words in _strings(document_of(cluster)) for number in _numbers(words)}
    known |= {f"{value:,}" for value in _values(document_of(cluster))}
    # The version, and the names of S3 and of the EC2 service.
    known |= {"1.2.3", "3", "2"}

    sentences = [re.sub(r"and\s\d+\smore", "", words) for words in _sentences(page_of(cluster))]
    told = {number for words in sentences for number in _numbers(words)}

    assert told - known == set()


def _figures(page: Element) -> Iterator[tuple[str, str, str]]:
    for element in page.walk():
        if "data-figure" in element.attributes:
            attributes = element.attributes
            value = attributes.get("value", attributes.get("data-value"))
            assert value is not None
            yield attributes["data-figure"], value, element.text


def _sentences(element: Element) -> Iterator[str]:
    """Yield the texts beside figures and axes; a description repeats what is drawn."""
    if element.name in ("style", "desc") or {"data-figure", "data-axis"} & {*element.attributes}:
        return
    for child in element.children:
        if isinstance(child, str):
            yield child
        else:
            yield from _sentences(child)


def _numbers(words: str) -> list[str]:
    return re.findall(r"\d+(?:[.,/:-]\d+)*", words)


def _strings(document: Json) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for key, value in document.items():
            yield key
            yield from _strings(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from _strings(value)


def _values(document: Json) -> Iterator[float]:
    if isinstance(document, int | float):
        yield document
    elif isinstance(document, Mapping):
        for value in document.values():
            yield from _values(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from _values(value)


# --- Markup -------------------------------------------------------------------------------------


@for_each(CLUSTERS)
def test_the_page_loads_nothing_and_has_the_browser_refuse_it(cluster: str) -> None:
    page = page_of(cluster)

    (policy,) = (
        element.attributes["content"]
        for element in page.all("meta")
        if element.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    for element in page.walk():
        assert element.name not in ("script", "link", "img", "iframe", "object", "use", "image")
        assert not any(key.startswith("on") for key in element.attributes)
        for key in LOADS:
            assert element.attributes.get(key, "#").startswith("#")
        for value in element.attributes.values():
            assert "url(" not in value or value.startswith("url(#")
    for style in (DRAWING_STYLE, PAGE_STYLE):
        assert "url(" not in style
        assert "@import" not in style


@for_each(CLUSTERS)
def test_ids_are_unique_and_what_refers_to_them_finds_them(cluster: str) -> None:
    page = page_of(cluster)

    ids = [element.attributes["id"] for element in page.walk() if "id" in element.attributes]
    assert len(ids) == len({*ids})
    for element in page.walk():
        named = element.attributes.get("aria-labelledby", "").split()
        fill = re.findall(r"url\(#(.*)\)", element.attributes.get("fill", ""))
        link = [element.attributes["href"][1:]] if "href" in element.attributes else []
        assert {*named, *fill, *link} <= {*ids}


@for_each(CLUSTERS)
def test_headings_are_in_order_and_tables_say_what_they_hold(cluster: str) -> None:
    page = page_of(cluster)

    levels = [int(heading.name[1]) for heading in page.all(*HEADINGS)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"
    for table in page.all("table"):
        assert table.all("caption")[0].text
        assert all(head.attributes["scope"] in ("col", "row") for head in table.all("th"))
        widths = {len(row.all("th", "td")) for row in table.all("tr")}
        assert len(widths) == 1
    drawings = [element for element in page.all("svg") if "role" in element.attributes]
    assert drawings
    for drawing in drawings:
        assert drawing.attributes["role"] == "img"
        assert drawing.all("title")[0].text
        assert drawing.all("desc")[0].text


def test_equal_input_gives_equal_bytes() -> None:
    file = ROOT / "clusters" / "mixed-capacity.yaml"

    first, second = (render(plan_needs(plan.load(file), AT)) for _ in range(2))

    assert first == second


def test_what_a_user_wrote_is_text_and_never_markup() -> None:
    evil = '<script>alert(1)</script>" onload="x'
    found = needs(pool_document())
    quota = replace(
        found.quotas[0],
        state="agreed",
        agreed=AgreedLimit(code="L-1", value=7, reference=f"{evil}\x00\ud800"),
    )
    decision = replace(found.decisions[0], choice=evil)
    part = replace(found.topology.pools[0], reservation=evil, pool=evil)
    found = replace(
        found,
        name=evil,
        quotas=(quota, *found.quotas[1:]),
        decisions=(decision,),
        topology=replace(found.topology, pools=(part, *found.topology.pools[1:])),
    )

    text = render(found, file=evil)
    page = read_page(text)

    assert not page.all("script")
    assert all("onload" not in element.attributes for element in page.walk())
    assert page.all("h1")[0].text.startswith(evil)
    assert "\x00" not in text
    text.encode()


def test_a_minimal_cluster_has_a_page_without_windows() -> None:
    page = read_page(render(needs()))

    told = page.text
    assert "The file has no window" in told
    assert [heading.text for heading in page.all("h2")] == [
        "Answer",
        "Topology",
        "Calendar and cost",
        "Control plane",
        "Quotas",
        "Decisions",
    ]


# --- Drawings -----------------------------------------------------------------------------------

_SIZES = {"h": 15, "n": 13, "t": 12, "s": 11}


@for_each(CLUSTERS)
def test_nothing_is_drawn_beyond_the_edge_or_over_another_text(cluster: str) -> None:
    drawings = (topology_drawing(needs_of(cluster)), calendar_drawing(needs_of(cluster)))
    for drawing in filter(None, drawings):
        texts = [*_texts(drawing)]
        assert len(texts) > 3
        for text in texts:
            left, right, top, bottom, words = text
            assert 0 <= left < right <= drawing.width, words
            assert 0 <= top < bottom <= drawing.height, words
            for other in texts:
                beside = other[1] <= left or other[0] >= right
                apart = other[3] <= top or other[2] >= bottom
                assert other is text or beside or apart, (words, other[4])


def _texts(drawing: Drawing) -> Iterator[tuple[float, float, float, float, str]]:
    """Yield the place of each text, as wide as in DejaVu Sans, with the box that cuts it."""
    for box in drawing.boxes:
        assert box.x >= 0
        assert box.x + box.width <= drawing.width
        assert box.y + box.height <= drawing.height
        for base, style, line in box.lines:
            size, words = _SIZES[style[0]], plain(line)
            width = len(words) * size * (0.7 if "b" in style.split() else 0.62)
            x, y = box.x + box.left, box.y + base
            assert width <= box.width - box.left, words
            assert base + 0.2 * size <= box.height, words
            yield x, x + width, y - 0.75 * size, y + 0.2 * size, words


def test_every_purchase_option_has_a_colour_of_its_own_in_light_and_dark() -> None:
    kinds = ("on-demand", "spot", "capacity-block", "training-plan", "odcr")

    for colours in _themes():
        assert len({colours[kind] for kind in kinds}) == len(kinds)
        assert all(f".fill-{kind}{{" in DRAWING_STYLE for kind in kinds)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_lies_behind_it(theme: int) -> None:
    """WCAG AA asks for 4.5 to 1."""
    colours = [*_themes()][theme]
    pairs = [
        (ink, behind) for ink in ("ink", "muted", "link") for behind in ("page", "panel", "sunk")
    ]
    pairs += [(tone, f"{tone}-bg") for tone in ("good", "warn", "bad")]

    faint = {
        pair: ratio
        for pair in pairs
        if (ratio := _contrast(colours[pair[0]], colours[pair[1]])) < 4.5
    }
    assert faint == {}


def _themes() -> Iterator[Mapping[str, str]]:
    for block in re.findall(r":root\{(.*?)\}", DRAWING_STYLE, re.DOTALL):
        yield dict(re.findall(r"--([a-z-]+):\s*([^;\n}]+)", block))


def _contrast(first: str, second: str) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (red, green, blue)
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
