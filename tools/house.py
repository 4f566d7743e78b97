"""Measures of the code base beside the wanted ones: `make house`.

It informs and never fails. Each figure is a measure of an idea, not the idea itself.
"""

import argparse
import ast
import re
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
_CODE = ("app.py", "ultrascale", "constructs", "stacks", "k8s", "backend", "training", "lib")
_PROVISIONERS = frozenset(
    {"managed-node-group", "self-managed", "karpenter", "auto-mode", "hyperpod"}
)
# Names of layers that nothing else is called by.
_LAYERS = frozenset(
    {
        "node-addons",
        "addons",
        "access",
        "platform",
        "registry",
        "image-cache",
        "node-pools",
        "system-node-pools",
        "hyperpod-chart",
        "hyperpod-groups",
        "hyperpod-metrics",
    }
)
_MANY_LAYERS = 3
# Stand for what a feature of the same kind would touch.
_LATEST_TYPE = "p6-b300"
_POOL_KEY = "fallback_max"
_ADDON = "aws-fsx-csi-driver"
_QUESTION = re.compile(r'"""(What|How|Which|Whose|Whom|Who|Where|When|Why|Of)\b')


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: today's figure, the wanted one, and the files behind it."""

    subject: str
    today: str
    wanted: str
    files: tuple[str, ...] = ()


@cache
def tracked() -> tuple[PurePosixPath, ...]:
    """Return every file that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    paths = {PurePosixPath(line) for line in listed.stdout.splitlines()}
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


def modules() -> Iterator[PurePosixPath]:
    """Yield each Python file outside tests and tools."""
    return (path for path in tracked() if path.suffix == ".py" and path.parts[0] in _CODE)


@cache
def text(path: PurePosixPath) -> str:
    """Return the content of a tracked file."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@cache
def tree(path: PurePosixPath) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text(path))


def strings(path: PurePosixPath) -> frozenset[str]:
    """Return every string constant of a module."""
    nodes = ast.walk(tree(path))
    return frozenset(
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def names(path: PurePosixPath) -> list[str]:
    """Return each use of a name in a module, as a name or as an attribute; imports left out."""
    found: list[str] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
    return found


def provisioner_groups() -> frozenset[str]:
    """Return the constants that are groups of provisioners."""
    return frozenset(
        target.id
        for path in modules()
        for statement in tree(path).body
        for target in _targets(statement)
        if _is_group(statement)
    )


def _targets(statement: ast.stmt) -> list[ast.Name]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target for target in targets if isinstance(target, ast.Name)]


def _is_group(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    constants = (
        [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)] if value else []
    )
    return len(constants) > 1 and all(constant in _PROVISIONERS for constant in constants)


def size() -> Row:
    """Return how many modules there are, their median and all lines."""
    lines = [text(path).count("\n") for path in modules()]
    median = statistics.median(lines)
    return Row(
        "modules; median lines; lines",
        f"{len(lines)}; {median:.0f}; {sum(lines):,}",
        "about 450, 170, 72,000 as a consequence",
    )


def rooms_of_plan() -> Row:
    """Return what a newcomer scans in `plan/`."""
    plan = PurePosixPath("ultrascale/plan")
    inside = [path.relative_to(plan) for path in modules() if path.is_relative_to(plan)]
    files = [path for path in inside if len(path.parts) == 1]
    folders = {path.parts[0] for path in inside if len(path.parts) > 1}
    today = f"{len(files)} files, {len(folders)} folders"
    return Row("plan/: files and folders to scan", today, "about 12 files, 8 folders")


def files_that(subject: str, wanted: str, matches: Callable[[PurePosixPath], bool]) -> Row:
    """Return the modules for which ``matches`` holds."""
    return _row(subject, wanted, (path for path in modules() if matches(path)))


def files_with(subject: str, wanted: str, word: str, *, without: tuple[str, ...] = ()) -> Row:
    """Return the files outside tests that hold ``word``; those below ``without`` left out."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w])")
    return _row(
        subject,
        wanted,
        (
            path
            for path in tracked()
            if path.parts[0] in (*_CODE, "docs", "pyproject.toml")
            and not any(path.is_relative_to(folder) for folder in without)
            and pattern.search(text(path))
        ),
    )


def _row(subject: str, wanted: str, paths: Iterable[PurePosixPath]) -> Row:
    files = tuple(str(path) for path in paths)
    return Row(subject, str(len(files)), wanted, files)


def uses(subject: str, wanted: str, count: Callable[[PurePosixPath], int]) -> Row:
    """Return the sum of ``count`` over all modules, with those that have any."""
    counts = {path: count(path) for path in modules()}
    files = tuple(f"{path}: {number}" for path, number in counts.items() if number)
    return Row(subject, str(sum(counts.values())), wanted, files)


def casts(path: PurePosixPath) -> int:
    """Return how often a module calls `cast`."""
    calls = (node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    return sum(
        (isinstance(called, ast.Name) and called.id == "cast")
        or (isinstance(called, ast.Attribute) and called.attr == "cast")
        for called in calls
    )


def helpers() -> Row:
    """Return the modules among the tests that are neither tests nor in `tests/support`."""
    support = PurePosixPath("tests/support")
    return _row(
        "helpers among the tests, outside tests/support/",
        "0",
        (
            path
            for path in tracked()
            if path.parts[0] == "tests"
            and path.suffix == ".py"
            and not path.is_relative_to(support)
            and not path.name.startswith(("test_", "conftest", "__init__"))
        ),
    )


def questions() -> Row:
    """Return the docstrings that begin with a question word, tests and tools included."""
    asking = tuple(
        f"{path}: {match.string[match.start() :].splitlines()[0]}"
        for path in tracked()
        if path.suffix == ".py"
        for match in _QUESTION.finditer(text(path))
    )
    subject = "docstrings that begin What, How, Which, Who, Where, Whose, When, Of, Why"
    return Row(subject, str(len(asking)), "0", asking)


def rows() -> list[Row]:
    """Return every measure."""
    groups = provisioner_groups()
    return [
        size(),
        rooms_of_plan(),
        files_that(
            f"files that quote {_MANY_LAYERS} or more names of layers: stacks and their order",
            "1, and the table of builders",
            lambda path: len(strings(path) & _LAYERS) >= _MANY_LAYERS,
        ),
        files_that(
            "files that name a provisioner, or a group of them",
            "at most 30",
            lambda path: bool(strings(path) & _PROVISIONERS or groups & set(names(path))),
        ),
        files_with(
            f"an instance type: files beside the catalog's tables that name {_LATEST_TYPE}",
            "0",
            _LATEST_TYPE,
            without=tuple(str(path) for path in tracked() if path.suffix == ".csv"),
        ),
        files_with(f"a pool key that ends in the NodePool: files with {_POOL_KEY}", "5", _POOL_KEY),
        files_that(
            f"an EKS add-on: files that decide by the name {_ADDON}",
            "2",
            lambda path: _ADDON in strings(path),
        ),
        uses("Any", "at most 60", lambda path: names(path).count("Any")),
        uses("cast(", "at most 80", casts),
        uses("type: ignore", "no more", lambda path: text(path).count("type: ignore")),
        uses(
            "dict[str, object] and Mapping[str, object]",
            "no more",
            lambda path: len(re.findall(r"\b(?:dict|Mapping)\[str, object\]", text(path))),
        ),
        helpers(),
        questions(),
    ]


def main() -> None:
    """Print the table, and with ``--files`` the files behind each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the files behind each figure")
    arguments = parser.parse_args()
    measured = rows()
    width = max(len(row.subject) for row in measured)
    today = max(len(row.today) for row in measured)
    print(f"{'':{width}}  {'today':{today}}  wanted")
    for row in measured:
        print(f"{row.subject:{width}}  {row.today:{today}}  {row.wanted}")
        if arguments.files:
            for file in row.files:
                print(f"    {file}")


if __name__ == "__main__":
    main()
