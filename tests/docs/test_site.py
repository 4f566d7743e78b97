"""The docs site: every page is in its navigation, every link leads somewhere, nothing is loaded."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tools import docs_site

VERSIONS = re.findall(r"^## \[?([0-9A-Za-z.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    docs_site.write_pages(folder, runs=False)
    return folder


def slug(heading: str) -> str:
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def links(page: Path) -> Iterator[tuple[str, str]]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def test_every_page_is_in_the_navigation_once(pages: Path) -> None:
    written = sorted(page.relative_to(pages).as_posix() for page in pages.rglob("*.md"))
    assert sorted(docs_site.navigation()) == written


def test_every_link_of_the_site_leads_to_a_page_and_its_heading(pages: Path) -> None:
    wrong = [
        (page.relative_to(pages), path, anchor)
        for page in sorted(pages.rglob("*.md"))
        for path, anchor in links(page)
        if not path.endswith("-report.html")
        and (
            not (there := (page.parent / path) if path else page).exists()
            or (anchor and there.suffix == ".md" and anchor not in anchors(there))
        )
    ]

    assert wrong == []


@for_each(VERSIONS)
def test_every_version_says_what_its_user_has_to_do(version: str) -> None:
    page = ROOT / "docs" / "versions" / f"{version.lower()}.md"
    assert page.is_file()
    assert f"versions/{version.lower()}.md" in docs_site.navigation()


def test_the_generator_is_pinned_apart_from_everything_else() -> None:
    wanted = [
        line
        for line in (ROOT / "requirements-docs.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in wanted)
    assert "zensical" not in (ROOT / "requirements.txt").read_text()


@for_each(
    {
        "a link to nothing": ('<a href="b.html">b</a>', "links to b.html, which is not there"),
        "no such heading": ('<a href="#b">b</a>', "links to #b, which has no such heading"),
        "a script": ('<script src="https://a.example/b.js"></script>', "loads https://a.example"),
        "a font": ('<link rel="stylesheet" href="//fonts.example/a">', "loads //fonts.example/a"),
        "a picture": ('<img src="http://a.example/b.png">', "loads http://a.example"),
        "a background": ('<p style="background: url(https://a.example/b)">', "loads background"),
    }
)
def test_what_a_reader_would_miss_or_be_seen_by_is_a_mistake(body: str, mistake: str) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "a.html").write_text(f'<h1 id="a">a</h1><a href="#a">a</a>{body}')
        (found,) = docs_site.mistakes(Path(folder))
    assert found.startswith(f"a.html: {mistake}")


def test_links_to_other_sites_and_between_pages_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("body { background: url(b.png) }")
    (tmp_path / "index.html").write_text(
        '<a href="https://aws.amazon.com/">a</a><a href="b/c.html#d">c</a>'
        '<link rel="canonical" href="https://a.example/">'
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.html").write_text('<h1 id="d">d</h1><a href="..">up</a>')
    assert [*docs_site.mistakes(tmp_path)] == []


def test_a_style_that_loads_a_font_from_elsewhere_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import url('https://fonts.example/a.css');")
    assert [*docs_site.mistakes(tmp_path)] == ["a.css: loads something from elsewhere"]
