"""The tests that a diff can touch, by imports: `make test-changed`.

Changed is what differs from BASE, a commit; without it from the one at which the branch left
origin/main, or from HEAD~1. A module leads to the tests whose imports reach it within some steps,
the nearest first; another file to the modules that name it, or else the nearest folder around it.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.import_graph import ROOT, files, imports, is_test, module_of, steps_to, words

_LINES = 20
# About half a minute on two cores.
_MOST_FILES = 40
_STEPS = 2
_NAMESAKES = 6
# Steps of a test that no import leads to.
_NAMED_ALIKE = -1
# They run in environments of their own.
_NO_TESTS = ("tests/wheel/", "tests/titan/", "tests/posttrain/", "tests/serving/")
_PYTEST = (sys.executable, "-m", "pytest", "-q", "--dist=loadfile", "--no-loadscope-reorder")


@dataclass(frozen=True)
class Choice:
    """A file of tests, and the changed file that it reaches in some steps of imports."""

    test: str
    changed: str
    steps: int

    def __str__(self) -> str:
        """Return the line that gives the reason."""
        if self.test == self.changed:
            return f"{self.test}: changed"
        way = {_NAMED_ALIKE: "is named like", 0: "names", 1: "imports"}.get(
            self.steps, f"in {self.steps} steps imports"
        )
        return f"{self.test}: {way} {self.changed}"


def changed_files(root: Path, base: str | None) -> list[str]:
    """Return the paths of changed files, with those that are gone or not committed."""

    def git(*words: str) -> list[str]:
        run = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return run.stdout.split("\n")[:-1]

    (since,) = [base] if base else git("merge-base", "HEAD", "origin/main") or ["HEAD~1"]
    changed = git("diff", "--name-only", since)
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard")})


def choices(root: Path, changed: Iterable[str]) -> list[Choice]:
    """Return the tests to which changed files lead, the nearest first, each once."""
    nearest: dict[str, Choice] = {}
    for choice in sorted(_all_choices(root, changed), key=_distance):
        nearest.setdefault(choice.test, choice)
    return [*nearest.values()]


def _all_choices(root: Path, changed: Iterable[str]) -> Iterator[Choice]:
    for path in changed:
        steps = steps_to(imports(root), _seeds(root, path))
        tests = {name: number for name, number in steps.items() if is_test(name)}
        for name, number in (tests or _namesakes(root, path)).items():
            test = f"{name.replace('.', '/')}.py"
            if not test.startswith(_NO_TESTS):
                yield Choice(test, path, number)


def _seeds(root: Path, path: str) -> list[str]:
    module = module_of(Path(path))
    if Path(path).name == "conftest.py":
        # Pytest imports it for all tests around it.
        around = "".join(f"{name}." for name in Path(path).parent.parts)
        return [name for name in imports(root) if name.startswith(around)]
    return [module] if module in imports(root) else naming(root, path)


def _namesakes(root: Path, path: str) -> Mapping[str, int]:
    """Return tests that share words with a module which is imported by its name alone."""
    tests = [name for name in imports(root) if is_test(name) and words(name) & words(path)]
    tests.sort(key=lambda name: (-len(words(name) & words(path)), name))
    return dict.fromkeys(tests[:_NAMESAKES] if path.endswith(".py") else (), _NAMED_ALIKE)


def within(reached: Sequence[Choice], steps: int) -> list[Choice]:
    """Return the choices within some steps, or as far off as the nearest of their changed file."""
    nearest: dict[str, int] = {}
    for choice in reached:
        nearest[choice.changed] = min(choice.steps, nearest.get(choice.changed, choice.steps))
    return [choice for choice in reached if choice.steps <= max(steps, nearest[choice.changed])]


def _distance(choice: Choice) -> tuple[bool, int, int, str]:
    shared = len(words(choice.changed) & words(choice.test))
    return choice.test != choice.changed, choice.steps, -shared, choice.test


def naming(root: Path, path: str) -> list[str]:
    """Return the modules that name a file, or else the nearest folder around it."""
    file = Path(path)
    # Tests name the examples without a suffix, and a program such as .ci/run by its folder.
    names = [{file.name, file.stem if path.startswith("clusters/") else file.name}]
    names = names if file.suffix or file.name.istitle() else []
    for either in [*names, *({folder.name} for folder in file.parents if folder.name)]:
        if modules := [module for module, known in _paths(root).items() if known & either]:
            return modules
    return []


@cache
def _paths(root: Path) -> Mapping[str, frozenset[str]]:
    """Return the names of files and folders in the texts of each module."""
    return {
        module_of(file.relative_to(root)): frozenset(
            name
            for node in ast.walk(ast.parse(file.read_bytes()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            # Neither sentences nor addresses of the web.
            if re.fullmatch(r"[\w./*-]+", node.value)
            for name in node.value.split("/")
        )
        for file in files(root)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tests with the reason of each, and return the exit status of their run."""
    parser = argparse.ArgumentParser(prog="python -m tools.changed", description=__doc__)
    parser.add_argument("--base", help="commit to compare with")
    parser.add_argument("--steps", type=int, default=_STEPS, help="steps of imports to a test")
    parser.add_argument("--most", type=int, default=_MOST_FILES, help="files of tests to run")
    parser.add_argument("--list", action="store_true", help="run nothing")
    given = parser.parse_args(arguments)
    changed = changed_files(ROOT, given.base)
    reached = [choice for choice in choices(ROOT, changed) if (ROOT / choice.test).exists()]
    chosen = within(reached, given.steps)[: given.most]
    print(f"{len(changed)} files changed, {len(chosen)} of {len(reached)} files of tests run")
    for choice in chosen[:_LINES]:
        print(choice)
    if len(chosen) > _LINES:
        print(f"and {len(chosen) - _LINES} more")
    if left := len(reached) - len(chosen):
        print(f"{left} that reach a change from farther off are left out; `make test` runs all")
    for path in changed:
        if all(choice.changed != path for choice in reached):
            print(f"no test names or imports {path}")
    if not chosen or given.list:
        return 0
    sys.stdout.flush()
    workers = ("-n", "0") if len(chosen) < 3 else ("-n", "auto", "--maxprocesses=4")
    command = [*_PYTEST, *workers, *(choice.test for choice in chosen)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
