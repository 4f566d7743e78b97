"""Tables of parameters: a CSV file whose rows are jobs of one template.

A column is called as a variable of the environment, or as an option of the program, which begins
with `--`. An empty cell leaves it out of that job.

Source: https://www.rfc-editor.org/rfc/rfc4180
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ultrascale.errors import ConfigError, Diagnostic, Span

MOST_ROWS = 1_000
"""Most jobs of one table: each is an object, and a Workload with Kueue, until it is deleted."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"--[A-Za-z0-9][A-Za-z0-9._-]*")
_DIGEST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The parameters of one job.

    Attributes:
        line: Line of the table on which it begins, from 1.
        cells: Values by column, without empty ones.
    """

    line: int
    cells: Mapping[str, str]

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of the environment."""
        return {name: value for name, value in self.cells.items() if not name.startswith("--")}

    @property
    def args(self) -> tuple[str, ...]:
        """Arguments of the program, each an option with its value in one word."""
        options = (item for item in self.cells.items() if item[0].startswith("--"))
        return tuple(f"{name}={value}" for name, value in options)

    @property
    def digest(self) -> str:
        """Digest of the parameters; the order of columns and rows does not matter."""
        return digest_of(json.dumps(sorted(self.cells.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of parameters without mistakes.

    Attributes:
        source: Its file, as the user named it.
        rows: Its rows, no two of which have the same parameters.
    """

    source: str
    rows: tuple[Row, ...]


def digest_of(text: str) -> str:
    """Return what tells ``text`` from others, as a label may have it."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def read_table(file: Path) -> Table:
    """Read a table of parameters.

    Raises:
        ConfigError: It cannot be read, or has mistakes: one line for each.
    """
    source = str(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([Diagnostic(message=f"cannot be read: {reason}", file=source)]) from None
    except UnicodeDecodeError:
        wrong, fix = "not a text in UTF-8", "save it as CSV in UTF-8"
        raise ConfigError([Diagnostic(message=wrong, file=source, fix=fix)]) from None
    mistakes: list[Diagnostic] = []
    records = [*_records(source, text, mistakes)]
    header, *others = records or [(1, [])]
    mistakes += _of_header(source, *header)
    rows = [*_rows(source, header[1], others, mistakes)]
    if not others and not mistakes:
        fix = "add a line for each job"
        mistakes.append(Diagnostic(message="no rows below the header", file=source, fix=fix))
    if len(others) > MOST_ROWS:
        wrong = f"more than {MOST_ROWS} rows"
        fix = "divide it, or run pods of one job as an array"
        told = _told(source, others[MOST_ROWS][0], wrong, fix, value=str(len(others)))
        mistakes.append(told)
    if mistakes:
        raise ConfigError(mistakes)
    return Table(source=source, rows=tuple(rows))


def _records(source: str, text: str, mistakes: list[Diagnostic]) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each record, the header's among them; blank lines are none."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            wrong = f"not a line of CSV: {error}"
            mistakes.append(_told(source, line, wrong, "quote cells with commas or quotes"))
            return
        if cells:
            yield line, [cell.strip() for cell in cells]


def _of_header(source: str, line: int, names: Sequence[str]) -> Iterator[Diagnostic]:
    if not names:
        fix = "write a header, as --lr,SEED, and a line for each job"
        yield Diagnostic(message="empty", file=source, fix=fix)
        return
    if len(names) == 1 and ";" in names[0]:
        yield _told(source, line, "columns that commas do not part", "save it with commas")
        return
    known = [name for name in names if _OPTION.fullmatch(name) or _VARIABLE.fullmatch(name)]
    if not known:
        wrong = "no header"
        fix = "let the first line name the columns, as --lr,SEED"
        yield _told(source, line, wrong, fix, value=",".join(names))
        return
    for number, name in enumerate(names, start=1):
        if name not in known:
            wrong = "neither a variable nor an option that begins with --"
            fix = "call it as LEARNING_RATE, or as --lr"
            yield _told(source, line, wrong, fix, key=f"column {number}", value=repr(name))
        elif name in names[: number - 1]:
            yield _told(source, line, "a column that is there twice", "keep one", key=name)


def _rows(
    source: str,
    names: Sequence[str],
    records: Sequence[tuple[int, list[str]]],
    mistakes: list[Diagnostic],
) -> Iterator[Row]:
    seen: dict[str, int] = {}
    for line, cells in records:
        if len(cells) != len(names):
            wrong = f"{len(cells)} cells, and the header has {len(names)}"
            fix = "leave cells empty that do not apply, and quote those with commas"
            mistakes.append(_told(source, line, wrong, fix))
            continue
        row = Row(line=line, cells={n: c for n, c in zip(names, cells, strict=True) if c})
        if not row.cells:
            mistakes.append(_told(source, line, "a row without a value", "take it out"))
            continue
        earlier = seen.setdefault(row.digest, line)
        if earlier != line:
            wrong = f"the same parameters as on line {earlier}, whose job would be this one's too"
            fix = "take one out, or add a column that tells them apart, such as SEED"
            mistakes.append(_told(source, line, wrong, fix))
            continue
        yield row


def _told(
    source: str, line: int, message: str, fix: str, *, key: str = "", value: str = ""
) -> Diagnostic:
    span = Span(line=line, column=1)
    return Diagnostic(message=message, file=source, span=span, key=key, value=value, fix=fix)
