"""Texts that another text holds encoded, escaped or in pieces."""

import base64
import binascii
import gzip
import html
import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from urllib.parse import unquote

from ultrascale.hosts.names import UNKNOWN

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{10,}(?:\s*\n\s*[A-Za-z0-9+/_-]+)*={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?((?:[0-9a-fA-F]{2}){7,})(?![0-9A-Za-z])")
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<braced>[0-9a-fA-F]{1,6})\}|u(?P<unicode>[0-9a-fA-F]{4})"
    r"|U(?P<long>[0-9a-fA-F]{8})|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>0?[0-7]{3})|(?P<char>[nrt\"'/\\.]))"
)
# Only these two: a version follows two equals signs as well.
_QUOTED_PRINTABLE = re.compile(r"=(2E|2F|3A|3D)")
_ENTITY = re.compile(r"&(?:#\w+|[a-zA-Z]+);")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_CHARACTERS = {"n": "\n", "r": "\n", "t": "\t"}
# Dots that names of domains may have as well.
# Source: https://www.rfc-editor.org/rfc/rfc3490#section-3.1
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
_LITERAL = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`"
_CHAIN = re.compile(rf"(?:{_LITERAL}|[A-Za-z_$][\w$]*)(?:\s*\+\s*(?:{_LITERAL}|[A-Za-z_$][\w$]*))+")
_PIECE = re.compile(rf"{_LITERAL}|[A-Za-z_$][\w$]*")
_LIST = rf"\[\s*(?P<items>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*,?\s*\]"
_JOINED_BY = (
    re.compile(rf"{_LIST}\s*\.\s*join\(\s*(?P<by>{_LITERAL})?\s*\)"),
    re.compile(rf"(?P<by>{_LITERAL})\s*\.\s*join\(\s*{_LIST}\s*\)"),
    re.compile(
        rf"(?P<by>{_LITERAL})\s*\.\s*join\(\s*\(\s*"
        rf"(?P<items>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*,?\s*\)\s*\)"
    ),
)
_SET = re.compile(
    rf"(?:^|[\s;,({{])(?:(?:export|local|readonly|declare(?: -\w+)?|ARG|ENV|const|let|var)\s+)?"
    rf"(?P<name>[A-Za-z_$][\w$]*)\s*=\s*(?P<value>{_LITERAL}|[^\s;\"'`$=(){{}},|&]+)",
    re.MULTILINE,
)
_ENV = re.compile(r"^\s*ENV\s+(?P<name>\w+)\s+(?P<value>[^\s=]+)\s*$", re.MULTILINE)
_USE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?[-+=][^}]*)?\}|\((?P<round>\w+)\)|(?P<bare>\w+))")
_DEFAULT = re.compile(r"\$\{\w+:?-(?P<value>[^}$]*)\}")
_CONTINUED = re.compile(r"\\\n[ \t]*")
_SEAM = re.compile(
    r"(?<=[\w.:/@-])(?:\"\"|''|\"'|'\")(?=[\w.:/@-])|(?<=[\w.:/@-])[\"'](?=[\w.:/@-])"
)
_PIECES = re.compile(r"\\\n|\$|[\"'`]\s*\+|\+\s*[\"'`]|join|\"\"|''|[\w.][\"'][\w.]")


def decoded(text: str) -> Iterator[tuple[str, str]]:
    """Yield what ``text`` holds in other forms, each with the name of the form.

    A form that changes nothing yields nothing. What comes out may hold encoded text again.
    """
    yield from (("base64", found) for found in _base64(text))
    yield from (("hexadecimal", found) for found in _hexadecimal(text))
    forms = {
        "escaped": _unescaped(text),
        "URL-encoded": unquote(text) if "%" in text else text,
        "entities": html.unescape(text) if _ENTITY.search(text) else text,
        "quoted-printable": _quoted_printable(text),
        "Unicode": _plain_characters(text),
    }
    yield from ((form, found) for form, found in forms.items() if found != text)


def text_of(content: bytes) -> str | None:
    """Return the text of compressed or plain ``content``; None where it is none."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
    elif content[:1] == b"\x78" and len(content) > 8:
        with suppress(zlib.error):
            content = zlib.decompress(content)
    if b"\0" in content[:64] and content[1::2][:32].count(0) > len(content[1::2][:32]) // 2:
        return content.decode("utf-16-le", "replace")
    try:
        found = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _UNPRINTABLE.search(found) else found


def _base64(text: str) -> Iterator[str]:
    for match in _BASE64.finditer(text):
        raw = re.sub(r"\s", "", match[0]).rstrip("=")
        if raw.isalpha() and (raw.islower() or raw.isupper()):
            continue
        for candidate in (raw, *_runs(match[0].split())):
            if (found := _from_base64(candidate)) is not None and len(found) > 3:
                yield found


def _runs(lines: Sequence[str]) -> Iterator[str]:
    """Yield each line, and all but the outermost, which may be words such as a boundary."""
    if len(lines) > 1:
        yield from lines
        yield from map("".join, (lines[:-1], lines[1:], lines[1:-1]))


def _from_base64(raw: str) -> str | None:
    raw = raw.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        content = base64.b64decode(raw + "=" * (-len(raw) % 4))
    except (binascii.Error, ValueError):
        return None
    return text_of(content)


def _hexadecimal(text: str) -> Iterator[str]:
    for match in _HEX.finditer(text):
        if (found := text_of(bytes.fromhex(match[1]))) is not None:
            yield found


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        if match["char"]:
            return _CHARACTERS.get(match["char"], match["char"])
        if match["octal"]:
            return chr(int(match["octal"], 8))
        code = int(match["braced"] or match["unicode"] or match["long"] or match["hex"], 16)
        return chr(code) if code < 0x110000 else ""

    return _ESCAPE.sub(one, text)


def _plain_characters(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).translate(_DOTS)


def _quoted_printable(text: str) -> str:
    if not _QUOTED_PRINTABLE.search(text):
        return text
    joined = re.sub(r"=[ \t]*\n", "", text)
    return _QUOTED_PRINTABLE.sub(lambda match: chr(int(match[1], 16)), joined)


def assembled(text: str, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a script or program with its pieces of text put together.

    Continued lines, variables with constant values, sums and joins of literals, and the seams of
    adjacent quotes. What has no constant value stays.

    Args:
        text: The script.
        environment: Values of variables that it does not set itself.
    """
    if not _PIECES.search(text):
        return text
    text = _CONTINUED.sub("", text)
    values = {**environment, **_constants(text)}
    for _ in range(3):
        before, text = text, _put_together(text, values)
        if before == text:
            break
        values = {**values, **_constants(text)}
    return _SEAM.sub("", _DEFAULT.sub(lambda match: match["value"], text))


def _put_together(text: str, values: Mapping[str, str]) -> str:
    text = _USE.sub(lambda match: _value(match, values), text)
    text = _CHAIN.sub(lambda match: _sum(match[0], values), text)
    for pattern in _JOINED_BY:
        text = pattern.sub(_join, text)
    return text


def _constants(text: str) -> Mapping[str, str]:
    found = [*_SET.finditer(text), *_ENV.finditer(text)]
    return {match["name"]: _plain(match["value"]) for match in found}


def _plain(literal: str) -> str:
    return literal[1:-1] if literal[:1] in "\"'`" and len(literal) > 1 else literal


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    name = match["braced"] or match["round"] or match["bare"]
    value = values.get(name)
    return match[0] if value is None or f"${name}" in value or len(value) > 500 else value


def _sum(chain: str, values: Mapping[str, str]) -> str:
    pieces = [match[0] for match in _PIECE.finditer(chain)]
    if not any(piece[:1] in "\"'`" or piece in values for piece in pieces):
        return chain
    known = [
        _plain(piece) if piece[:1] in "\"'`" else values.get(piece, UNKNOWN) for piece in pieces
    ]
    return '"' + "".join(known).replace('"', "") + '"'


def _join(match: re.Match[str]) -> str:
    items = [_plain(found[0]) for found in re.finditer(_LITERAL, match["items"])]
    return '"' + _plain(match["by"] or '","').join(items).replace('"', "") + '"'
