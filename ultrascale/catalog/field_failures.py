"""Configurations that failed in the field, with their users' reports.

The corpus in `tests/data/known_bad` has the same numbers.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.tables import Row, read_rows


class FieldFailure(Row, frozen=True, kw_only=True):
    """A failure that users of clusters have reported."""

    number: str
    """Its number."""
    what: str
    """The failure, in words."""
    url: str
    """The public thread or page about it."""


FIELD_FAILURES: Mapping[str, FieldFailure] = MappingProxyType(
    {row.number: row for row in read_rows("field_failures.csv", FieldFailure)}
)
"""The failures that the pool matrix refers to, by number."""
