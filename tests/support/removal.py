"""Removes rules of `check` and of the guard one at a time, and shows whether the tests miss them.

`python -m tests.support.removal` takes twenty rules and ten functions of the guard; a rule that no
test misses is tried by the fuzzer for `--fuzz` seconds. `--seed` chooses others, `--only` one.
"""

import argparse
import ast
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from inspect import getsource
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any, cast

from tests.support.folders import ROOT

VARIABLE = "ULTRASCALE_REMOVED"
"""Environment variable that names what pytest and the fuzzer remove, as ``module:name``."""

_TABLE = "ultrascale.guard.in_use:_JUDGES"
_OF_RULES = ("tests/config", "tests/plan", "tests/cli/test_plan.py", "tests/jobs")
_OF_GUARD = ("tests/guard", "tests/cli/test_diff.py")
_FOUND = {0: "NOT FOUND", 1: "found"}


def rules() -> list[str]:
    """Return the rules: those of the cluster file, of the plan, and of jobs."""
    return [f"{each.__module__}:{each.__name__}" for each in _registered()]


def guards() -> list[str]:
    """Return the functions of the guard that say something, or nothing, of a change."""
    found: list[str] = []
    for file in sorted((ROOT / "ultrascale" / "guard").glob("*.py")):
        module = f"ultrascale.guard.{file.stem}"
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and _nothing(node) is not None:
                found.append(f"{module}:{node.name}")
    return [*found, *(f"{_TABLE}/{kind}" for kind in sorted(_table()))]


def remove(name: str) -> None:
    """Take the function ``name`` out of this process."""
    place, _, kind = name.partition("/")
    if kind:
        del _table()[kind]
        return
    module, _, attribute = place.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    for registry in _registries():
        registry[:] = [each for each in registry if each.function is not function]
    if module.startswith("ultrascale.guard"):
        (node,) = ast.parse(getsource(function)).body
        nothing = _nothing(cast("ast.FunctionDef", node))
        assert nothing is not None, f"{name} says always something"
        # Tables and other modules hold the function itself.
        function.__code__ = nothing.__code__


def _table() -> dict[str, Any]:
    """Return the functions that judge what is in use, by the type of resource."""
    module, _, attribute = _TABLE.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _registries() -> Iterator[list[Any]]:
    for place, attribute in (
        ("ultrascale.config._rules", "rule"),
        ("ultrascale.plan.rules", "rule"),
        ("ultrascale.plan.jobs.rules", "rule"),
    ):
        importlib.import_module("ultrascale.plan.jobs.judgement")
        importlib.import_module("ultrascale.parts")
        holder: Any = getattr(importlib.import_module(place), attribute)
        yield holder._rules


def _registered() -> Iterator[Callable[..., object]]:
    for registry in _registries():
        yield from (each.function for each in registry)


def _none(*arguments: object, **named: object) -> None:
    return None


def _no_changes(*arguments: object, **named: object) -> Iterator[object]:
    return iter(())


def _nothing(node: ast.FunctionDef) -> FunctionType | None:
    """Return what says, in place of a function, that there is nothing to tell."""
    told = ast.unparse(node.returns) if node.returns is not None else ""
    if told.startswith("Iterator[") and any(kind in told for kind in ("Change", "RolledPool")):
        return cast("FunctionType", _no_changes)
    if "| None" in told and any(kind in told for kind in ("str", "Change", "Harm")):
        return cast("FunctionType", _none)
    return None


def _tested(name: str, places: Sequence[str]) -> tuple[int, str]:
    """Return the exit status of the tests without ``name``, and the first that fails."""
    words = ["-m", "pytest", "-q", "-x", "-n", "0", "-p", "tests.support.removal", *places]
    run = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, VARIABLE: name, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line for line in run.stdout.split("\n") if line.startswith(("FAILED", "ERROR"))]
    return run.returncode, failed[0][:150] if failed else run.stdout[-300:]


def _fuzzed(name: str, seconds: float) -> tuple[int, str]:
    words = ["-m", "tests.support.fuzz", "--seconds", str(seconds), "--no-keep", "--seed", "1"]
    run = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, VARIABLE: name},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout.strip().split("\n")[-2][:150]


def main() -> int:
    """Remove one after another, print what misses it, and return 1 where something misses none."""
    options = argparse.ArgumentParser(prog="python -m tests.support.removal", description=__doc__)
    options.add_argument("--rules", type=int, default=20)
    options.add_argument("--guards", type=int, default=10)
    options.add_argument("--seed", default="1")
    options.add_argument("--fuzz", type=float, default=120, metavar="SECONDS")
    options.add_argument("--only", metavar="MODULE:FUNCTION")
    given = options.parse_args()
    random = Random(given.seed)
    chosen = [(name, _OF_RULES) for name in random.sample(rules(), given.rules)]
    chosen += [(name, _OF_GUARD) for name in random.sample(guards(), given.guards)]
    if given.only:
        chosen = [(given.only, _OF_GUARD if ".guard." in given.only else _OF_RULES)]
    missed = 0
    for name, places in chosen:
        begun = time.monotonic()
        status, by = _tested(name, [each for each in places if Path(ROOT, each).exists()])
        if status == 0 and given.fuzz and places is _OF_RULES:
            status, by = _fuzzed(name, given.fuzz)
        missed += status == 0
        said = _FOUND.get(status, f"exit {status}")
        print(f"{name}: {said} ({time.monotonic() - begun:.0f} s): {by}", flush=True)
    print(f"{len(chosen)} removed one at a time, {missed} not found")
    return 1 if missed else 0


if removed := os.environ.get(VARIABLE):
    remove(removed)

if __name__ == "__main__":
    sys.exit(main())
