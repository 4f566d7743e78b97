"""The pages say what the program does; a key or command that they miss is one nobody finds."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.folders import ROOT
from ultrascale import cli

README = (ROOT / "README.md").read_text()
COMMANDS: dict[str, object] = {name: cli.load(name) for name in cli.COMMANDS}


PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md")))
LINKS = [
    (page, target)
    for page in PAGES
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
]


def test_the_index_lists_every_page() -> None:
    folder = ROOT / "docs"
    listed = {target for page, target in LINKS if page == folder / "README.md"}
    pages = {page.relative_to(folder).as_posix() for page in folder.glob("**/*.md")}
    assert pages - {"README.md"} <= listed


@for_each({f"{page.name}: {target}": (page, target) for page, target in LINKS})
def test_a_link_leads_to_a_page(page: Path, target: str) -> None:
    assert (page.parent / target).exists()


# In a page, or in what a message says; Python parts a long one into several strings.
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
CALL = re.compile(r"(?:^|[\s/`(])ultrascale((?:[ ]+[^\s`|;&#)]+)+)")
SOURCES = sorted((ROOT / "ultrascale").glob("**/*.py"))


def calls(path: Path) -> set[tuple[str, ...]]:
    """Return the words of each `ultrascale` command that a page or a module names."""
    text = path.read_text()
    if path.suffix == ".py":
        text = re.sub(r'"\s*\n\s*f?"', "", text)
    return {tuple(call[1].split()) for code in CODE.findall(text) for call in CALL.finditer(code)}


def options(command: object) -> set[str]:
    """Return the options of a command, and of those below it."""
    own: list[object] = list(getattr(command, "params", ()))
    below: dict[str, object] = getattr(command, "commands", {})
    # The second ones switch off, as `--detach` does `--wait`.
    names = {
        name
        for each in own
        for key in ("opts", "secondary_opts")
        for name in getattr(each, key, ())
    }
    return names.union(*(options(each) for each in below.values()))


@pytest.mark.parametrize("paths", [PAGES, SOURCES], ids=["pages", "messages"])
def test_every_command_that_is_named_exists_with_its_options(paths: Sequence[Path]) -> None:
    named = {(path.name, *call) for path in paths for call in calls(path)}

    assert len(named) > 50
    for path, name, *words in named:
        if name in {"--help", "--version", "--install-completion", "--show-completion"}:
            continue
        assert name in COMMANDS, (path, name)
        if name == "cdk":
            # Its arguments are those of the CDK's command line.
            continue
        ours = itertools.takewhile(lambda word: word != "--", words)
        wanted = {word.split("=")[0].rstrip(".,:") for word in ours if word.startswith("--")}
        assert wanted <= options(COMMANDS[name]) | {"--help"}, (path, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_of_a_page_has_no_word_too_many(page: Path) -> None:
    for name, *words in calls(page):
        command: Any = COMMANDS.get(name)
        if name == "cdk" or command is None or hasattr(command, "commands"):
            continue
        plain = " ".join(words).partition(" >")[0].replace("\\", "").replace("[", "")
        context = command.context_class(command, info_name=name, resilient_parsing=True)
        _, left, _ = command.make_parser(context).parse_args(plain.replace("]", "").split())
        assert left == [], (name, *words)


@for_each(sorted(set(re.findall(r"\bmake ([a-z-]+)", README))))
def test_every_make_target_that_the_readme_names_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_variable_that_a_user_may_set_is_on_the_page_of_the_command_line() -> None:
    folders = [path for path in SOURCES if "plan" not in path.parts]
    read = {
        name
        for path in folders
        for name in re.findall(r"\"(ULTRASCALE_[A-Z]+)\"", path.read_text())
    }

    page = (ROOT / "docs" / "command-line.md").read_text()
    assert {"ULTRASCALE_NODE", "ULTRASCALE_PRICES"} <= read
    assert [name for name in read if name not in page] == []
