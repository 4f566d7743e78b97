"""Mutants that the tests of their modules miss: `python tools/mutants.py RESULTS`.

Each mutant changes one place of one function in a copy of the last commit: a comparison, a
constant, `and` or `or`, plus or minus, a condition negated, a keyword argument dropped, a result
that becomes None. The nearest tests of its module, six files at most, run until one fails: first
those that import it, then those whose imports lead to it, by steps and by words that both paths
have; where there are none, as behind the command line, those that share most words.

Functions are drawn by the seed and their qualified name; by their code too, without comments and
docstring, where several have the name. So a function that moves to another module stays in the
sample, and the others stay when some leave. RESULTS has a line of JSON for each mutant; those that
it has already are not run again.

Outcomes: `killed` by a test that passes without the change; `timeout`, where the tests keep the
limit only without the change, counts as killed; `survived`. Not counted: `slow`, beyond the limit
without the change too, and `broken`, where the test fails without it too. The limit is of CPU time,
so that a busy machine changes no outcome, and of 20 times as much by the clock. Tests that want
torch or PostgreSQL skip themselves where these are not installed.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

from tools.import_graph import (
    PACKAGES,
    ROOT,
    SOURCE_ROOTS,
    imports,
    is_test,
    module_of,
    steps_to,
    words,
)

# They run in environments of their own, or judge no module.
_NO_TESTS = (
    *("tests/wheel", "tests/titan", "tests/posttrain", "tests/serving", "tests/fuzz"),
    "tests/docs",
)
_MOST_TESTS = 6
# Exit status of pytest where every test was skipped or there is none.
_NONE_RAN = 5
_FAILED = r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$"
_OPPOSITES: Mapping[type[ast.AST], Any] = {
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[str, ast.expr | ast.stmt, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place: its bytes from ``start`` to ``end``, and the code instead."""

    id: str
    path: str
    line: int
    start: int
    end: int
    change: str


def sample(root: Path, packages: Iterable[str], count: int, seed: str) -> list[Mutant]:
    """Return ``count`` mutants, each of another function."""
    files = (
        path
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
        if "tests" not in path.relative_to(root).parts
    )
    functions = [
        entry for path in files for entry in _functions(path, ast.parse(path.read_bytes()))
    ]
    uses = Counter(name for name, _, _ in functions)
    by_id: dict[str, tuple[Path, Function]] = {}
    for name, path, function in functions:
        code = _digest(*map(ast.unparse, [function.args, *_statements(function)]))
        by_id[name if uses[name] == 1 else f"{name}:{code}"] = path, function
    mutants: list[Mutant] = []
    for id in sorted(by_id, key=lambda id: _digest(seed, id)):
        path, function = by_id[id]
        if len(mutants) < count and (places := list(_places(function))):
            random = Random(f"{seed} {id}")
            # By kind first: functions have many constants and few comparisons.
            kind = random.choice(sorted({kind for kind, _, _ in places}))
            _, node, change = random.choice([place for place in places if place[0] == kind])
            lines = path.read_bytes().splitlines(keepends=True)
            start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
            end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
            name = str(path.relative_to(root))
            mutants.append(Mutant(id, name, node.lineno, start, end, change))
    return mutants


def _functions(path: Path, node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Path, Function]]:
    """Yield the functions and methods of a module; functions inside of them belong to them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield f"{prefix}{child.name}", path, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(path, child, f"{prefix}{child.name}.")


def _statements(function: Function) -> list[ast.stmt]:
    return function.body[ast.get_docstring(function) is not None :]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def _places(function: Function) -> Iterator[Place]:
    """Yield each place that can change: the kind of change, the node, and the code instead."""
    nodes: list[ast.AST] = [*function.args.defaults, *_statements(function)]
    for node in nodes:
        # Positions inside of f-strings are wrong before Python 3.12.
        if not isinstance(node, ast.JoinedStr | ast.arguments):
            annotation = getattr(node, "annotation", None)
            nodes += (child for child in ast.iter_child_nodes(node) if child is not annotation)
        yield from _changes(node)


def _changes(node: ast.AST) -> Iterator[Place]:  # noqa: C901
    match node:
        case ast.Compare(left=left, ops=[operator, *others], comparators=values):
            opposite = ast.Compare(left, [_OPPOSITES[type(operator)](), *others], values)
            yield "comparison", node, _code(opposite)
        case ast.BoolOp(op=operator, values=values):
            yield "and, or", node, _code(ast.BoolOp(_OPPOSITES[type(operator)](), values))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            yield "plus, minus", node, _code(ast.BinOp(left, _OPPOSITES[type(operator)](), right))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield "condition", test, _code(ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", node, str(value + 1)
        case ast.Constant(value=str() as value) if value:
            yield "constant", node, repr(f"{value}x")
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "result", node, "return None"
        case ast.Call(func=function, args=arguments, keywords=keywords):
            for dropped in (keyword for keyword in keywords if keyword.arg is not None):
                kept = [keyword for keyword in keywords if keyword is not dropped]
                yield "keyword", node, _code(ast.Call(function, arguments, kept))
        case _:
            pass


def _code(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def nearest_tests(root: Path, path: str) -> list[str]:
    """Return the tests of a module: at most six files, the nearest first."""
    graph = imports(root)
    steps = steps_to(graph, [module_of(Path(path))])
    tests = [name for name in graph if is_test(name)]
    shared = {name: len(words(path) & words(name)) for name in tests}
    near = [name for name in tests if name in steps] or [name for name in tests if shared[name]]
    near.sort(
        key=lambda name: (steps.get(name, 9) > 1, steps.get(name, 9) - 2 * shared[name], name)
    )
    files = (f"{name.replace('.', '/')}.py" for name in near)
    return [file for file in files if not file.startswith(_NO_TESTS)][:_MOST_TESTS]


def judge(root: Path, mutant: Mutant, seconds: int) -> Mapping[str, object]:
    """Return the line of RESULTS on a mutant of the copy ``root``, which stays as it was."""
    file = root / mutant.path
    source = file.read_bytes()
    tests = nearest_tests(root, mutant.path)
    begun = time.monotonic()
    try:
        mutated = (source[: mutant.start], mutant.change.encode(), source[mutant.end :])
        file.write_bytes(b"".join(mutated))
        status, failed = _result_of_tests(root, tests, seconds)
    finally:
        file.write_bytes(source)
    outcome = "survived"
    if status is None:
        outcome = "slow" if _result_of_tests(root, tests, seconds)[0] is None else "timeout"
    elif status not in (0, _NONE_RAN):
        outcome = "broken" if _result_of_tests(root, failed or tests, seconds)[0] != 0 else "killed"
    place = " ".join(source[mutant.start : mutant.end].decode().split())
    taken = {"by": failed, "seconds": round(time.monotonic() - begun), "tests": tests}
    return {**asdict(mutant), "place": place, "outcome": outcome, **taken}


def _result_of_tests(
    root: Path, tests: Sequence[str], seconds: int
) -> tuple[int | None, list[str]]:
    """Return the exit status of pytest, None beyond its limit, and the test that failed."""
    if not tests:
        return _NONE_RAN, []
    options = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=no")
    roots = (str(root), *(str(root / name) for name in SOURCE_ROOTS))
    limited = ("sh", "-c", f'ulimit -t {seconds}; exec "$@"', "sh")
    with subprocess.Popen(
        [*limited, sys.executable, "-m", "pytest", *options, *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "PYTHONDONTWRITEBYTECODE": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=20 * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, []
    status = None if process.returncode == -signal.SIGXCPU else process.returncode
    return status, re.findall(_FAILED, output.decode(), re.M)


def _results(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> None:
    """Run the mutants of the sample that RESULTS lacks, then print the score and the survivors."""
    parser = argparse.ArgumentParser(prog="python tools/mutants.py", description=__doc__)
    parser.add_argument("results", type=Path, metavar="RESULTS")
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=int, default=60, help="limit of a run's CPU time")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder, str(number)) for number in range(options.jobs)]
        idle: SimpleQueue[Path] = SimpleQueue()
        for copy in copies:
            subprocess.run(["git", "clone", "-q", "--shared", ROOT, copy], check=True)
            (copy / "node_modules").symlink_to(ROOT / "node_modules")
            idle.put(copy)
        mutants = sample(copies[0], options.packages, options.count, options.seed)
        known = {line["id"] for line in _results(options.results)}

        def run(mutant: Mutant) -> None:
            copy = idle.get()
            line = json.dumps(judge(copy, mutant, options.seconds))
            idle.put(copy)
            with options.results.open("a") as file:
                file.write(f"{line}\n")

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, [mutant for mutant in mutants if mutant.id not in known]))
    ids = {mutant.id for mutant in mutants}
    lines = [line for line in _results(options.results) if line["id"] in ids]
    outcomes = Counter(line["outcome"] for line in lines)
    killed = outcomes["killed"] + outcomes["timeout"]
    print(f"{killed} of {killed + outcomes['survived']} killed; {dict(outcomes)}")
    for line in (line for line in lines if line["outcome"] != "killed"):
        print("{outcome} {path}:{line} {id}: {place} -> {change}".format(**line))


if __name__ == "__main__":
    main()
