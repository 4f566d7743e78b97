"""AWS's bill, CUR 2.0 as CSV: lines of accelerators, and mistakes of its files."""

import csv
import gzip
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ultrascale.catalog.tables import read_table
from ultrascale.documents import parse_json
from ultrascale.errors import ConfigError, Diagnostic, Span

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


class Bill(NamedTuple):
    """All lines of several files."""

    charges: Sequence[Charge]  # Lines of accelerators
    months: frozenset[str]  # Months that have a line
    outside: Decimal  # Cost of all other lines of the cluster
    repeated: int  # Lines that were given twice


def read_bill(files: Sequence[Path], cluster: str, *, net: bool) -> Bill:
    """Return the lines of a bill, once each.

    Lines whose tags name another cluster are left out; ``net`` takes the costs after discounts.

    Raises:
        ConfigError: A file is no such bill; the error names each wrong line, up to a limit.
    """
    mistakes: list[Diagnostic] = []
    charges: list[Charge] = []
    seen: set[str] = set()
    months: set[str] = set()
    outside, repeated = Decimal(), 0
    for file in files:
        for number, line in _lines(file, mistakes, net=net):
            months.add(line["line_item_usage_start_date"][:7])
            if (name := line["identity_line_item_id"]) in seen:
                repeated += 1
                continue
            seen.add(name)
            # Split rows repeat a part of their parent's cost.
            if line.get(_PARENT) or not _is_of(cluster, line):
                continue
            try:
                charge = _charge(line, net=net)
            except (ValueError, InvalidOperation) as error:
                mistakes.append(_mistake(file, number, str(error) or "no number"))
                continue
            if charge.use:
                charges.append(charge)
            else:
                outside += charge.usd
    if mistakes:
        raise ConfigError(mistakes[:_MOST_MISTAKES])
    return Bill(charges, frozenset(months), outside, repeated)


def _lines(
    file: Path, mistakes: list[Diagnostic], *, net: bool
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the lines of a file with their numbers; add what is wrong with it to ``mistakes``."""
    try:
        with file.open("rb") as plain:
            start = plain.read(4)
            plain.seek(0)
            if start == _PARQUET:
                words = "Parquet is not read; `ultrascale ledger FILE --setup` has the query"
                mistakes.append(_mistake(file, None, f"{words} that writes CSV"))
                return
            stream = gzip.GzipFile(fileobj=plain) if start[:2] == _GZIP else plain
            rows = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""), strict=True)
            header = next(rows, list[str]())
            if missing := _missing(header, net=net):
                mistakes.append(_mistake(file, 1, f"no CUR 2.0 for this: it lacks {missing}"))
                return
            for row in rows:
                if len(row) != len(header):
                    words = f"{len(row)} columns of {len(header)}: the file is cut off"
                    mistakes.append(_mistake(file, rows.line_num, words))
                    return
                yield rows.line_num, dict(zip(header, row, strict=True))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        mistakes.append(_mistake(file, None, f"it cannot be read to its end: {error}"))


def _missing(header: Sequence[str], *, net: bool) -> str:
    # The columns of Savings Plans and Reserved Instances may be left out where nobody has them.
    wanted = {**terms("column"), terms("item", "net" if net else "use")["Usage"]: ""}
    return ", ".join(
        f"{name} ({use} of the export)" if use else name
        for name, use in wanted.items()
        if name not in header
    )


def _is_of(cluster: str, line: Mapping[str, str]) -> bool:
    """Return whether a line may be the cluster's: its tags name it, or no cluster."""
    try:
        tags = parse_json(line.get("resource_tags") or "{}")
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
    item = line["line_item_line_item_type"]
    cost = terms("item", "net" if net else "use").get(item, "")
    use = terms("usage").get(usage.rpartition("-")[2], "") if cost else ""
    # Taxes, credits, and the fees and negations of Savings Plans are in the cost of no usage.
    if cost and cost not in line:
        raise ValueError(f"of {item}, whose cost is in {cost}: add it")
    usd = Decimal(line[cost] or 0) if cost else Decimal()
    if line["line_item_currency_code"] not in ("", _USD):
        raise ValueError(f"in {line['line_item_currency_code']}, where the ledger is in {_USD}")
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
        Decimal(line["line_item_usage_amount"] or 0),
        usd,
        item,
        operation.endswith(":CB")
        or "Block" in line.get("capacity_reservation_capacity_reservation_type", ""),
        f"{item},{line['line_item_usage_type']},{operation},{_SECRET.sub('X', resource)},"
        f"reservation {'named' if line[ARN] else 'empty'}",
    )


def _time(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _mistake(file: Path, line: int | None, words: str) -> Diagnostic:
    span = None if line is None else Span(line=line, column=1)
    return Diagnostic(message=words, file=str(file), span=span, code="bill")
