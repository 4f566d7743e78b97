"""AWS's bill, CUR 2.0 as CSV: lines of accelerators, and mistakes of its files."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import chain, islice
from pathlib import Path
from sys import intern
from typing import NamedTuple

from ultrascale.catalog.tables import read_table
from ultrascale.documents import parse_json
from ultrascale.errors import ConfigError, Diagnostic, Span
from ultrascale.lambdas.ledger import day_of

_USD = "USD"
_HOUR = 3600
_MOST_MISTAKES = 20
_RESERVATION = re.compile(r"cr-[0-9a-f]+")
_SECRET = re.compile(r"[0-9a-f]{8,}|\d{12}")
ARN = "capacity_reservation_capacity_reservation_arn"
"""Column of a reservation's ARN."""
_PARENT = "split_line_item_parent_resource_id"
_CLUSTER_TAG = "aws_eks_cluster_name"
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@cache
def terms(table: str, column: str = "use") -> Mapping[str, str]:
    """Return a column of `bill.csv` by AWS's name of usage types, items or columns.

    ``use`` is the use of a usage type, the column with the cost of an item, or the property of the
    export that adds a column; ``net`` is the column with the net cost of an item.
    """
    return {row["name"]: row[column] for row in read_table("bill.csv") if row["table"] == table}


class Charge(NamedTuple):
    """A line of the bill."""

    use: str  # Use of its usage type, as in `bill.csv`
    resource: str  # Instance, reservation, or SageMaker's type; empty for fees
    reservation: str  # Id of its reservation; empty without
    type: str  # Instance type
    start: int  # Its start, in seconds since the epoch
    hours: Decimal  # Amount of usage
    usd: Decimal  # Its cost
    item: str  # Line item type
    in_block: bool  # Whether a block has paid for it
    shape: str  # Its words without ids and amounts, to be shown to others

    @property
    def name(self) -> str:
        """Its resource or reservation; else its type and day."""
        return self.resource or self.reservation or f"{self.type} on {day_of(self.start)}"


class Bill:
    """The lines of several files, once each.

    Args:
        cluster: Name of the cluster; lines whose tags name another one are left out.
        accelerated: Instance types of the ledger; lines of all others are outside of it.
        net: Whether to take the costs after discounts.
    """

    def __init__(self, cluster: str, accelerated: Collection[str], *, net: bool) -> None:
        self.charges: list[Charge] = []  # Lines of accelerators
        self.months: set[str] = set()  # Months that have a line
        self.outside = Decimal()  # Cost of all other lines of the cluster
        self.repeated = 0  # Lines that were given twice
        self._cluster, self._accelerated, self._net = cluster, accelerated, net
        self._seen: set[tuple[str, str]] = set()

    def read(self, file: Path) -> Iterator[Diagnostic]:
        """Add the lines of a file, and yield its mistakes."""
        number = 0
        try:
            for number, line in _lines(file, net=self._net):
                try:
                    self._add(line)
                except ValueError as error:
                    yield _mistake(file, number, str(error))
        except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
            yield _mistake(file, number + 1, f"it cannot be read: {error}")

    def _add(self, line: Mapping[str, str]) -> None:
        start = line["line_item_usage_start_date"]
        self.months.add(start[:7])
        # AWS gives one id to lines of several months.
        key = line["identity_line_item_id"], start
        if key in self._seen:
            self.repeated += 1
            return
        self._seen.add(key)
        # Split rows repeat a part of their parent's cost.
        if not line.get(_PARENT) and _is_of(self._cluster, line):
            charge = _charge(line, net=self._net)
            if not charge.use or charge.type not in self._accelerated:
                self.outside += charge.usd
            elif charge.usd or not charge.in_block:
                # Most hours of a block cost nothing: they would fill the memory.
                self.charges.append(charge)


def read_bill(
    files: Sequence[Path], cluster: str, accelerated: Collection[str], *, net: bool
) -> Bill:
    """Return the bill in several files, as `Bill` says.

    Raises:
        ConfigError: A file is no such bill; the error names the mistakes, up to a limit.
    """
    bill = Bill(cluster, accelerated, net=net)
    if mistakes := [*islice(chain.from_iterable(map(bill.read, files)), _MOST_MISTAKES)]:
        raise ConfigError(mistakes)
    return bill


def _lines(file: Path, *, net: bool) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the lines of a file with their numbers.

    Raises:
        ValueError: It is no CUR 2.0 as CSV, lacks a column, or is cut off.
    """
    with file.open("rb") as plain:
        start = plain.read(4)
        plain.seek(0)
        if start == _PARQUET:
            todo = "`ultrascale ledger FILE --setup` has the query that writes CSV"
            raise ValueError(f"Parquet is not read; {todo}")
        stream = gzip.GzipFile(fileobj=plain) if start[:2] == _GZIP else plain
        rows = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""), strict=True)
        header = next(rows, list[str]())
        if missing := ", ".join(_missing_columns(header, net=net)):
            raise ValueError(f"no CUR 2.0 for this: it lacks {missing}")
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{len(row)} columns of {len(header)}: the file is cut off")
            yield rows.line_num, dict(zip(header, row, strict=True))


def _missing_columns(header: Sequence[str], *, net: bool) -> Iterable[str]:
    # The columns of Savings Plans and Reserved Instances may be left out where nobody has them.
    wanted = {**terms("column"), terms("item", "net" if net else "use")["Usage"]: ""}
    for name, setting in wanted.items():
        if name not in header:
            yield f"{name} ({setting} of the export)" if setting else name


def _is_of(cluster: str, line: Mapping[str, str]) -> bool:
    """Return whether a line may be the cluster's: its tags name it, or no cluster."""
    try:
        tags: Mapping[str, str] = parse_json(line.get("resource_tags") or "{}") or {}
    except ValueError:
        return True
    named = {re.sub(r"\W", "_", key).lower(): value for key, value in tags.items()}
    return named.get(_CLUSTER_TAG, cluster) == cluster


def _charge(line: Mapping[str, str], *, net: bool) -> Charge:
    """Return a line as a charge; without a use where it is no accelerator's.

    Raises:
        ValueError: It is in another currency, of a longer time than an hour, or holds no numbers.
    """
    usage, _, kind = line["line_item_usage_type"].partition(":")
    item, costs = line["line_item_line_item_type"], terms("item", "net" if net else "use")
    use = terms("usage").get(usage.rpartition("-")[2], "")
    # No page says which type the line of a fee has.
    if not (cost := costs.get(item, costs["Fee"] if use == "fee" else "")):
        use = ""
    if line["line_item_currency_code"] not in ("", _USD):
        currency = line["line_item_currency_code"]
        raise ValueError(f"in {currency}, where the ledger is in {_USD}: convert its costs")
    start, end = (_time(line[f"line_item_usage_{edge}_date"]) for edge in ("start", "end"))
    if use in ("instance", "unused") and end - start > _HOUR:
        raise ValueError("of daily or monthly grain: set TIME_GRANULARITY of the export to HOURLY")
    resource = line["line_item_resource_id"]
    named = _RESERVATION.search(line[ARN]) or _RESERVATION.search(resource)
    reservation = "" if named is None else named[0]
    by_use = {"instance": resource.rpartition("/")[2], "unused": reservation, "type": kind}
    operation = line["line_item_operation"]
    return Charge(
        use,
        by_use.get(use, ""),
        reservation,
        kind.removeprefix("ml."),
        start,
        _number(line, "line_item_usage_amount"),
        _number(line, cost) if cost else Decimal(),
        item,
        operation.endswith(":CB")
        or "Block" in line.get("capacity_reservation_capacity_reservation_type", ""),
        intern(
            f"{item},{line['line_item_usage_type']},{operation},{_SECRET.sub('X', resource)},"
            f"reservation {'named' if line[ARN] else 'empty'}"
        ),
    )


def _number(line: Mapping[str, str], column: str) -> Decimal:
    if column not in line:
        raise ValueError(
            f"of {line['line_item_line_item_type']}, whose cost is in {column}: add it"
        )
    try:
        return Decimal(line[column] or 0)
    except InvalidOperation:
        raise ValueError(f"{column}: no number, got {line[column]!r}") from None


def _time(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _mistake(file: Path, line: int, words: str) -> Diagnostic:
    return Diagnostic(message=words, file=str(file), span=Span(line=line, column=1), code="bill")
