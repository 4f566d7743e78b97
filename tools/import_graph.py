"""The graph of imports of the product and its tests, read from their syntax trees."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("constructs", "stacks", "k8s", "training", "backend", "torchx")
PACKAGES = ("ultrascale", *SOURCE_ROOTS, "lib")


def module_of(path: Path) -> str:
    """Return the name of the module in a file, whose path begins at the root."""
    parts = path.with_suffix("").parts
    in_root = parts[0] in SOURCE_ROOTS and "tests" not in parts
    return ".".join(parts[in_root:]).removesuffix(".__init__")


def files(root: Path) -> Iterator[Path]:
    """Yield the files of the product, its tools and its tests."""
    return (path for name in (*PACKAGES, "tools", "tests") for path in (root / name).rglob("*.py"))


@cache
def imports(root: Path) -> Mapping[str, frozenset[str]]:
    """Return the names that each module and each test imports."""
    return {
        module_of(path.relative_to(root)): frozenset(_imported(root, path)) for path in files(root)
    }


def _imported(root: Path, path: Path) -> Iterator[str]:
    package = module_of(path.parent.relative_to(root)).split(".")
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            name = ".".join([*above, *filter(None, [node.module])])
            yield from (name, *(f"{name}.{alias.name}" for alias in node.names))


def steps_to(graph: Mapping[str, frozenset[str]], modules: Iterable[str]) -> dict[str, int]:
    """Return the steps of imports from each module that leads to one of ``modules``."""
    edge = {*modules}
    steps = dict.fromkeys(edge, 0)
    while edge:
        edge = {name for name in graph if name not in steps and graph[name] & edge}
        steps |= dict.fromkeys(edge, max(steps.values()) + 1)
    return steps


def is_test(module: str) -> bool:
    """Return whether a module is a file of tests."""
    return re.search(r"\btests\..*\btest_", module) is not None


def words(name: str) -> frozenset[str]:
    """Return the words of a path or a name, which those of one subject share."""
    return frozenset(word.rstrip("s") for word in re.findall("[a-z0-9]+", name))
