"""A user's price lists: CSV with the catalog's columns, or JSON as AWS publishes it."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from ultrascale.catalog import INSTANCE_TYPES
from ultrascale.catalog._near import did_you_mean
from ultrascale.catalog.prices import (
    AUTO_MODE,
    COLUMNS,
    DATABASE_CLASSES,
    DOLLARS,
    FEE,
    ITEMS,
    OF_INSTANCES,
    Price,
    PriceList,
    is_fee,
    price_of,
    unit_of,
)
from ultrascale.catalog.regions import REGIONS
from ultrascale.documents import parse_json
from ultrascale.errors import ConfigError, Diagnostic, Span
from ultrascale.frozen import Frozen
from ultrascale.pricing.products import one_of_each, prices_of_document

_MOST_BYTES = 64 * 1024 * 1024
_TOLD_AFTER = timedelta(days=90)
_REFUSED_AFTER = timedelta(days=365)
# Some time zones begin a day before UTC does.
_AHEAD = timedelta(days=1)
_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_SERVICES = (*OF_INSTANCES, *ITEMS)
_RENEW = "write new ones with `ultrascale prices`"
_ML = "ml."


class PriceFile(Frozen):
    """Prices of a file, with remarks on their age."""

    prices: PriceList  # The prices
    warnings: tuple[str, ...]  # Sentences about their age


def read_price_file(file: Path, today: date) -> PriceFile:
    """Return the prices of a file: CSV, an answer of ``GetProducts``, or a bulk file in JSON.

    Args:
        file: The file.
        today: The day from which the prices' age counts.

    Raises:
        ConfigError: The file cannot be read, or states something wrong; the error names each line.
    """
    text = _text_of(file)
    prices = _from_json(file, text) if text.lstrip()[:1] in ("{", "[") else _from_csv(file, text)
    mistakes = [*_age_remarks(file, prices, today)]
    if mistakes:
        raise ConfigError(mistakes)
    return PriceFile(
        prices=PriceList(price for _, price in prices),
        warnings=tuple(_old_price_remarks(file, [price for _, price in prices], today)),
    )


_Placed = tuple[Span | None, Price]


def _text_of(file: Path) -> str:
    wrong = ""
    try:
        if file.is_dir():
            wrong = "it is a directory; name the file in it"
        elif file.stat().st_size > _MOST_BYTES:
            wrong = "it has more than 64 MiB; `ultrascale prices` writes what is needed of it"
        else:
            text = file.read_bytes().decode("utf-8-sig")
            if text.strip():
                return text
            wrong = f"it is empty; {_RENEW}"
    except UnicodeDecodeError as error:
        wrong = f"it is not UTF-8 at byte {error.start}; save it as UTF-8"
    except OSError as error:
        wrong = f"it cannot be read: {error.strerror or error}"
    raise ConfigError([_mistake(file, None, wrong)])


def _from_json(file: Path, text: str) -> Sequence[_Placed]:
    try:
        document = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError([_mistake(file, None, f"it is no JSON: {error}")]) from None
    found = [*prices_of_document(document)]
    if not found:
        words = "it holds no price that is of use here; see docs/prices.md for which are"
        raise ConfigError([_mistake(file, None, words)])
    foreign = sorted({price.currency for price in found} - {DOLLARS})
    if foreign:
        raise ConfigError([_mistake(file, None, _currency(foreign))])
    return [(None, price) for price in one_of_each(found)]


def _from_csv(file: Path, text: str) -> Sequence[_Placed]:
    mistakes: list[Diagnostic] = []
    placed: list[_Placed] = []
    currencies: set[str] = set()
    for span, cells in _rows(file, text, mistakes):
        currencies.add(cells["currency"])
        wrong = [*_row_mistakes(cells)]
        mistakes += [_mistake(file, span, *each) for each in wrong]
        if not wrong:
            placed.append((span, price_of(cells)))
    mixed = sorted(currencies - {""})
    if len(mixed) > 1:
        mistakes.append(_mistake(file, None, _currency(mixed)))
    mistakes += _duplicate_mistakes(file, placed)
    if not placed and not mistakes:
        mistakes.append(_mistake(file, None, f"it has no row; {_RENEW}"))
    if mistakes:
        raise ConfigError(mistakes)
    return placed


def _rows(
    file: Path, text: str, mistakes: list[Diagnostic]
) -> Iterator[tuple[Span, Mapping[str, str]]]:
    """Yield the rows below the header, each by column; add malformed rows to ``mistakes``.

    Raises:
        ConfigError: The header is wrong.
    """
    rows = csv.reader(text.splitlines(), strict=True)
    columns: Sequence[str] = ()
    try:
        for row in rows:
            span = Span(line=rows.line_num, column=1)
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not columns:
                columns = cells
                if wrong := _header(columns):
                    raise ConfigError([_mistake(file, span, wrong)])
            elif len(cells) == len(columns):
                yield span, dict(zip(columns, cells, strict=True))
            else:
                words = f"{len(cells)} columns, where the header has {len(columns)}"
                mistakes.append(_mistake(file, span, words))
    except csv.Error as error:
        span = Span(line=rows.line_num, column=1)
        mistakes.append(_mistake(file, span, f"it is no CSV: {error}"))


def _header(columns: Sequence[str]) -> str | None:
    missing = [name for name in COLUMNS if name not in columns]
    strange = [name for name in columns if name not in COLUMNS]
    double = sorted({name for name in columns if columns.count(name) > 1})
    parts = [
        f"{word} {', '.join(map(repr, names))}"
        for word, names in (("lacks", missing), ("has unknown", strange), ("repeats", double))
        if names
    ]
    return f"the header {'; '.join(parts)}; it is {','.join(COLUMNS)}" if parts else None


def _row_mistakes(cells: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the mistakes of a row: message, value, and remedy."""
    region, service, item = cells["region"], cells["service"], cells["item"]
    if region not in REGIONS:
        yield "region: no such Region", region, did_you_mean(region, REGIONS)
    if service not in _SERVICES:
        known = did_you_mean(service, _SERVICES) or f"write one of {', '.join(_SERVICES)}"
        yield "service: no such service", service, known
    else:
        yield from _item_mistake(service, item, cells["unit"])
    if not _NUMBER.fullmatch(cells["price"]):
        yield "price: not a price", cells["price"], "write a number of 0 or more, such as 55.04"
    elif is_fee(service, item) and round(float(cells["price"]), 2) != float(cells["price"]):
        yield "price: no fee in whole cents", cells["price"], "write what the invoice says"
    elif float(cells["price"]) > 1e9:
        yield "price: not a price of one unit", cells["price"], "write it in US dollars"
    elif service in OF_INSTANCES and float(cells["price"]) == 0:
        fix = "leave the row out: what is paid before has no price by the hour"
        yield "price: no instance costs nothing", cells["price"], fix
    if cells["currency"] != DOLLARS:
        fix = "write USD: the plan counts in US dollars, and converts nothing"
        yield "currency: not in US dollars", cells["currency"], fix
    if _day(cells["valid_on"]) is None:
        fix = "write a day on which the price holds, such as 2026-11-01"
        yield "valid_on: not a day", cells["valid_on"], fix
    if not cells["source"]:
        yield "source: nothing says who states the price", "", "write a page, or your contract"


def _item_mistake(service: str, item: str, unit: str) -> Iterator[tuple[str, str, str]]:
    name = item
    if service == "sagemaker" and item.startswith(_ML):
        name = item.removeprefix(_ML)
    elif service == "sagemaker":
        yield "item: no type of SageMaker", item, "write it with ml. before it"
        return
    if service == "eks" and item.startswith(AUTO_MODE):
        name = item.removeprefix(AUTO_MODE)
    elif is_fee(service, item):
        name = ""
    elif service not in OF_INSTANCES:
        if unit_of(service, item) is None:
            known = (*ITEMS[service], *(DATABASE_CLASSES if item.startswith("db.") else ()))
            near = did_you_mean(item, known) or f"write one of {', '.join(known)}"
            yield f"item: {service} has no such item", item, near
            return
        name = ""
    if name and name not in INSTANCE_TYPES:
        near = did_you_mean(name, INSTANCE_TYPES) or "`ultrascale types` lists them"
        yield "item: unknown instance type", item, near
    elif unit != unit_of(service, item):
        yield "unit: not that of the item", unit, f"write {unit_of(service, item)}"


def _day(text: str) -> date | None:
    try:
        return (
            date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None
        )
    except ValueError:
        return None


def _duplicate_mistakes(file: Path, placed: Sequence[_Placed]) -> Iterator[Diagnostic]:
    first: dict[tuple[str, str, str], Span | None] = {}
    for span, price in placed:
        key = (price.region, price.service, price.item)
        before = first.setdefault(key, span)
        if before is not span and before is not None:
            words = f"the price of line {before.line} again"
            yield _mistake(file, span, words, " ".join(key), "leave one of them out")


def _age_remarks(file: Path, placed: Sequence[_Placed], today: date) -> Iterator[Diagnostic]:
    for span, price in placed:
        if price.valid_on > today + _AHEAD:
            words = f"valid_on: after today, {today}"
            yield _mistake(file, span, words, str(price.valid_on), "write the day of the price")
        elif price.unit != FEE and today - price.valid_on > _REFUSED_AFTER:
            days = (today - price.valid_on).days
            words = f"valid_on: {days:,} days old, of at most {_REFUSED_AFTER.days}"
            yield _mistake(file, span, words, str(price.valid_on), _RENEW)


def _old_price_remarks(file: Path, prices: Sequence[Price], today: date) -> Iterator[str]:
    # A fee is what was paid: it does not age.
    old = [price for price in prices if price.unit != FEE and today - price.valid_on > _TOLD_AFTER]
    if old:
        oldest = min(price.valid_on for price in old)
        yield (
            f"{file}: warning: {len(old):,} of {len(prices):,} prices are older than "
            f"{_TOLD_AFTER.days} days, the oldest {(today - oldest).days} days, of {oldest}; "
            f"{_RENEW}"
        )


def _currency(found: Sequence[str]) -> str:
    return (
        f"prices in {', '.join(found)}; write all of them in {DOLLARS}: the plan counts in US "
        "dollars, and converts nothing"
    )


def _mistake(
    file: Path, span: Span | None, message: str, value: str | None = None, fix: str = ""
) -> Diagnostic:
    return Diagnostic(
        message=message,
        file=str(file),
        span=span,
        value="" if value is None else repr(value),
        fix=fix,
        code="price",
    )


def as_csv(prices: Iterable[Price]) -> str:
    """Return prices as CSV: a header, then a line for each price."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for price in prices:
        writer.writerow(_cell(getattr(price, name)) for name in COLUMNS)
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0").rstrip(".")
    return str(value)
