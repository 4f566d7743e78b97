"""YAML files, with the place and the spelling of each value."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import yaml
from yaml.scanner import ScannerError

from ultrascale.errors import ConfigError

Key = str | int
KeyPath = tuple[Key, ...]

_STRING = "tag:yaml.org,2002:str"
_NUMBER = "tag:yaml.org,2002:int"
_MERGE = "tag:yaml.org,2002:merge"
_LONGEST = 100
# Of a longer text 30,000 levels overflow the stack of libyaml.
_LONGEST_FOR_LIBYAML = 32_768
# Tabs between tokens, question marks in flow collections, comments after the indicator of a block
# scalar, and line breaks that YAML 1.2 does not know.
_READ_DIFFERENTLY = re.compile("[\t?\x85\u2028\u2029]|[|>]#")


class _UnreadableValueError(yaml.constructor.ConstructorError):
    """A value that YAML cannot read, with what to do about it."""


class _Construction(yaml.constructor.SafeConstructor):
    """Constructor of values from YAML nodes that names a line in each error."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError) as error:
            text = f"not a value that YAML knows: {error}; mend it, or put it in quotes"
            if isinstance(node, yaml.ScalarNode) and node.tag == _NUMBER:
                digits = sum(character.isdigit() for character in node.value)
                text = f"a number of {digits} digits; write a smaller one"
            raise _UnreadableValueError(None, None, text, node.start_mark) from error


class _Loader(_Construction, yaml.SafeLoader):
    """Reads what people wrote: its errors say what is wrong in words that they know."""


class _FastLoader(_Construction, yaml.CSafeLoader):
    """Reads by libyaml, several times as fast."""


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
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise _refusal(source, f"no such file; name a {what} file") from None
    except IsADirectoryError:
        if path == Path():
            raise _refusal(source, f"no file is named; name a {what} file") from None
        raise _refusal(source, f"a directory; name a {what} file in it") from None
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise _refusal(source, f"not UTF-8 text, got {got}; save the file as UTF-8") from None
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
        loader, root = _composed(text, own=own)
        mistakes = [] if root is None else [f"{source}: {line}" for line in _traps(root, ())]
        if mistakes:
            raise ConfigError(mistakes)
        value = None if root is None else _frozen(loader.construct_document(root))
    except yaml.YAMLError as error:
        raise _refusal(source, _yaml_mistake(error, text)) from error
    except RecursionError:
        raise _refusal(source, "nested too deeply; write a cluster file") from None
    if root is None or not is_mapping(value):
        got = "nothing" if root is None else spell(root)
        raise _refusal(source, f"not a mapping of keys, got {got}; start with `name:`")
    return Document(source=source, value=value, root=root)


def _composed(text: str, *, own: bool) -> tuple[_Loader | _FastLoader, yaml.Node | None]:
    """Return the root of the YAML ``text``, None of an empty one, and the loader that makes values.

    PyYAML reads what libyaml refuses, for its errors are the known ones, and texts that the two
    read differently.
    """
    if own or (len(text) <= _LONGEST_FOR_LIBYAML and not _READ_DIFFERENTLY.search(text)):
        loader = _FastLoader(text)
        try:
            return loader, loader.get_single_node()
        except yaml.YAMLError:
            if own:
                raise
    loader = _Loader(text)
    return loader, loader.get_single_node()


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
        return yaml.dump(plain(value), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ConfigError([f"half of a character, got {half}; write all of it"]) from None


def spell(node: yaml.Node) -> str:
    """Return ``node`` on one line, as its file spells it, shortened when long."""
    if isinstance(node, yaml.ScalarNode) and node.tag == _STRING:
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


def _traps(node: yaml.Node, above: tuple[yaml.Node, ...]) -> Iterator[str]:
    """Yield what PyYAML would take in silence: a key written twice, an alias inside itself."""
    if any(node is other for other in above):
        yield f"line {node.start_mark.line + 1}: an alias refers to itself; write the value out"
        return
    within = (*above, node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _traps(item, within)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    first = seen[key.value]
                    yield f"line {line}: the key {key.value!r} stands on line {first} too; keep one"
                seen.setdefault(key.value, line)
                # YAML 1.1 would read a key such as `on` as true.
                key.tag = _STRING
            yield from _traps(value, within)


def _yaml_mistake(error: yaml.YAMLError, text: str) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line, problem = error.problem_mark.line + 1, error.problem or ""
        if isinstance(error, ScannerError) and _is_tab(error.problem_mark, text):
            return f"line {line}: not YAML: a tab in its indentation; use spaces"
        if isinstance(error, _UnreadableValueError):
            return f"line {line}: {problem}"
        # PyYAML names the start of what it was reading apart from where it gave up.
        context = f"{error.context}, " if error.context else ""
        todo = "look for an unclosed quote or bracket, a missing colon or a wrong indentation"
        return f"line {line}: not YAML: {context}{problem}; {todo}"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"line {line}: not YAML: a character that YAML does not allow; remove it"
    return f"not YAML: {' '.join(str(error).split())}; mend it"


def _is_tab(mark: yaml.Mark, text: str) -> bool:
    lines = text.splitlines()
    return mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"


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


def _refusal(source: str, line: str) -> ConfigError:
    return ConfigError([f"{source}: {line}"])
