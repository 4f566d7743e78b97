"""Pages of the library, and the apps beside them, show what works."""

import ast
import inspect
import itertools
import json
import re
import runpy
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from constructs import Construct

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tools import library_reference
from ultrascale_constructs import public

LIBRARY = ROOT / "docs" / "library"
PAGES = sorted(LIBRARY.glob("*.md"))
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/app.py"))
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)

CODED = [page for page in PAGES if page.stem != "examples"]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.fixture
def assembly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that apps of this test write to, without CDK's slow validation.

    Node.js runs already, and reads the environment no more.
    """
    app = partial(cdk.App, outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    monkeypatch.setattr(cdk, "App", app)
    return tmp_path


def resources(assembly: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(assembly.glob("*.template.json")):
        yield from json.loads(path.read_text(encoding="utf-8"))["Resources"].values()


@pytest.mark.parametrize("page", CODED, ids=lambda page: page.stem)
def test_the_example_of_a_page_runs(page: Path, assembly: Path) -> None:
    (code,) = CODE.findall(page.read_text(encoding="utf-8"))
    exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    assert [*resources(assembly)]


@each_page
def test_a_page_has_the_tables_that_the_source_makes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert library_reference.with_tables(text) == text, "run `make docs`"


@for_each([name for name in public.__all__ if name != "ArgumentError"])
def test_each_public_name_has_its_table(name: str) -> None:
    marks = [page for page in PAGES if f"<!-- arguments: {name} -->" in page.read_text()]
    assert len(marks) == 1


def set_attributes(body: list[ast.stmt]) -> set[str]:
    """Return the names without underscore that methods of a class set on ``self``."""
    parts = [part for statement in body for part in ast.walk(statement)]
    targets = [target for part in parts if isinstance(part, ast.Assign) for target in part.targets]
    targets += [part.target for part in parts if isinstance(part, ast.AnnAssign)]
    names = [
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
    ]
    return {name for name in names if not name.startswith("_")}


def described_attributes(body: list[ast.stmt]) -> set[str]:
    """Return the names that a class annotates, each with a docstring below it."""
    return {
        before.target.id
        for before, after in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


CONSTRUCTS = [
    each
    for each in (getattr(public, name) for name in public.__all__)
    if issubclass(each, Construct)
]


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda construct: construct.__name__)
def test_an_editor_shows_the_type_and_meaning_of_each_attribute(construct: type) -> None:
    (definition,) = ast.parse(inspect.getsource(construct)).body
    assert isinstance(definition, ast.ClassDef)
    assert set_attributes(definition.body) == described_attributes(definition.body)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_app_of_somebody_else_is_synthesized(
    folder: Path, assembly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders `stacks` and `k8s` are its own, whatever ours are called."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    before = {*sys.modules}

    runpy.run_path("app.py", run_name="__main__")

    for name in {*sys.modules} - before:
        if name.partition(".")[0] in ("stacks", "k8s"):
            del sys.modules[name]
    assert [*resources(assembly)]


def test_there_are_three_apps_each_with_folders_of_its_own() -> None:
    assert len(EXAMPLES) == 3
    for folder in EXAMPLES:
        names = {path.name for path in folder.iterdir()}
        assert {"app.py", "cdk.json", "requirements.txt", "stacks", "k8s"} <= names
