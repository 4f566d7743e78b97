"""Prices as CSV, as `--prices` reads them."""

import csv
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ultrascale.catalog.price_list import COLUMNS, Price
from ultrascale.errors import UsageError


def as_csv(prices: Iterable[Price]) -> str:
    """Return prices as CSV with a header, a line each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for price in prices:
        writer.writerow(_cell(getattr(price, name)) for name in COLUMNS)
    return text.getvalue()


def write_csv(file: Path, text: str) -> None:
    """Write ``text`` to ``file`` at once: a reader sees the old file or all of the new one.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError([f"-o: {file} cannot be written: {error.strerror or error}"]) from None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0").rstrip(".")
    return str(value)
