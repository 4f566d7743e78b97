"""YAML files, with the place and the spelling of each value."""

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TextIO, TypeGuard

import yaml

from ultrascale import yaml_reader, yaml_writer
from ultrascale.errors import ConfigError, Diagnostic, Span
from ultrascale.frozen import Frozen
from ultrascale.yaml_reader import Problem, YamlError

Key = str | int
KeyPath = tuple[Key, ...]

_LONGEST = 100


class Origin(Frozen, kw_only=False):
    """Origin of a document: a part of another file, then changed."""

    document: "Document"  # The file
    at: KeyPath = ()  # Keys that lead to the part


class Document(Frozen, kw_only=False):
    """A cluster file as read, before its types."""

    source: str  # Name of the file in error lines
    value: Mapping[str, object]  # Its mapping; lists have become tuples
    root: yaml.Node  # The YAML node that ``value`` was made from
    is_own: bool = False  # Whether this program wrote it: its lines mean nothing to a user
    # The file that it was made from; None where it is itself a file, or was made from none.
    origin: Origin | None = None

    def spelling(self, at: KeyPath) -> str | None:
        """Return the spelling in the file of the value at ``at``, None if the file has none."""
        node = self.root
        for key in at:
            child = _child(node, key)
            if child is None:
                return None
            node = child[1]
        return spell(node)

    def place(self, at: KeyPath) -> tuple[int, int]:
        """Return line and column of ``at``, or of its nearest parent in the file, for sorting."""
        node = self.root
        for key in at:
            child = _child(node, key)
            if child is None:
                break
            node = child[1]
        return node.start_mark.line, node.start_mark.column

    def key(self, at: KeyPath) -> str:
        """Return ``at`` as a user reads it: list items by their names where they have any."""
        if self.origin is None:
            return named(self.value, at)
        # The document names the items: it may hold more than its file.
        outer = named(self.origin.document.value, self.origin.at)
        return ".".join(part for part in (outer, named(self.value, at)) if part)

    def span(self, at: KeyPath) -> Span | None:
        """Return the place of ``at`` in the file: its key and value, or its nearest parent's.

        None for the file as a whole, for a document that this program wrote, and for values that
        its file does not have.
        """
        if self.origin is not None:
            if not _agree(self.value, self.origin, at):
                return None
            return self.origin.document.span((*self.origin.at, *at))
        if self.is_own or not self.source or not at:
            return None
        node, span = self.root, yaml_reader.span_of(self.root)
        for key in at:
            child = _child(node, key)
            if child is None:
                return Span(line=span.line, column=span.column)
            name, node = child
            is_one = isinstance(node, yaml.ScalarNode)
            span = yaml_reader.span_of(name or node, node if is_one or name is None else name)
        return span


def _agree(value: object, origin: Origin, at: KeyPath) -> bool:
    other: object = origin.document.value
    for key in origin.at:
        other = inner(other, key)
    for key in at:
        value, other = inner(value, key), inner(other, key)
    return value == other


def inner(value: object, key: Key) -> object:
    """Return the value of ``value``, typed or of a document, at ``key``; None without one."""
    if isinstance(key, str):
        return value.get(key) if is_mapping(value) else getattr(value, key, None)
    return value[key] if is_list(value) and key < len(value) else None


_NAME = re.compile(r"[A-Za-z_][\w.-]{0,62}\Z", re.ASCII)


def named(value: object, at: KeyPath) -> str:
    """Return the path ``at`` in ``value`` as a user reads it: ``pools[p5].efa``."""
    text = ""
    for key in at:
        if isinstance(key, int):
            text += f"[{label(value, key)}]"
        else:
            text += f".{key}" if text else key
        value = inner(value, key)
    return text


def label(items: object, number: int) -> str:
    names = [_name(item) for item in items] if is_list(items) else []
    name = names[number] if number < len(names) else None
    return name if name is not None and names.count(name) == 1 else str(number)


def _name(item: object) -> str | None:
    name = item.get("name") if is_mapping(item) else getattr(item, "name", None)
    return name if isinstance(name, str) and _NAME.match(name) else None


STDIN = Path("-")
"""The name of standard input in place of a file."""
_SOURCE_OF_STDIN = "<stdin>"


@lru_cache(maxsize=1)
def _standard_input(stream: TextIO) -> bytes:
    """Return all text of ``stream``, read once: some commands read their file twice.

    Raises:
        YamlError: The stream holds more than any file may.
    """
    data = stream.buffer.read(yaml_reader.MOST_BYTES + 1)
    yaml_reader.refuse_size(len(data), what="cluster")
    return data


def read(path: Path, *, what: str = "cluster") -> Document:
    """Read the file of a cluster, or of ``what``, at ``path``.

    Raises:
        ConfigError: There is no such file, it is not UTF-8, or it is no YAML mapping.
    """
    source = _SOURCE_OF_STDIN if path == STDIN else str(path)
    try:
        if path == STDIN:
            data = _standard_input(sys.stdin)
        else:
            data = yaml_reader.read_bytes(path, what=what)
        text = yaml_reader.decoded(data)
    except FileNotFoundError:
        raise _refusal(source, f"no such file; {_nearest(path, what)}") from None
    except IsADirectoryError:
        if path == Path():
            raise _refusal(source, f"no file is named; name a {what} file") from None
        raise _refusal(source, f"a directory; name a {what} file in it") from None
    except YamlError as error:
        raise _refusal(source, *error.problems) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refusal(source, f"cannot be read: {reason.lower()}; name a {what} file") from error
    return parse_yaml(text, source=source)


SUFFIXES = (".yaml", ".yml")
"""Ends of the names of YAML files."""


def _nearest(path: Path, what: str) -> str:
    """Return the remedy for a ``path`` without a file."""
    near: list[Path] = []
    for folder in (path.parent, path.parent / f"{what}s"):
        try:
            near += (file for file in folder.iterdir() if file.suffix in SUFFIXES)
        except OSError:
            continue
    names = {file.name: file for file in reversed(near)}
    stems = {name.stem: name for name in names.values()}
    nearest = names.get(path.name)
    if nearest is None:
        match = difflib.get_close_matches(path.stem or path.name, stems, n=1)
        nearest = stems[match[0]] if match else None
    return f"name a {what} file" if nearest is None else f"did you mean {nearest}?"


def parse_yaml(text: str, *, source: str, own: bool = False) -> Document:
    """Read the YAML ``text``; ``own`` says that this program wrote it.

    Raises:
        ConfigError: It is not one YAML mapping, or a mapping in it holds a key twice.
    """
    try:
        loader, root = yaml_reader.compose(text, own=own)
        value = _with_tuples(yaml_reader.value_of(text, loader, root))
    except YamlError as error:
        raise _refusal(source, *error.problems, code="yaml") from error
    if root is None or not is_mapping(value):
        got = "nothing" if root is None else spell(root)
        span = None if root is None else yaml_reader.span_of(root)
        text = f"not a mapping of keys, got {got}; start with `name:`"
        raise _refusal(source, Problem(text, span), code="yaml")
    return Document(source=source, value=value, root=root, is_own=own)


def plain(value: object) -> dict[str, object]:
    """Return the mapping ``value`` with lists, which YAML can write, in place of tuples."""
    assert is_mapping(value), "only a mapping has keys"
    return {str(key): _with_lists(item) for key, item in value.items()}


def dump(value: Mapping[str, object]) -> str:
    """Return ``value`` as YAML that `parse_yaml` reads.

    Raises:
        ConfigError: The value holds characters that no YAML file can hold.
    """
    try:
        return yaml_writer.dump(plain(value))
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ConfigError([f"half of a character, got {half}; write all of it"]) from None


def spell(node: yaml.Node) -> str:
    """Return ``node`` on one line, as its file spells it, shortened when long."""
    if isinstance(node, yaml.ScalarNode) and node.tag == yaml_reader.STRING:
        return shortened([repr(node.value)])
    return shortened(_flow(node))


def _flow(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode):
        text = str(node.value)
        yield text if text.isprintable() else repr(text)
    elif isinstance(node, yaml.SequenceNode):
        yield "["
        for number, item in enumerate(node.value):
            yield ", " if number else ""
            yield from _flow(item)
        yield "]"
    elif isinstance(node, yaml.MappingNode):
        yield "{"
        for number, (key, item) in enumerate(node.value):
            yield ", " if number else ""
            yield from _flow(key)
            yield ": "
            yield from _flow(item)
        yield "}"


def shortened(parts: Sequence[str] | Iterator[str]) -> str:
    text = ""
    for part in parts:
        text += part
        if len(text) > _LONGEST:
            return text[:_LONGEST] + "…"
    return text


def _child(node: yaml.Node, key: Key) -> tuple[yaml.Node | None, yaml.Node] | None:
    """Return the nodes of ``key``, None for items of a list, and of its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return (None, node.value[key]) if key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        # A merged key comes before the mapping's own, which then replaces it.
        for name, value in reversed(node.value):
            if isinstance(name, yaml.ScalarNode) and name.value == str(key):
                return name, value
    return None


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, tuple | list)


def _with_lists(value: object) -> object:
    if is_mapping(value):
        return plain(value)
    return [_with_lists(item) for item in value] if is_list(value) else value


def _with_tuples(value: object) -> object:
    if is_mapping(value):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(_with_tuples(item) for item in value) if is_list(value) else value


def _refusal(source: str, *problems: str | Problem, code: str = "file") -> ConfigError:
    return ConfigError(_diagnostic(source, problem, code) for problem in problems)


def _diagnostic(source: str, problem: str | Problem, code: str) -> Diagnostic:
    text, span = (problem, None) if isinstance(problem, str) else (problem.text, problem.span)
    wrong, _, fix = text.rpartition("; ")
    said = Diagnostic(message=wrong, file=source, span=span, fix=fix, code=code)
    return said if wrong else Diagnostic(message=text, file=source, span=span, code=code)
