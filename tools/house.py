"""Measures of the code base beside the wanted ones: `make house`, and `make house-check`.

A measure marked * has a ceiling in `tools/house.toml`, which `--check` holds. Each figure is a
measure of an idea, not the idea itself. `python tools/walks.py` counts the stays of a job, a
service and a pool, `make bench` the speed.

Outside tests is all Python but that of folders named `tests`, of `tools/`, `examples/` and of
`conftest.py`. Data in tests is every file of such a folder that is no Python. Data outside tests is
CSV, JSON, JSON lines, YAML and plain text outside of them and of `docs/`, written or generated:
tables, upstream's manifests, schemas, charts, cluster and job files. Locks are not
(`requirements*.txt`, `constraints.txt`, `package-lock.json`).

A module has one importer when one other module outside tests imports it; packages do not count. A
package is `ultrascale/X`, `ultrascale/parts/X` or a source root. It names a subject when one of its
identifiers or imports has the name in it; comments and strings do not count. Complexity is
McCabe's, with one more for each `and`, `or`, conditional expression and loop or condition of a
comprehension. A function takes a whole cluster when `ClusterPlan` stands in the annotation of a
parameter. Lines of a function begin at its `def`.
"""

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import grimp

ROOT = Path(__file__).parent.parent
CEILINGS = Path(__file__).with_suffix(".toml")
_TESTS = frozenset({"tests", "conftest.py"})
_NO_PRODUCT = _TESTS | {"tools", "examples"}
_DATA = frozenset({".csv", ".json", ".jsonl", ".yaml", ".yml", ".txt"})
_LOCK = re.compile(r"(^|/)([\w-]*requirements[\w-]*\.txt|constraints\.txt|package-lock\.json)$")
# When these measures began. Data outside tests may grow, by code that becomes data.
_DATA_LINES = 13_925
# The most packages that may name each.
_SUBJECTS = {"hyperpod": 6, "kueue": 4, "mirror": 4, "volcano": 4, "jobset": 3, "keda": 3}
_IMPORTED = (
    "ultrascale",
    "ultrascale_backend",
    "ultrascale_constructs",
    "ultrascale_k8s",
    "ultrascale_stacks",
    "ultrascale_torchx",
    "ultrascale_training",
)
_QUESTION = re.compile(r'"""(What|How|Which|Whose|Whom|Who|Where|When|Why|Of)\b')

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of today, the wanted one, and the files behind it."""

    subject: str  # Noun of the figure
    today: int  # The figure
    wanted: int | None  # The most that is wanted; None where no more than today is
    key: str = ""  # Name of its ceiling in `tools/house.toml`; empty without one
    files: tuple[str, ...] = ()  # Files behind the figure, each with the counted names


@cache
def tracked() -> tuple[PurePosixPath, ...]:
    """Return every file that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    paths = {PurePosixPath(line) for line in listed.stdout.splitlines()}
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


@cache
def modules() -> tuple[PurePosixPath, ...]:
    """Return each Python file outside tests, tools and examples."""
    python = (path for path in tracked() if path.suffix == ".py")
    return tuple(path for path in python if _NO_PRODUCT.isdisjoint(path.parts))


def text(path: PurePosixPath) -> str:
    """Return the content of a tracked file."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@cache
def lines(path: PurePosixPath) -> int:
    """Return the number of lines of a tracked file."""
    return text(path).count("\n")


@cache
def tree(path: PurePosixPath) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text(path))


@cache
def functions() -> tuple[tuple[str, Function], ...]:
    """Return each function of the product, with its file and name."""
    return tuple(
        (f"{path}: {node.name}", node)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, Function)
    )


def sizes() -> Iterator[Measure]:
    """Yield the lines of code, tests and data."""
    tests = [path for path in tracked() if not _TESTS.isdisjoint(path.parts)]
    python = [path for path in tests if path.suffix == ".py"]
    data = [path for path in tests if path.suffix != ".py"]
    own = [path for path in tracked() if _is_data(path)]
    yield _lines("lines of Python outside tests", modules(), 120_000, "python")
    yield _lines("lines of Python in tests", python, 75_000, "tests")
    yield _lines("lines of data in tests", data, 10_000, "test_data")
    yield _lines("lines of data outside tests", own, _DATA_LINES + 15_000, "data")


def _is_data(path: PurePosixPath) -> bool:
    outside = path.parts[0] != "docs" and _TESTS.isdisjoint(path.parts) and path.suffix in _DATA
    return outside and not _LOCK.search(str(path))


def _lines(subject: str, paths: Iterable[PurePosixPath], wanted: int, key: str) -> Measure:
    counts = sorted(((lines(path), str(path)) for path in paths), reverse=True)
    files = tuple(f"{path}: {count}" for count, path in counts)
    return Measure(subject, sum(count for count, _ in counts), wanted, key, files)


def rooms() -> Iterator[Measure]:
    """Yield the number of modules, of those with one importer, and of small ones."""
    graph = grimp.build_graph(*_IMPORTED, cache_dir=None)
    leaves = sorted(module for module in graph.modules if not graph.find_children(module))
    importers = {module: graph.find_modules_that_directly_import(module) for module in leaves}
    once = [f"{module}: {min(by)}" for module, by in importers.items() if len(by) == 1]
    small = [f"{path}: {lines(path)}" for path in modules() if lines(path) < 60]
    yield _measure("modules outside tests", [str(path) for path in modules()], 650)
    yield _measure("modules with one importer", once, 180)
    yield _measure("modules below 60 lines", small, 90)


def _measure(subject: str, files: Sequence[str], wanted: int | None, key: str = "") -> Measure:
    return Measure(subject, len(files), wanted, key, tuple(files))


def subjects() -> Iterator[Measure]:
    """Yield how many packages name each of the subjects that a cluster may have."""
    names = {path: " ".join(_identifiers(tree(path))).lower() for path in modules()}
    for subject, wanted in _SUBJECTS.items():
        packages = {_package(path) for path in modules() if subject in names[path]}
        yield _measure(f"packages that name {subject}", sorted(packages), wanted, subject)


def _package(path: PurePosixPath) -> str:
    if path.parts[0] != "ultrascale":
        return path.parts[0]
    depth = 3 if path.parts[1] == "parts" else 2
    return str(PurePosixPath(*path.parts[:depth]).with_suffix(""))


def _identifiers(module: ast.Module) -> Iterator[str]:
    """Yield each name that a module binds, reads or imports, without underscores."""
    for node in ast.walk(module):
        words: tuple[str | None, ...] = ()
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
                words = (word,)
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
                words = (word,)
            case ast.ClassDef(name=word) | ast.keyword(arg=word) | ast.ImportFrom(module=word):
                words = (word,)
            case ast.alias(name=word, asname=other):
                words = (word, other)
            case ast.MatchAs(name=word) | ast.MatchStar(name=word):
                words = (word,)
            case _:
                continue
        yield from (word.replace("_", "") for word in words if word)


def plan_of_clusters() -> Iterator[Measure]:
    """Yield the fields of `ClusterPlan`, and the functions that take a whole one."""
    classes = {
        node.name: (path, node)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    }
    _, plan = classes["ClusterPlan"]
    bases = [base.id for base in plan.bases if isinstance(base, ast.Name)]
    fields = [
        f"{path}: {statement.target.id}"
        for path, node in (classes[name] for name in ("ClusterPlan", *bases))
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    whole = [name for name, node in functions() if _takes(node, "ClusterPlan")]
    yield _measure("fields of ClusterPlan", fields, 22)
    yield _measure("functions that take a whole ClusterPlan", whole, 90)


def _takes(function: Function, type_name: str) -> bool:
    parameters = function.args
    arguments = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
    annotations = [ast.unparse(a.annotation) for a in arguments if a.annotation]
    return any(re.search(rf"\b{type_name}\b", annotation) for annotation in annotations)


def long_functions() -> Iterator[Measure]:
    """Yield the longest function and the most complex one, and how many are above the bounds."""
    length = {node: (node.end_lineno or node.lineno) - node.lineno + 1 for _, node in functions()}
    paths = {node: complexity(node) for _, node in functions()}
    for noun, figures, most, bound, many in (
        ("lines of the longest function", length, 80, 60, ("functions above 60 lines", 15)),
        ("complexity of the most complex one", paths, 18, 20, ("functions above CC 20", 0)),
    ):
        above = [f"{name}: {figures[node]}" for name, node in functions() if figures[node] > bound]
        yield Measure(noun, max(figures.values()), most)
        yield _measure(many[0], above, many[1])


def complexity(function: Function) -> int:
    """Return the number of ways through ``function``, as the module says."""
    ways = 1
    for node in ast.walk(function):
        match node:
            case ast.BoolOp(values=values):
                ways += len(values) - 1
            case ast.comprehension(ifs=conditions):
                ways += 1 + len(conditions)
            case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
                pass  # It catches every other case, like `else`.
            case (
                ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.IfExp()
                | ast.ExceptHandler() | ast.match_case()
            ):  # fmt: skip
                ways += 1
            case _:
                pass
    return ways


def habits() -> Iterator[Measure]:
    """Yield the number of missing types, and of docstrings that begin with a question word."""
    for name, wanted in (("Any", 60), ("cast", 80)):
        yield _measure(name, [str(path) for path in modules() for _ in _uses(path, name)], wanted)
    ignored = [str(path) for path in modules() for _ in text(path).split("type: ignore")[1:]]
    yield _measure("type: ignore", ignored, None)
    yield questions()


def _uses(path: PurePosixPath, name: str) -> Iterator[ast.AST]:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) if word == name:
                yield node
            case _:
                pass


def questions() -> Measure:
    """Return the docstrings that begin with a question word, tests and tools included."""
    asking = [
        f"{path}: {match.string[match.start() :].splitlines()[0]}"
        for path in tracked()
        if path.suffix == ".py"
        for match in _QUESTION.finditer(text(path))
    ]
    return _measure("docstrings that begin with a question word", asking, 0)


def measures() -> list[Measure]:
    """Return every measure, in the order in which they are printed."""
    kinds = (sizes, rooms, subjects, plan_of_clusters, long_functions, habits)
    return [measure for kind in kinds for measure in kind()]


def exceeded(measured: Iterable[Measure], ceilings: Mapping[str, int]) -> list[str]:
    """Return a sentence on each measure above its ceiling, and on each without one.

    Args:
        measured: Every measure.
        ceilings: The most that each measure with a key may be.
    """
    sentences: list[str] = []
    for measure in (measure for measure in measured if measure.key):
        ceiling = ceilings.get(measure.key)
        if ceiling is None:
            sentences.append(f"{measure.subject}: no ceiling {measure.key} in tools/house.toml")
        elif measure.today > ceiling:
            sentences.append(
                f"{measure.subject}: {measure.today:,}, and the ceiling {measure.key} in "
                f"tools/house.toml is {ceiling:,}; remove what the change replaces, or raise it "
                "by a commit of its own that names the capability and the lines"
            )
    return sentences


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, or with ``--check`` what is above its ceiling.

    Args:
        words: The command line; None for that of the process.

    Returns:
        The exit status: 1 where a ceiling is exceeded.
    """
    parser = argparse.ArgumentParser(prog="python tools/house.py", description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the files behind each figure")
    parser.add_argument("--check", action="store_true", help="hold the ceilings of house.toml")
    options = parser.parse_args(words)
    measured = measures()
    if options.check:
        sentences = exceeded(measured, tomllib.loads(CEILINGS.read_text(encoding="utf-8")))
        print("\n".join(sentences) or "house: no ceiling is exceeded")
        return 1 if sentences else 0
    width = max(len(measure.subject) for measure in measured) + 2
    print(f"{'':{width}}{'today':>9}{'wanted':>9}")
    for measure in measured:
        subject = f"{measure.subject} *" if measure.key else measure.subject
        wanted = "no more" if measure.wanted is None else f"{measure.wanted:,}"
        print(f"{subject:{width}}{measure.today:9,}{wanted:>9}")
        if options.files:
            print("".join(f"    {file}\n" for file in measure.files), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
