"""Environments that the Makefile makes: each collects its tests, with and without the extras."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.folders import ROOT, TESTS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = [ROOT / name for name in PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]]
OWN = {"conftest", "lib", "tests", "tools"} | {
    path.name for source in SOURCES for path in source.glob("ultrascale*") if path.is_dir()
}


@cache
def locked(lock: str = "requirements-dev.txt") -> frozenset[str]:
    """Return the distributions that a lock installs, with those of the locks that it names."""
    text = (ROOT / lock).read_text()
    pins = re.findall(r"^([\w.-]+)(?:\[.*\])?==", text, re.MULTILINE)
    others = re.findall(r"^-r (\S+)", text, re.MULTILINE)
    return frozenset(map(canonicalize_name, pins)).union(*map(locked, others))


def of_development() -> frozenset[str]:
    """Return the top-level modules that `make test` installs."""
    providers = packages_distributions()
    return frozenset(
        module
        for module, names in providers.items()
        if {canonicalize_name(name) for name in names} & locked()
    )


def of_extras() -> frozenset[str]:
    """Return the installed top-level modules that `make test` does not install."""
    kept = of_development() | OWN | set(sys.stdlib_module_names) | {"pip", "setuptools"}
    return frozenset(packages_distributions().keys() - kept)


def test_the_lock_of_development_is_complete() -> None:
    """A library that comes without a pin is another one on another day."""
    needed = {
        canonicalize_name(need.name)
        for name in locked()
        for text in requires(name) or ()
        for need in [Requirement(text)]
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }

    assert needed - locked() == set()


# What a file imports as soon as it is imported


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import runs, up to the first `pytest.importorskip`."""
    for statement in body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        if isinstance(statement, ast.Try) and "ImportError" in ast.unparse(statement):
            continue
        # Texts and tables, which are long, are no calls.
        called = getattr(statement, "value", None)
        if isinstance(called, ast.Call) and "importorskip" in ast.unparse(called.func):
            return
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield statement
        for name in ("body", "orelse"):
            yield from statements(getattr(statement, name, ()))


@cache
def imports(file: Path) -> frozenset[str]:
    """Return the dotted names that the import of ``file`` imports in turn."""
    names: set[str] = set()
    for statement in statements(ast.parse(file.read_text(encoding="utf-8")).body):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names.update(f"{statement.module}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id == "pytest_plugins":
                names.update(ast.literal_eval(statement.value))
    return frozenset(names)


@cache
def files_of(name: str) -> tuple[Path, ...]:
    """Return the files of ours that an import of ``name`` runs: its own, and its packages'."""
    package, _, _ = name.rpartition(".")
    path = Path(*name.split("."))
    tails = (path / "__init__.py", path.with_suffix(".py"))
    own = (source / tail for tail in tails for source in SOURCES if (source / tail).is_file())
    return (*(files_of(package) if package else ()), *own)


def unskipped(files: Iterable[Path], kept: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the modules beyond ``kept`` that ``files`` import, each with the files on one way."""
    way: dict[Path, Sequence[str]] = {file: [str(file)] for file in files}
    missing: dict[str, Sequence[str]] = {}
    waiting = [*way]
    while waiting:
        current = waiting.pop()
        for name in imports(current):
            top = name.partition(".")[0]
            if top not in OWN:
                if top not in kept:
                    missing.setdefault(top, way[current])
                continue
            for target in files_of(name):
                if target not in way:
                    way[target] = [*way[current], str(target)]
                    waiting.append(target)
    return missing


def collected() -> Sequence[Path]:
    """Return the files that `make test` imports: its tests, and the conftests beside them."""
    files = {file for folder in TESTS for file in folder.rglob("*.py")}
    conftests = {ROOT / "conftest.py", *(file for file in files if file.name == "conftest.py")}
    left_out = {file.parent for file in conftests if "collect_ignore_glob" in file.read_text()}
    tests = {file for file in files if file.name.startswith("test_")}
    return sorted(conftests | {file for file in tests if file.parent not in left_out})


def test_no_file_of_tests_imports_an_extra_without_its_skip() -> None:
    """A newcomer's `make test` would end with an error, before a test has run."""
    kept = of_development() | set(sys.stdlib_module_names)

    assert unskipped(collected(), kept) == {}


def test_an_import_is_followed_through_modules_of_ours(tmp_path: Path) -> None:
    """The fault that this guards against: a conftest, a writer of ours, and then numpy."""
    conftest = tmp_path / "conftest.py"
    conftest.write_text("from ultrascale_training.titan.tokens import TokenWriter\n")
    kept = of_development() | set(sys.stdlib_module_names)

    assert "numpy" in unskipped([conftest], kept)


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\ntorch = pytest.importorskip('torch')\nimport numpy\n",
        "def fixture():\n    import numpy\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n",
    ],
)
def test_an_import_that_is_skipped_or_late_needs_no_extra(tmp_path: Path, text: str) -> None:
    file = tmp_path / "test_late.py"
    file.write_text(text)

    assert unskipped([file], of_development() | set(sys.stdlib_module_names)) == {}


# Collection in each environment

# As where the extras are not installed: neither an import nor `find_spec` finds them.
WITHOUT = """
import sys
import tomllib
from importlib.machinery import PathFinder

class WithoutExtras(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutExtras
import pytest
sys.exit(pytest.main({options}))
"""
COLLECT = ["--collect-only", "--quiet", "--quiet", "-p", "no:cacheprovider"]


def assert_collects(command: Sequence[str | Path]) -> None:
    # Options of this run are not those of another environment's pytest.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    process = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]


@pytest.mark.setup
def test_the_environment_of_make_test_collects_what_needs_more() -> None:
    """Extras that this environment has are hidden from it; the other files name none."""
    names = re.compile("importorskip|find_spec|optional|" + "|".join(sorted(of_extras())))
    files = [str(file) for file in collected() if names.search(file.read_text())]
    tests = [file for file in files if Path(file).name != "conftest.py"]
    program = WITHOUT.format(extras=sorted(of_extras()), options=[*COLLECT, *tests])

    assert_collects([sys.executable, "-c", program])


@pytest.mark.setup
@pytest.mark.parametrize("name", ["titan", "posttrain", "serving"])
def test_an_environment_of_its_own_collects_its_tests(name: str) -> None:
    python = ROOT / ".make" / name / "bin" / "python"
    if not python.with_name("pytest").is_file():
        pytest.skip(f"no environment of `make {name}` here")
    settings = ["-c", f"tests/{name}/pytest.ini", f"tests/{name}"]

    assert_collects([python, "-m", "pytest", *COLLECT, *settings])
