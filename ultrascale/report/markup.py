"""Markup of HTML and SVG: escaped text, and figures that name their place in `plan --json`."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple, TypeAlias

Attribute: TypeAlias = str | int | float | None
_DAY_AND_TIME = "%Y-%m-%d %H:%M"
_MILLION = 1_000_000
_THOUSAND = 1_000
_TWENTIETH = 20
# What XML cannot hold, whatever wrote it into a cluster file.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


class Shown(NamedTuple):
    """A value of `plan --json` as a reader sees it.

    Attributes:
        path: Its place in the JSON, keys and indices parted by dots.
        value: The value there.
        text: What is shown of it.
    """

    path: str
    value: float | datetime | None
    text: str


Content: TypeAlias = str | Markup | Shown


def shown(path: str, value: float | None, *, places: int = 0) -> Shown:
    """Return a number with its place in the JSON."""
    return Shown(path, value, "unknown" if value is None else number(value, places=places))


def shown_usd(path: str, value: float | None) -> Shown:
    """Return an amount in US dollars with its place in the JSON."""
    return Shown(path, value, "unknown" if value is None else dollars(value))


def shown_time(path: str, moment: datetime) -> Shown:
    """Return a time in UTC with its place in the JSON."""
    return Shown(path, moment, moment.astimezone(UTC).strftime(_DAY_AND_TIME))


def number(value: float, *, places: int = 0) -> str:
    """Return a number with no places where there is nothing in them.

    Of a small number at least two digits are shown, so that none looks like another one, or none.
    """
    rounded = round(value, places)
    if abs(value - rounded) > abs(value) / _TWENTIETH:
        return f"{value:.2g}" if abs(value) >= 1 / _THOUSAND else f"{value:.1e}"
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def dollars(value: float) -> str:
    """Return an amount in US dollars: cents below a hundred alone."""
    whole = abs(value) >= 100 or value == int(value)
    return f"${value:,.0f}" if whole else f"${value:,.2f}"


def short_dollars(value: float) -> str:
    """Return an amount for an axis: thousands and millions by their letters."""
    for size, letter in ((_MILLION, "M"), (_THOUSAND, "k")):
        if abs(value) >= size:
            return f"${value / size:,.3g}{letter}"
    return f"${value:,.3g}"


def plain(content: Content) -> str:
    """Return the text of ``content``, which is not markup."""
    return content.text if isinstance(content, Shown) else str(content)


def text(*contents: Content, tag: str = "data") -> Markup:
    """Return contents as markup.

    Args:
        contents: Texts, which are escaped, markup, and figures.
        tag: Element that holds a figure: `data` of HTML, `tspan` of SVG.
    """
    return Markup("".join(_markup(each, tag) for each in contents))


def _markup(content: Content, tag: str) -> str:
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return _escaped(content)
    value = "" if content.value is None else _machine(content.value)
    key = "value" if tag == "data" else "data-value"
    start = opening(tag, {"data-figure": content.path, key: value})
    return f"{start}{_escaped(content.text)}</{tag}>"


def _machine(value: float | datetime) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return repr(value)


def _escaped(words: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", words))


def element(name: str, *contents: Content, tag: str = "data", **attributes: Attribute) -> Markup:
    """Return an element.

    Args:
        name: Its name.
        contents: What it holds, as `text`.
        tag: As `text`.
        attributes: Its attributes; a trailing underscore is dropped, other ones become hyphens,
            and those of None are left out.
    """
    return Markup(f"{opening(name, attributes)}{text(*contents, tag=tag)}</{name}>")


def empty(name: str, **attributes: Attribute) -> Markup:
    """Return an element that holds nothing, as XML and HTML both read it."""
    return Markup(f"{opening(name, attributes)[:-1]}/>")


def opening(name: str, attributes: Mapping[str, Attribute]) -> str:
    """Return the opening tag of an element."""
    pairs = [
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return f"<{name}{''.join(pairs)}>"


def _value(value: str | int | float) -> str:
    return _escaped(value) if isinstance(value, str) else f"{round(value, 2):g}"


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Return markup made of parts of it."""
    return Markup(between.join(parts))
