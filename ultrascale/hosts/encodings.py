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
_SPACED_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:0x)?[0-9a-fA-F]{2}[ :,]+){7,}(?:0x)?[0-9a-fA-F]{2}\b"
)
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{16,}(?![A-Za-z0-9])")
_CODES = re.compile(r"(?<![\w.])(?:\d{2,3}\s*,\s*){7,}\d{2,3}(?![\w.])")
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
    rf"(?P<name>[A-Za-z_$][\w$]*)\s*(?P<more>\+)?=\s*(?P<value>{_LITERAL}|[^\s;\"'`$=(){{}},|&]+)",
    re.MULTILINE,
)
_ENV = re.compile(r"^\s*ENV\s+(?P<name>\w+)\s+(?P<value>[^\s=]+)\s*$", re.MULTILINE)
_USE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?[-+=][^}]*)?\}|\((?P<round>\w+)\)|(?P<bare>\w+))")
_DEFAULT = re.compile(r"\$\{\w+:?-(?P<value>[^}$]*)\}")
# A variable of no known value, within what may be the name of a host.
_OPEN = re.compile(r"\$(?:\{[\w.]+\}|\(\w+\)|\w+)(?=[\w-]*\.[A-Za-z])")
_CONTINUED = re.compile(r"\\\n[ \t]*")
_SEAM = re.compile(
    r"(?<=[\w.:/@-])(?:\"\"|''|\"'|'\")(?=[\w.:/@-])|(?<=[\w.:/@-])[\"'](?=[\w.:/@-])"
)
_ARRAY = re.compile(rf"(?<![\w$.])(?P<name>[A-Za-z_$][\w$]*)\s*=\s*{_LIST}")
_JOINED_NAME = re.compile(r"(?<![\w$.])(?P<name>[A-Za-z_$][\w$]*)\s*\.\s*join\(")
_CONCAT = re.compile(
    rf"(?:{_LITERAL})\s*\.\s*concat\(\s*(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*\s*\)"
)
_PRINTF = re.compile(rf"printf\s+(?P<text>{_LITERAL}|\S*%s\S*)(?P<words>(?:[ \t]+[\w.:/$-]+)+)")
# Behind the name of a variable: its text after additions.
_GROWN = "+="
_PIECES = re.compile(
    r"\\\n|\$|\+=|printf|concat|[\"'`]\s*\+|\+\s*[\"'`]|join|\"\"|''|[\w.][\"'][\w.]"
)


def decoded(text: str) -> Iterator[tuple[str, str]]:
    """Yield what ``text`` holds in other forms, each with the name of the form.

    A form that changes nothing yields nothing. What comes out may hold encoded text again.
    """
    yield from (("base64", found) for found in _base64(text))
    yield from (("base32", found) for found in _base32(text))
    yield from (("hexadecimal", found) for found in _hexadecimal(text))
    yield from (("character codes", found) for found in characters(text))
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

    for match in _SPACED_HEX.finditer(text):
        digits = re.sub(r"0x|[ :,]", "", match[0])
        if len(digits) % 2 == 0 and (found := text_of(bytes.fromhex(digits))) is not None:
            yield found


def _base32(text: str) -> Iterator[str]:
    for match in _BASE32.finditer(text):
        try:
            content = base64.b32decode(match[0] + "=" * (-len(match[0]) % 8))
        except (binascii.Error, ValueError):
            continue
        if (found := text_of(content)) is not None:
            yield found


def characters(text: str) -> Iterator[str]:
    """Yield texts that programs hold as lists of the numbers of their characters."""
    for match in _CODES.finditer(text):
        codes = [int(code) for code in match[0].split(",")]
        if all(32 <= code < 127 for code in codes):
            yield bytes(codes).decode()


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
    adjacent quotes. What has no constant value stays, or is `names.UNKNOWN` before a dot.

    Args:
        text: The script.
        environment: Values of variables that it does not set itself.
    """
    if not _PIECES.search(text):
        return text
    text = _CONTINUED.sub("", text)
    values = {**environment, **_constants(text)}
    grown = [f'"{value}"' for name, value in values.items() if name.endswith(_GROWN)]
    text = "\n".join((text, *grown))
    for _ in range(3):
        before, text = text, _put_together(text, values)
        if before == text:
            break
        values = {**values, **_constants(text)}
    return _OPEN.sub(UNKNOWN, _SEAM.sub("", _DEFAULT.sub(lambda match: match["value"], text)))


def _put_together(text: str, values: Mapping[str, str]) -> str:
    text = _USE.sub(lambda match: _value(match, values), text)
    arrays = {match["name"]: match["items"] for match in _ARRAY.finditer(text)}
    if arrays:
        text = _JOINED_NAME.sub(lambda match: _array(match, arrays), text)
    for pattern in _JOINED_BY:
        text = pattern.sub(_join, text)
    text = _CONCAT.sub(lambda match: _literal(match[0], ""), text)
    text = _PRINTF.sub(_printed, text)
    return _CHAIN.sub(lambda match: _sum(match[0], values), text)


def _array(match: re.Match[str], arrays: Mapping[str, str]) -> str:
    items = arrays.get(match["name"])
    return match[0] if items is None else f"[{items}].join("


def _constants(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _SET.finditer(text):
        name, value = match["name"], _plain(match["value"])
        if match["more"]:
            found[f"{name}{_GROWN}"] = value = found.get(name, "") + value
        found[name] = value
    return found | {match["name"]: _plain(match["value"]) for match in _ENV.finditer(text)}


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
    return _literal(match["items"], _plain(match["by"] or '","'))


def _literal(text: str, by: str) -> str:
    """Return the literals of a text as one."""
    items = [_plain(found[0]) for found in re.finditer(_LITERAL, text)]
    return '"' + by.join(items).replace('"', "") + '"'


def _printed(match: re.Match[str]) -> str:
    text = _plain(match["text"])
    for word in match["words"].split():
        text = text.replace("%s", word, 1)
    return f'"{text}"'
