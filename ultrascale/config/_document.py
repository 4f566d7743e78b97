"""YAML files, with the place and the spelling of each value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import yaml

from ultrascale import yaml_reader, yaml_writer
from ultrascale.errors import ConfigError
from ultrascale.yaml_reader import YamlError

Key = str | int
KeyPath = tuple[Key, ...]

_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Document:
    """A cluster file as read.

    Attributes:
        source: What error lines call it.
        value: Its mapping; lists have become tuples.
        root: The YAML node that ``value`` was made from.
    """

    source: str
    value: Mapping[str, object]
    root: yaml.Node

    def got(self, at: KeyPath) -> str | None:
        """Return the value at ``at`` in the file's own spelling, None if the file has none."""
        node = self.root
        for key in at:
            child = _child(node, key)
            if child is None:
                return None
            node = child
        return spell(node)

    def place(self, at: KeyPath) -> tuple[int, int]:
        """Return line and column of ``at``, or of what is nearest above it."""
        node = self.root
        for key in at:
            child = _child(node, key)
            if child is None:
                break
            node = child
        return node.start_mark.line, node.start_mark.column


def read(path: Path, *, what: str = "cluster") -> Document:
    """Read the file of a cluster, or of ``what``, at ``path``.

    Raises:
        ConfigError: There is no such file, it is not UTF-8, or it is not a YAML mapping.
    """
    source = str(path)
    try:
        text = yaml_reader.decoded(yaml_reader.read_bytes(path, what=what))
    except FileNotFoundError:
        raise _refusal(source, f"no such file; name a {what} file") from None
    except IsADirectoryError:
        if path == Path():
            raise _refusal(source, f"no file is named; name a {what} file") from None
        raise _refusal(source, f"a directory; name a {what} file in it") from None
    except YamlError as error:
        raise _refusal(source, *error.lines) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refusal(source, f"cannot be read: {reason.lower()}; name a {what} file") from error
    return parse_yaml(text, source=source)


def parse_yaml(text: str, *, source: str, own: bool = False) -> Document:
    """Read the YAML ``text``; ``own`` says that this program wrote it.

    Raises:
        ConfigError: It is not one YAML mapping, or a mapping in it holds a key twice.
    """
    try:
        loader, root = yaml_reader.compose(text, own=own)
        value = _frozen(yaml_reader.value_of(text, loader, root))
    except YamlError as error:
        raise _refusal(source, *error.lines) from error
    if root is None or not is_mapping(value):
        got = "nothing" if root is None else spell(root)
        raise _refusal(source, f"not a mapping of keys, got {got}; start with `name:`")
    return Document(source=source, value=value, root=root)


def plain(value: object) -> dict[str, object]:
    """Return the mapping ``value`` with lists where documents have tuples: YAML has no other."""
    assert is_mapping(value), "only a mapping has keys"
    return {str(key): _listed(item) for key, item in value.items()}


def dump(value: Mapping[str, object]) -> str:
    """Return ``value`` as YAML that `parse_yaml` reads.

    Raises:
        ConfigError: It holds what no text can be.
    """
    try:
        return yaml_writer.dump(plain(value))
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ConfigError([f"half of a character, got {half}; write all of it"]) from None


def spell(node: yaml.Node) -> str:
    """Return ``node`` on one line, as its file spells it, shortened when long."""
    if isinstance(node, yaml.ScalarNode) and node.tag == yaml_reader.STRING:
        return _shortened([repr(node.value)])
    return _shortened(_flow(node))


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


def _shortened(parts: Sequence[str] | Iterator[str]) -> str:
    text = ""
    for part in parts:
        text += part
        if len(text) > _LONGEST:
            return text[:_LONGEST] + "…"
    return text


def _child(node: yaml.Node, key: Key) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return node.value[key] if key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        # A merged key comes before the mapping's own, which then replaces it.
        for name, value in reversed(node.value):
            if isinstance(name, yaml.ScalarNode) and name.value == str(key):
                return value
    return None


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether ``value`` is a mapping; the keys of a document are text."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether ``value`` is a list, of a document or of YAML."""
    return isinstance(value, tuple | list)


def _listed(value: object) -> object:
    if is_mapping(value):
        return plain(value)
    return [_listed(item) for item in value] if is_list(value) else value


def _frozen(value: object) -> object:
    if is_mapping(value):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if is_list(value) else value


def _refusal(source: str, *lines: str) -> ConfigError:
    return ConfigError(f"{source}: {line}" for line in lines)
