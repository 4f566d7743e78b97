"""Reads a document part by part, so that a mistake in one key hides none in another."""

import types
import typing
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, TypeGuard, TypeVar

import pydantic
from pydantic.fields import FieldInfo

from ultrascale.config._base import Model
from ultrascale.config._document import KeyPath
from ultrascale.config._errors import Mistake, form_mistakes, near

T = TypeVar("T")
Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Part:
    """What could be read of one mapping of the file.

    Attributes:
        kind: The model it is to become.
        at: Keys that lead to it.
        fields: Its readable values and defaults, by field.
        given: Fields that the file states.
    """

    kind: type[Model]
    at: KeyPath
    fields: Fields
    given: frozenset[str]


def values(
    parts: Iterable[Part], kind: type[Model], field: str, of: type[T]
) -> Iterator[tuple[KeyPath, T]]:
    """Yield place and readable value of ``field`` in every part that is to become a ``kind``."""
    for part in parts:
        value = part.fields.get(field)
        if part.kind is kind and isinstance(value, of):
            yield part.at, value


def lists(
    parts: Iterable[Part], kind: type[Model], field: str
) -> Iterator[tuple[KeyPath, tuple[object, ...]]]:
    """Yield place and readable items of ``field`` in every part that is to become a ``kind``."""
    for part in parts:
        value = part.fields.get(field)
        if part.kind is kind and isinstance(value, tuple):
            yield part.at, typing.cast("tuple[object, ...]", value)


def maps(
    parts: Iterable[Part], kind: type[Model], field: str
) -> Iterator[tuple[KeyPath, Mapping[object, object]]]:
    """Yield place and readable mapping ``field`` in every part that is to become a ``kind``."""
    for part in parts:
        value = part.fields.get(field)
        if part.kind is kind and isinstance(value, Mapping):
            yield part.at, typing.cast("Mapping[object, object]", value)


class _Unreadable:
    """Stands for a value with a mistake in its form."""


_UNREADABLE = _Unreadable()


class Reader:
    """Turns a document into models.

    Args:
        laid_over: Whether the document's keys were laid over those of another, so that a key that
            is there need not be the user's.

    Attributes:
        mistakes: Mistakes of form, in the order found.
        parts: Everything readable, also of mappings that hold a mistake.
        known: Readable values of the sections, as ``section_field``; the cluster's own keys as
            ``cluster_field``.
    """

    def __init__(self, *, laid_over: bool = False) -> None:
        self._laid_over = laid_over
        self.mistakes: list[Mistake] = []
        self.parts: list[Part] = []
        self.known: dict[str, object] = {}

    def model(self, kind: type[Model], raw: object, at: KeyPath = ()) -> object:
        """Return ``raw`` as a ``kind``, or a mark that it could not be read."""
        if not isinstance(raw, Mapping):
            self.mistakes.append(Mistake(at, "not a mapping", "write it as key: value"))
            return _UNREADABLE
        document = typing.cast("Mapping[object, object]", raw)
        given = self._keys(kind, document, at)
        fields: dict[str, object] = {}
        for name, info in kind.model_fields.items():
            key = info.alias or name
            if name in given:
                value = self._value(_hints(kind)[name], document[key], (*at, key))
            elif name in kind.derived:
                value = None
            elif info.is_required():
                value = _UNREADABLE
            else:
                value = info.get_default(call_default_factory=True)
                self._default(value, (*at, key))
            if not isinstance(value, _Unreadable):
                fields[name] = value
        kind.derive(fields, self.known)
        fields = {n: v for n, v in fields.items() if v is not None or n not in kind.derived}
        self._remember(fields, at)
        self.parts.append(Part(kind, at, fields, given))
        complete = fields.keys() == kind.model_fields.keys()
        return kind.model_construct(set(given), **fields) if complete else _UNREADABLE

    def _keys(self, kind: type[Model], raw: Mapping[object, object], at: KeyPath) -> frozenset[str]:
        """Return the fields that ``raw`` states; note its unknown and its missing keys."""
        names = {info.alias or name: name for name, info in kind.model_fields.items()}
        unused = [key for key in names if key not in raw]
        missing = {
            key
            for key in unused
            if kind.model_fields[names[key]].is_required() and names[key] not in kind.derived
        }
        for key in raw:
            if key not in names:
                hint = near(str(key), list(names), () if self._laid_over else unused)
                wrong = f"unknown key {str(key)!r}"
                self.mistakes.append(Mistake((*at, str(key)), wrong, hint, got=""))
                # One slip, one line: a misspelt key is not missing as well.
                missing -= {key for key in missing if hint == f"did you mean {key}?"}
        for key in unused:
            if key in missing:
                self.mistakes.append(Mistake((*at, key), "missing", "add it", got=""))
        return frozenset(names[key] for key in names if key in raw)

    def _value(self, hint: object, raw: object, at: KeyPath) -> object:
        bare, discriminator = _unwrapped(hint)
        origin, arguments = typing.get_origin(bare), typing.get_args(bare)
        if origin is tuple and _is_model(arguments[0]) and isinstance(raw, tuple):
            items = typing.cast("tuple[object, ...]", raw)
            return self._items(arguments[0], items, at)
        if origin is Mapping and _has_models(arguments[1]) and isinstance(raw, Mapping):
            named = typing.cast("Mapping[object, object]", raw)
            return self._named(arguments[0], arguments[1], named, at)
        members = arguments if origin in (typing.Union, types.UnionType) else (bare,)
        models = [member for member in members if _is_model(member)]
        others = [member for member in members if not _is_model(member)]
        if models and raw is None and type(None) in others:
            return None
        if models and (isinstance(raw, Mapping) or others in ([], [type(None)])):
            return self._chosen(models, discriminator, typing.cast("object", raw), at)
        return self._leaf(others[0] if models else hint, raw, at)

    def _items(self, kind: type[Model], raw: tuple[object, ...], at: KeyPath) -> object:
        items = [self.model(kind, item, (*at, number)) for number, item in enumerate(raw)]
        return _UNREADABLE if _UNREADABLE in items else tuple(items)

    def _named(
        self, key_hint: object, hint: object, raw: Mapping[object, object], at: KeyPath
    ) -> object:
        named = {
            self._leaf(key_hint, key, (*at, str(key)), got=repr(key)): self._value(
                hint, item, (*at, str(key))
            )
            for key, item in raw.items()
        }
        broken = _UNREADABLE in named or _UNREADABLE in named.values()
        return _UNREADABLE if broken else named

    def _chosen(
        self, models: list[type[Model]], discriminator: str | None, raw: object, at: KeyPath
    ) -> object:
        """Read ``raw`` as the one of ``models`` that its ``discriminator`` names."""
        if discriminator is None or not isinstance(raw, Mapping):
            return self.model(models[0], raw, at)
        options = {str(model.model_fields[discriminator].default): model for model in models}
        document = typing.cast("Mapping[object, object]", raw)
        option = document.get(discriminator, next(iter(options)))
        if isinstance(option, str) and option in options:
            return self.model(options[option], document, at)
        todo = near(option, options) if isinstance(option, str) else near("", options)
        self.mistakes.append(Mistake((*at, discriminator), "unknown value", todo))
        return _UNREADABLE

    def _leaf(self, hint: object, raw: object, at: KeyPath, *, got: str | None = None) -> object:
        try:
            return _adapter(hint).validate_python(raw)
        except pydantic.ValidationError as error:
            found = form_mistakes(error, at)
            self.mistakes += found if got is None else (replace(m, got=got) for m in found)
            return _UNREADABLE

    def _default(self, value: object, at: KeyPath) -> None:
        """Let rules judge a section that the file leaves out as one that it states."""
        if isinstance(value, Model):
            fields = {name: getattr(value, name) for name in type(value).model_fields}
            for name, inner in fields.items():
                self._default(inner, (*at, name))
            self._remember(fields, at)
            self.parts.append(Part(type(value), at, fields, frozenset()))

    def _remember(self, fields: Mapping[str, object], at: KeyPath) -> None:
        if not any(isinstance(key, int) for key in at):
            section = "_".join(str(key) for key in at) or "cluster"
            self.known |= {f"{section}_{name}": value for name, value in fields.items()}


def _unwrapped(hint: object) -> tuple[object, str | None]:
    """Return ``hint`` without its annotations, and the key that tells its models apart."""
    if typing.get_origin(hint) is not Annotated:
        return hint, None
    bare, *notes = typing.get_args(hint)
    chosen = [note.discriminator for note in notes if isinstance(note, FieldInfo)]
    return bare, next((name for name in chosen if isinstance(name, str)), None)


def _is_model(hint: object) -> TypeGuard[type[Model]]:
    return isinstance(hint, type) and issubclass(hint, Model)


def _has_models(hint: object) -> bool:
    bare, _ = _unwrapped(hint)
    return any(_is_model(member) for member in (typing.get_args(bare) or (bare,)))


@cache
def _hints(kind: type[Model]) -> Mapping[str, object]:
    return typing.get_type_hints(kind, include_extras=True)


@cache
def _adapter(hint: Hashable) -> pydantic.TypeAdapter[object]:
    form = typing.cast("type[object]", hint)
    return pydantic.TypeAdapter(form, config=pydantic.ConfigDict(strict=True))
