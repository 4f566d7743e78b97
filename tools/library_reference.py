"""Tables of arguments in the pages of the library, from its source: `make docs`.

A table stands between ``<!-- arguments: NAME -->`` and ``<!-- end -->``, where the name is one of
`ultrascale_constructs.public`.
"""

import ast
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
FOLDER = _ROOT / "docs" / "library"
_SOURCE = _ROOT / "constructs" / "ultrascale_constructs" / "public"
_TABLE = re.compile(r"(<!-- arguments: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ENTRY = re.compile(r"    (\w+): (.*)")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a construct, or a field of a value."""

    name: str  # Its name
    kind: str  # Its type, as the source writes it
    default: str  # Its default, as the source writes it; empty where it is required
    meaning: str  # What it does

    def row(self) -> str:
        """Return the row of the table."""
        kind = self.kind.replace("|", "\\|")
        default = f"`{self.default}`" if self.default else "required"
        return f"| `{self.name}` | `{kind}` | {default} | {self.meaning} |"


def with_tables(page: str) -> str:
    """Return the text of a page with its tables made anew."""
    return _TABLE.sub(lambda match: f"{match[1]}{_table(match[2])}{match[3]}", page)


def arguments(name: str) -> Iterator[Argument]:
    """Yield the arguments of a public name, in the order of its source.

    Raises:
        KeyError: The library has no such class.
    """
    source, definition = _classes()[name]
    makers = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
    maker = next((maker for maker in makers if maker.name == "__init__"), None)
    if maker is None:
        for field in definition.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                meanings = {field.target.id: _comment(source, field)}
                yield _argument(field.target.id, field.annotation, field.value, meanings)
        return
    meanings = _section(maker, "Args")
    for argument, default in zip(maker.args.kwonlyargs, maker.args.kw_defaults, strict=True):
        assert argument.annotation is not None, "the linter asks for types"
        yield _argument(argument.arg, argument.annotation, default, meanings)


def _argument(
    name: str, kind: ast.expr, default: ast.expr | None, meanings: Mapping[str, str]
) -> Argument:
    value = "" if default is None else ast.unparse(default)
    return Argument(name, ast.unparse(kind), value, meanings[name])


def _table(name: str) -> str:
    lines = ["| argument | type | default | meaning |", "|---|---|---|---|"]
    lines += [argument.row() for argument in arguments(name)]
    return "\n".join(lines) + "\n"


def _classes() -> Mapping[str, tuple[Sequence[str], ast.ClassDef]]:
    texts = [path.read_text(encoding="utf-8") for path in _SOURCE.glob("*.py")]
    parts = ((text.splitlines(), part) for text in texts for part in ast.parse(text).body)
    return {part.name: (lines, part) for lines, part in parts if isinstance(part, ast.ClassDef)}


def _comment(lines: Sequence[str], field: ast.AnnAssign) -> str:
    """Return the comment of a field, behind it or in the lines above it, as a sentence."""
    assert field.end_lineno is not None
    _, _, beside = lines[field.end_lineno - 1].partition("  # ")
    above = itertools.takewhile(
        lambda line: line.strip().startswith("# "), reversed(lines[: field.lineno - 1])
    )
    text = beside or " ".join(line.strip().removeprefix("# ") for line in reversed([*above]))
    sentence = text if text.endswith(".") else f"{text}."
    return sentence.replace("``", "`")


def _section(documented: ast.ClassDef | ast.FunctionDef, title: str) -> Mapping[str, str]:
    """Return the entries of a section of a docstring, each on one line."""
    text = inspect.cleandoc(ast.get_docstring(documented) or "")
    _, _, rest = text.partition(f"\n{title}:\n")
    entries: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break
        if (entry := _ENTRY.fullmatch(line)) is not None:
            name = entry[1]
            entries[name] = entry[2]
        elif name and line:
            entries[name] += f" {line.strip()}"
    # Docstrings mark code as reStructuredText does.
    return {key: value.replace("``", "`") for key, value in entries.items()}


def main() -> None:
    """Write the tables anew."""
    for page in sorted(FOLDER.glob("*.md")):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
