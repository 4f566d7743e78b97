"""The docs site: `make docs-site`.

It puts the pages of `docs/`, of the repository and of the site alone into one folder, has Zensical
build them, and holds the result against two rules: each link leads to an existing place, and no
page loads anything from elsewhere. It needs no network.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import typer
import yaml
from typer.core import TyperGroup

from ultrascale import cli
from ultrascale.documents import Json, look_up
from ultrascale.errors import printable

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "zensical.toml"
_DOCS = ROOT / "docs"
_ASSETS = ROOT / "tools" / "site"
_EXAMPLES = tuple(sorted((ROOT / "clusters").glob("*.yaml")))
# Pages of the repository that are pages of the site too, with their names there.
_RENAMED = {
    Path("README.md"): Path("index.md"),
    Path("docs/README.md"): Path("pages.md"),
    **{
        Path(name): Path("project", name)
        for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SCOPE.md", "SECURITY.md")
    },
}
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
_SOURCE = re.compile(r"""((?:src|href)=")([^"]+)(")""")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")
_LOADS = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
# A link of these kinds names a page, and loads nothing.
_NAMING = frozenset({"canonical", "next", "prev", "alternate"})
_OUTSIDE_IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")


def pages() -> Iterator[Path]:
    """Yield the pages of the repository that are pages of the site."""
    yield from _RENAMED
    for page in sorted(_DOCS.rglob("*.md")):
        if (path := page.relative_to(ROOT)) not in _RENAMED:
            yield path


def place(page: Path) -> Path:
    """Return the place of a repository's file in the site."""
    if page in _RENAMED:
        return _RENAMED[page]
    return page.relative_to("docs") if page.is_relative_to("docs") else Path("files", page)


def named(navigation: Json) -> Iterator[str]:
    """Yield the pages that a navigation names, in its order."""
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, Mapping):
        for below in navigation.values():
            yield from named(below)
    elif isinstance(navigation, list):
        for below in navigation:
            yield from named(below)


def navigation() -> list[str]:
    """Return the pages that the site's navigation names."""
    return [*named(look_up(tomllib.loads(CONFIGURATION.read_text()), "project", "nav"))]


def write_pages(folder: Path, *, runs: bool = True) -> None:
    """Write all pages of the site.

    Args:
        folder: An empty folder.
        runs: Whether to run the commands whose output the examples show, which takes seconds.
    """
    files: dict[Path, Path] = {}
    for page in pages():
        text = _with_links((ROOT / page).read_text(encoding="utf-8"), page, files)
        _write(folder / place(page), _with_room_for_lists(text))
    for file, there in files.items():
        (folder / there).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / there)
    shutil.copytree(_ASSETS, folder / "assets")
    for name, text in made_pages(folder, runs=runs).items():
        _write(folder / name, text)


def made_pages(folder: Path, *, runs: bool) -> Mapping[str, str]:
    """Return the pages that are made for the site alone; reports are written into ``folder``."""
    made = {"commands.md": "\n".join(_commands())}
    for example in _EXAMPLES:
        report, answer = folder / "examples" / f"{example.stem}-report.html", ""
        if runs:
            report.parent.mkdir(parents=True, exist_ok=True)
            _ultrascale("report", str(example), "-o", str(report))
            answer = _ultrascale("plan", str(example.relative_to(ROOT)))
        made[f"examples/{example.stem}.md"] = "\n".join(_example(example, report.name, answer))
    return made


def _commands() -> Iterator[str]:
    yield "# Every command"
    yield ""
    yield "What `ultrascale COMMAND -h` prints. [Statuses, output and completion](command-line.md)."
    for goal, names in cli.GOALS.items():
        yield f"\n## {goal}"
        for name in names:
            if name in cli.COMMANDS:
                yield f"\n### {name}\n\n```text"
                yield from _help(name)
                yield "```"


def _help(name: str) -> Iterator[str]:
    command = cli.load(name)
    names = ["-h", "--help"]
    context = typer.Context(command, info_name=f"ultrascale {name}", help_option_names=names)
    yield command.get_help(context)
    if not isinstance(command, TyperGroup):
        return
    for word, subcommand in command.commands.items():
        yield ""
        yield subcommand.get_help(typer.Context(subcommand, parent=context, info_name=word))


def _example(file: Path, report: str, answer: str) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    name = yaml.safe_load(text)["name"]
    relative = file.relative_to(ROOT)
    yield f"# {name}"
    yield ""
    yield f"`{relative}` of the repository. What `ultrascale plan {file.name}` answers:"
    yield f"\n```text\n{answer.strip()}\n```\n"
    yield f"Its [report]({report}), as `ultrascale report {file.name} -o report.html` writes it:"
    yield ""
    yield f'<iframe src="{report}" title="Report of {name}" '
    yield 'style="width: 100%; height: 44rem; border: 1px solid #8888"></iframe>'
    yield f"\n## The file\n\n```yaml\n{text.rstrip()}\n```"


def _ultrascale(*words: str) -> str:
    """Return a command's output; the status of `plan` may say that a cluster is too large."""
    command = [sys.executable, "-m", "ultrascale", *words]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode not in {0, 2}:
        sys.exit(f"{' '.join(command)}\n{answer.stderr}")
    return answer.stdout


def _with_links(text: str, page: Path, files: dict[Path, Path]) -> str:
    """Return a page whose links lead to places in the site.

    Args:
        text: The page.
        page: Its place in the repository.
        files: Files of the site by their places; those that the page names are added.
    """

    def turned(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path, mark, anchor = target.partition("#")
        if not path or urlsplit(target).scheme:
            return match[0]
        file = Path(os.path.normpath(page.parent / unquote(path)))
        there = place(file)
        if file.suffix != ".md":
            files[file] = there
        start = place(page).parent
        return f"{before}{os.path.relpath(there, start)}{mark}{anchor}{after}"

    for pattern in (_LINK, _SOURCE):
        text = pattern.sub(turned, text)
    return text


def _with_room_for_lists(text: str) -> str:
    """Return a page with an empty line before each list: GitHub begins one without, others do not.

    Lists within lists stand four blanks to the right, not two.
    """
    lines: list[str] = []
    in_code, in_list = False, False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            is_item = _ITEM.match(line) is not None
            if is_item and not in_list and lines and lines[-1].strip():
                lines.append("")
            in_list = is_item or (in_list and (not line.strip() or line.startswith("  ")))
            if in_list and line.startswith("  "):
                line = " " * (len(line) - len(line.lstrip())) + line
        lines.append(line)
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Page(HTMLParser):
    """Links, loads and anchors of a page of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in _NAMING:
            return
        if (loaded := values.get(_LOADS.get(tag, ""))) is not None:
            self.loads.append(loaded)
        if "style" in values and _OUTSIDE_IN_STYLE.search(values["style"]):
            self.loads.append(values["style"])


def mistakes(site: Path) -> Iterator[str]:
    """Yield each link of the site that leads nowhere, and each load from elsewhere."""
    parsed = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in parsed.items():
        shown = path.relative_to(site)
        yield from (f"{shown}: loads {load}" for load in page.loads if _is_outside(load))
        for link in (*page.links, *page.loads):
            if not (urlsplit(link).scheme or _is_outside(link)):
                yield from (f"{shown}: {wrong}" for wrong in _wrong_link(site, path, link, parsed))
    for path in sorted(site.rglob("*.css")):
        if _OUTSIDE_IN_STYLE.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: loads something from elsewhere"


def _is_outside(link: str) -> bool:
    # A style of an element is among the loads where it names one.
    return (
        urlsplit(link).scheme in {"http", "https"}
        or link.startswith("//")
        or _OUTSIDE_IN_STYLE.search(link) is not None
    )


def _wrong_link(site: Path, page: Path, link: str, parsed: Mapping[Path, "_Page"]) -> Iterator[str]:
    parts = urlsplit(link)
    there = _target(site, page, parts.path)
    if not there.is_file():
        yield f"links to {link}, which is not there"
    elif (
        parts.fragment and there in parsed and unquote(parts.fragment) not in parsed[there].anchors
    ):
        yield f"links to {link}, which has no such heading"


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _target(site: Path, page: Path, link: str) -> Path:
    if not link:
        return page
    start = site if link.startswith("/") else page.parent
    there = Path(os.path.normpath(start / unquote(link).lstrip("/")))
    return there / "index.html" if there.is_dir() else there


def _output(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines))


def main() -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("zensical", type=Path, help="the program zensical")
    arguments = parser.parse_args()
    project = tomllib.loads(CONFIGURATION.read_text())["project"]
    folder, site = ROOT / project["docs_dir"], ROOT / project["site_dir"]
    for path in (folder, site):
        shutil.rmtree(path, ignore_errors=True)
    write_pages(folder)
    command = [str(arguments.zensical), "build", "--strict", "-f", str(CONFIGURATION)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    if wrong := [*mistakes(site)]:
        sys.exit(_output(wrong))
    print(f"{site.relative_to(ROOT)}/index.html: {len([*site.rglob('*.html')])} pages")


if __name__ == "__main__":
    main()
