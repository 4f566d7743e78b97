"""YAML as people write it: one reader, with limits, for the values that YAML 1.1 and 1.2 share.

A word that the two versions read differently stays text: `012`, `1_000`, `20:00`, `1e3`,
`yes`. A field for numbers then refuses it as text.
"""

import math
import os
import re
import select
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.scanner import ScannerError

from ultrascale.errors import Span, UltrascaleError, printable
from ultrascale.frozen import Frozen

MOST_BYTES = 1 << 20
"""Bytes of the largest file that is read: ten times the size of 600 pools."""
MOST_NODES = 20_000
"""Values of the largest document; each alias counts as all values of its anchor."""
MOST_ITEMS = 1_000
"""Items of the longest list, keys of the longest mapping."""
MOST_LEVELS = 50

_TAG = "tag:yaml.org,2002:"
STRING, NUMBER, MERGE = f"{_TAG}str", f"{_TAG}int", f"{_TAG}merge"
_SECONDS_FOR_A_PIPE = 3.0

# Tabs between tokens, question marks and the place of an empty value in flow collections, comments
# after the indicator of a block scalar, and line breaks that YAML 1.2 does not know.
_READ_DIFFERENTLY = re.compile("[\t?\x85\u2028\u2029]|[|>]#|: +[],}]")
# An escape such as \ud800 stands for no character.
_SURROGATE = re.compile("[\ud800-\udfff]")
# PyYAML takes ten seconds for a mebibyte.
_LONGEST_FOR_PYYAML = 65_536

_WORDS = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", "<<", "<"),
)
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _kind, _pattern, _starts in _WORDS:
    for _start in (*_starts, *([""] if _kind == "null" else [])):
        _resolver = (_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"))
        _RESOLVERS.setdefault(_start, []).append(_resolver)


class Problem(Frozen, kw_only=False):
    """A part of a text that cannot be read as YAML."""

    text: str  # What is wrong and what to do
    span: Span | None = None  # Place in the text; None where no place is meant

    def __str__(self) -> str:
        return self.text if self.span is None else f"line {self.span.line}: {self.text}"


class YamlError(UltrascaleError):
    """A text that cannot be read as YAML."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems  # The parts that cannot be read
        self.lines = tuple(map(str, problems))  # The problems, a line each
        super().__init__("\n".join(self.lines))


def span_of(first: yaml.Node | yaml.Event, last: yaml.Node | None = None) -> Span:
    """Return the place of a part: from ``first`` to the end of ``last``, or of ``first``.

    The value of an alias stands at its anchor: then the part ends with ``first``.
    """
    start, end = first.start_mark, (last or first).end_mark
    if start is not None and end is not None and end.index < start.index:
        end = first.end_mark
    if start is None:
        return Span(line=1, column=1)
    line, column = start.line + 1, start.column + 1
    if end is None:
        return Span(line=line, column=column)
    return Span(line=line, column=column, end_line=end.line + 1, end_column=end.column + 1)


def _span(mark: yaml.Mark) -> Span:
    return Span(line=mark.line + 1, column=mark.column + 1)


class _UnreadableValueError(yaml.constructor.ConstructorError):
    """A value that cannot be made, with the advice for it."""


class _Construction(yaml.constructor.SafeConstructor):
    """Constructor of values from YAML nodes that names a line in each error."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            value = super().construct_object(node, deep=deep)
        except (ValueError, OverflowError) as error:
            text = f"not a value that YAML knows: {error}; mend it, or put it in quotes"
            if isinstance(node, yaml.ScalarNode) and node.tag == NUMBER:
                digits = sum(character.isdigit() for character in node.value)
                text = f"a number of {digits} digits; write a smaller one"
            raise _UnreadableValueError(None, None, text, node.start_mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            # Comparisons with it are never, or always, true; JSON has no such value.
            text = f"no finite number, got {node.value}; write digits, or put it in quotes"
            raise _UnreadableValueError(None, None, text, node.start_mark)
        return value


class _PlainLoader(_Construction, yaml.SafeLoader):
    """Loader for people's files: its errors say in plain words what is wrong."""

    yaml_implicit_resolvers = _RESOLVERS


class _FastLoader(_Construction, yaml.CSafeLoader):
    """Loader by libyaml, several times as fast."""

    yaml_implicit_resolvers = _RESOLVERS


Loader = _PlainLoader | _FastLoader


@dataclass(slots=True)
class _Measure:
    """Sizes of a collection and of all below it."""

    anchor: str | None
    items: int = 0
    nodes: int = 1
    levels: int = 1


@dataclass(slots=True)
class _Measures:
    """Sizes of the open collections of a text, and of collections with an anchor."""

    opened: list[_Measure] = field(default_factory=list[_Measure])
    anchored: dict[str, _Measure] = field(default_factory=dict[str, _Measure])

    def add(self, event: yaml.Event, span: Span) -> None:
        """Count the value that ``event`` begins, ends or is.

        Raises:
            YamlError: A limit is exceeded.
        """
        if isinstance(event, yaml.CollectionStartEvent):
            self.opened.append(_Measure(event.anchor))
            if len(self.opened) > MOST_LEVELS:
                raise YamlError(Problem("nested too deeply; write a cluster file", span))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._count(self.opened.pop(), span)
        elif isinstance(event, yaml.ScalarEvent):
            self._count(_Measure(event.anchor), span)
        elif isinstance(event, yaml.AliasEvent):
            name = event.anchor or ""
            if any(part.anchor == name for part in self.opened):
                text = "an alias refers to itself; write the value out"
                raise YamlError(Problem(text, span))
            meant = self.anchored.get(name, _Measure(None))
            self._count(_Measure(None, nodes=meant.nodes, levels=meant.levels), span)

    def _count(self, part: _Measure, span: Span) -> None:
        if part.anchor is not None:
            self.anchored[part.anchor] = part
        if not self.opened:
            return
        outer = self.opened[-1]
        outer.items += 1
        outer.nodes += part.nodes
        outer.levels = max(outer.levels, part.levels + 1)
        # The keys of a mapping count as items too.
        if outer.items > 2 * MOST_ITEMS:
            text = f"a list of more than {MOST_ITEMS:,} items; leave the others out"
            raise YamlError(Problem(text, span))
        if sum(part.nodes for part in self.opened) > MOST_NODES:
            text = f"more than {MOST_NODES:,} values, with all that aliases stand for"
            raise YamlError(Problem(f"{text}; write a smaller file", span))
        if len(self.opened) + part.levels > MOST_LEVELS:
            raise YamlError(Problem("aliases nested too deeply; write a cluster file", span))


def read_bytes(path: Path, *, what: str) -> bytes:
    """Return the content of a file, or of a pipe to which somebody writes.

    Args:
        path: The file.
        what: The expected kind of the file.

    Raises:
        OSError: It cannot be read.
        YamlError: The file is larger than allowed, or nothing comes from the pipe.
    """
    # The read of a pipe without a writer would never end.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        kind = os.fstat(file).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError
        if stat.S_ISBLK(kind):
            raise YamlError(Problem(f"a device; name a {what} file"))
        parts = b"".join(_parts(file, what, waits=not stat.S_ISREG(kind)))
    finally:
        os.close(file)
    return parts


def _parts(file: int, what: str, *, waits: bool) -> Iterator[bytes]:
    size, until = 0, time.monotonic() + _SECONDS_FOR_A_PIPE
    while True:
        if waits:
            select.select([file], [], [], max(0, until - time.monotonic()))
        try:
            part = os.read(file, MOST_BYTES)
        except BlockingIOError:
            text = f"a pipe or device that does not end; write a {what} file, and name that"
            raise YamlError(Problem(text)) from None
        if not part:
            return
        size += len(part)
        refuse_size(size, what=what)
        yield part


def refuse_size(size: int, *, what: str) -> None:
    """Refuse a content that is larger than allowed.

    Args:
        size: Bytes that were read.
        what: Kind of the file.

    Raises:
        YamlError: It is larger.
    """
    if size > MOST_BYTES:
        limit = MOST_BYTES >> 20
        text = f"more than {limit} MiB, which no {what} file has; name another file"
        raise YamlError(Problem(text))


def decoded(data: bytes) -> str:
    """Return ``data`` as text.

    Raises:
        YamlError: It is not UTF-8.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = "not UTF-8 text, got UTF-16; save the file as UTF-8"
        raise YamlError(Problem(text, Span(line=1, column=1)))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        text = f"not UTF-8 text, got {got}; save the file as UTF-8"
        read = error.object[: error.start].decode("utf-8-sig")
        line = read.rpartition("\n")[2]
        span = Span(line=read.count("\n") + 1, column=len(line) + 1)
        raise YamlError(Problem(text, span)) from None


def load(data: str | bytes) -> object:
    """Return the value of a YAML document; None for an empty document.

    Raises:
        YamlError: It is no YAML, larger than any file of ours, or has a key twice.
    """
    text = data if isinstance(data, str) else decoded(data)
    return value_of(text, *compose(text))


def compose(text: str, *, own: bool = False) -> tuple[Loader, yaml.Node | None]:
    """Return the root of a YAML document (None if empty) and the loader that makes values.

    PyYAML reads texts that libyaml refuses, for PyYAML's known errors, and texts that the two
    read differently.

    Args:
        text: The document.
        own: Whether this program wrote the document: then no limit holds.

    Raises:
        YamlError: It is no YAML, larger than any file of ours, or has a key twice.
    """
    if own:
        try:
            return _composed(_FastLoader(text), text)
        except yaml.YAMLError as error:
            raise YamlError(_yaml_mistake(error, text)) from error
    known_to_pyyaml = len(text) <= _LONGEST_FOR_PYYAML
    if not (known_to_pyyaml and _READ_DIFFERENTLY.search(text)):
        try:
            _measure(_FastLoader, text)
            loader, root = _composed(_FastLoader(text), text)
        except yaml.YAMLError as error:
            if not known_to_pyyaml:
                raise YamlError(_yaml_mistake(error, text)) from error
        else:
            return loader, root
    try:
        _measure(_PlainLoader, text)
    except yaml.YAMLError as error:
        raise YamlError(_yaml_mistake(error, text)) from error
    return _composed(_PlainLoader(text), text)


def value_of(text: str, loader: Loader, root: yaml.Node | None) -> object:
    """Return the value of a document that `compose` has read.

    Raises:
        YamlError: YAML knows no such value.
    """
    try:
        return None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        raise YamlError(_yaml_mistake(error, text)) from error


def _composed(loader: Loader, text: str) -> tuple[Loader, yaml.Node | None]:
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        if isinstance(loader, _FastLoader) and len(text) <= _LONGEST_FOR_PYYAML:
            raise
        raise YamlError(_yaml_mistake(error, text)) from error
    if root is not None and (problems := [*_duplicate_keys(root, set())]):
        raise YamlError(*problems)
    return loader, root


def _measure(loader: type[Loader], text: str) -> None:
    measures = _Measures()
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
    for event in events:
        span = span_of(event)
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            _refuse_tag(event, span)
        measures.add(event, span)
        if isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
            text = f"half of a character, got {event.value!r}; write all of it"
            raise YamlError(Problem(text, span))


def _refuse_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent, span: Span) -> None:
    """Refuse a tag that would change the type of the written value.

    Raises:
        YamlError: The tag would.
    """
    tag = event.tag
    if tag is None or tag == "!":
        return
    got = "a list" if isinstance(event, yaml.SequenceStartEvent) else "a mapping"
    own = f"{_TAG}seq" if isinstance(event, yaml.SequenceStartEvent) else f"{_TAG}map"
    if isinstance(event, yaml.ScalarEvent):
        got, own = repr(event.value), STRING
    if tag != own:
        shown = tag.replace(_TAG, "!!")
        raise YamlError(Problem(f"the tag {printable(shown)} on {got}; leave the tag out", span))


def _duplicate_keys(node: yaml.Node, seen: set[int]) -> Iterator[Problem]:
    """Yield duplicate keys, of which PyYAML would silently take the last."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicate_keys(item, seen)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                if key.value in lines:
                    first = lines[key.value]
                    text = f"the key {key.value!r} stands on line {first} too; keep one"
                    yield Problem(text, span_of(key))
                lines.setdefault(key.value, line)
                # A key such as `on` or `1` is text.
                key.tag = STRING
            elif not isinstance(key, yaml.ScalarNode):
                yield Problem("a list or mapping as a key; write a word", span_of(key))
            yield from _duplicate_keys(value, seen)


def _yaml_mistake(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        span, problem = _span(error.problem_mark), error.problem or ""
        if isinstance(error, ScannerError) and _is_tab(error.problem_mark, text):
            return Problem("not YAML: a tab in its indentation; use spaces", span)
        if isinstance(error, _UnreadableValueError):
            return Problem(problem, span)
        # PyYAML names the start of the part and the place where it gave up.
        context = f"{error.context}, " if error.context else ""
        todo = "look for an unclosed quote or bracket, a missing colon or a wrong indentation"
        if error.context == "while scanning a block scalar":
            todo = "put a value that begins with > or | in quotes"
        return Problem(f"not YAML: {context}{problem}; {todo}", span)
    if isinstance(error, yaml.reader.ReaderError):
        read = text[: error.position]
        span = Span(line=read.count("\n") + 1, column=len(read.rpartition("\n")[2]) + 1)
        return Problem("not YAML: a character that YAML does not allow; remove it", span)
    return Problem(f"not YAML: {' '.join(str(error).split())}; mend it")


def _is_tab(mark: yaml.Mark, text: str) -> bool:
    lines = text.splitlines()
    return mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"
