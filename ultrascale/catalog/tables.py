"""Loader of the catalog's data files: it decodes rows into typed structs.

A module decodes its table at the first use. Instance types are read as text, without a library:
the build of the package needs them, and has no msgspec.
"""

from typing import TypeVar, get_origin

import msgspec

from ultrascale.catalog._sources import FOLDER, read_table


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a table; cells hold tuples as words between spaces, booleans as `yes` or `no`."""

    note: str = ""
    """Reason for the row, or the service fact behind it, for editors of the table."""


T = TypeVar("T")
R = TypeVar("R", bound=Row)


def read_rows(name: str, kind: type[R]) -> tuple[R, ...]:
    """Return the rows of a CSV file, beside this module unless its path is absolute.

    An empty cell means the field's default.

    Raises:
        msgspec.ValidationError: A cell does not fit its field.
    """
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return tuple(
        msgspec.convert(
            {column: _value(cell, types.get(column)) for column, cell in row.items() if cell},
            kind,
            strict=False,
        )
        for row in read_table(name)
    )


def read_document(name: str, kind: type[T]) -> T:
    """Return the content of a JSON file beside this module.

    Raises:
        msgspec.ValidationError: The document does not fit ``kind``.
    """
    return msgspec.json.decode((FOLDER / name).read_bytes(), type=kind)


def _value(cell: str, kind: object) -> str | bool | list[str]:
    if kind is bool and cell in ("yes", "no"):
        return cell == "yes"
    return cell.split() if get_origin(kind) is tuple else cell
