"""The typed parts of a cluster file, each with its place."""

import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Generic, TypeVar

from msgspec import field
from msgspec.structs import replace

from ultrascale.config._base import Model, Section, Seen, read_in_part
from ultrascale.config._document import Key, KeyPath, is_list, is_mapping, named
from ultrascale.config._form import keys_of
from ultrascale.frozen import Frozen

T_co = TypeVar("T_co", covariant=True)

Pattern = tuple[Key | None, ...]
"""Keys that lead to a part; None stands for any item of a list or mapping."""


class Unreadable:
    """The value in place of a section with a mistake of form."""


UNREADABLE = Unreadable()


class Placed(Frozen, Generic[T_co], kw_only=False):
    """A part with its place."""

    at: KeyPath  # Keys that lead to it
    item: T_co  # The share
    above: tuple[Model, ...] = ()  # The parts that it is in, the outermost first
    root: object = None  # The file that it is in

    @property
    def path(self) -> str:
        """The place, as a user reads it: ``pools[p5]``."""
        return named(self.root, self.at)


class Readable(Frozen, Generic[T_co], kw_only=False):
    """The parts of one type that have no mistake of form, in the order of the file."""

    placed: tuple[Placed[T_co], ...]

    def __iter__(self) -> Iterator[T_co]:
        return (part.item for part in self.placed)

    def __len__(self) -> int:
        return len(self.placed)


class Every(Readable[T_co]):
    """All parts of one type: a rule that takes them waits until every one can be read."""


class Names(frozenset[str], Generic[T_co]):
    """The names of all parts of one type, readable or not."""


class Parts(Frozen, kw_only=False):
    """Every part of a cluster file that could be read."""

    placed: tuple[Placed[Model], ...]  # Parts, each before the parts within it
    places: "Mapping[type[Model], tuple[Pattern, ...]]"  # Places that a type of part may have
    # The file; None where a value has no file behind it.
    document: Mapping[str, object] | None = None
    broken: Collection[KeyPath] = ()  # Places of mistakes of form
    # Parts with mistakes of form, each without the keys that have them.
    partial: tuple[Placed[Model], ...] = ()
    around: tuple[Section, ...] = ()  # Sections that rules take and do not judge
    _by_kind: dict[type[Model], list[Placed[Model]]] = field(
        default_factory=dict[type[Model], list[Placed[Model]]]
    )

    def readable(self, kind: type[Model]) -> tuple[Placed[Model], ...]:
        if not self._by_kind:
            # Every rule asks, and files have many parts: one pass serves all rules.
            for part in self.placed:
                for base in _kinds_of(type(part.item)):
                    self._by_kind.setdefault(base, []).append(part)
        return tuple(self._by_kind.get(kind, ()))

    def to_judge(self, kind: type[Model]) -> tuple[Placed[Model], ...]:
        """Return the parts of a type for rules to judge, partly readable ones too."""
        if not self.partial:
            return self.readable(kind)
        return (
            *self.readable(kind),
            *(part for part in self.partial if isinstance(part.item, kind)),
        )

    def section(self, kind: type[Section]) -> Section | Unreadable | None:
        for part in self.to_judge(kind):
            if isinstance(part.item, kind):
                return part.item
        if self.document is None:
            return next((section for section in self.around if isinstance(section, kind)), None)
        value: object = self.document
        if not (places := self.places.get(kind)):
            return None  # keys of a part that is not there
        (place,) = places
        for key in place:
            if value is None or (is_mapping(value) and key not in value):
                return None
            if not is_mapping(value):
                return UNREADABLE
            value = value[str(key)]
        return None if value is None else UNREADABLE

    def are_complete(self, kind: type[Model]) -> bool:
        return not any(
            _meet(pattern, place) for pattern in self.places.get(kind, ()) for place in self.broken
        )

    def names(self, kind: type[Model]) -> frozenset[str]:
        names = {str(getattr(part.item, "name", part.at[-1])) for part in self.readable(kind)}
        if self.document is not None and not self.are_complete(kind):
            for *place, _ in self.places[kind]:
                names |= set(_names(self.document, place))
        return frozenset(names)


def parts_of(model: Model) -> Parts:
    return Parts(tuple(_within(model, (), (), model)), places_of(type(model)))


def parts_seen(
    whole: type[Model],
    document: Mapping[str, object],
    seen: Seen,
    broken: Collection[KeyPath],
    *,
    outer: Model | None,
) -> Parts:
    """Return the parts of a file that could be read in part.

    Args:
        whole: Type of the file.
        document: The file.
        seen: The mappings that pydantic has read.
        broken: Places of mistakes of form.
        outer: The file's keys outside all sections; None where they cannot be read.
    """
    first = () if outer is None else (Placed[Model]((), outer, root=document),)
    read = (*first, *_readable_parts(document, (), seen, document))
    partial = tuple(
        part
        for part in _partly_readable_parts(document, (), seen, broken, document)
        # The keys at the top are a part of their own, where they can be read.
        if part.at or outer is None or type(part.item) is whole
    )
    return Parts(read, places_of(whole), document, broken, partial)


def parts_beside(
    parts: Mapping[KeyPath, Parts], root: Mapping[str, object], around: tuple[Section, ...]
) -> Parts:
    """Return the parts of several values, each at its own place, as one set of parts.

    Args:
        parts: Parts of each value, by its place.
        root: The values at their places, which name the items in paths.
        around: Sections that rules take and do not judge.
    """
    places: dict[type[Model], tuple[Pattern, ...]] = {}
    for at, own in parts.items():
        for kind, patterns in own.places.items():
            places[kind] = (*places.get(kind, ()), *((*at, *pattern) for pattern in patterns))
    return Parts(
        tuple(_placed_below(part, at, root) for at, own in parts.items() for part in own.placed),
        places,
        broken=[(*at, *place) for at, own in parts.items() for place in own.broken],
        partial=tuple(
            _placed_below(part, at, root) for at, own in parts.items() for part in own.partial
        ),
        around=around,
    )


def _placed_below(placed: Placed[Model], at: KeyPath, root: object) -> Placed[Model]:
    return replace(placed, at=(*at, *placed.at), root=root)


@cache
def places_of(whole: type[Model]) -> Mapping[type[Model], tuple[Pattern, ...]]:
    places: dict[type[Model], dict[Pattern, None]] = {}
    for kind, place in ((whole, ()), *_places(whole, ())):
        for base in kind.__mro__:
            if issubclass(base, Model):
                places.setdefault(base, {})[place] = None
    return {kind: tuple(places_) for kind, places_ in places.items()}


def _places(kind: type[Model], at: Pattern) -> Iterator[tuple[type[Model], Pattern]]:
    for key, info in zip(keys_of(kind), kind.model_fields.values(), strict=True):
        for inner, is_item in types_in(info.annotation):
            place = (*at, key, None) if is_item else (*at, key)
            yield inner, place
            yield from _places(inner, place)


def types_in(annotation: object, *, is_item: bool = False) -> Iterator[tuple[type[Model], bool]]:
    """Yield the types of parts in an annotation, and whether they are items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation, is_item
    origin = typing.get_origin(annotation)
    for argument in typing.get_args(annotation):
        yield from types_in(argument, is_item=is_item or origin in (tuple, Mapping))


@cache
def _kinds_of(kind: type[Model]) -> tuple[type[Model], ...]:
    return tuple(base for base in kind.__mro__ if issubclass(base, Model))


@cache
def _fields_with_parts(kind: type[Model]) -> tuple[tuple[Key, str], ...]:
    fields = zip(keys_of(kind), kind.model_fields.items(), strict=True)
    return tuple((key, name) for key, (name, info) in fields if any(types_in(info.annotation)))


def _within(
    value: object, at: KeyPath, above: tuple[Model, ...], root: object
) -> Iterator[Placed[Model]]:
    if isinstance(value, Model):
        yield Placed(at, value, above, root)
        for key, name in _fields_with_parts(type(value)):
            yield from _within(getattr(value, name), (*at, key), (*above, value), root)
    else:
        yield from _items(value, at, lambda inner, place: _within(inner, place, above, root))


def _readable_parts(
    value: object, at: KeyPath, seen: Seen, root: object
) -> Iterator[Placed[Model]]:
    model = seen.models.get(id(value))
    if model is not None:
        yield from _within(model, at, (), root)
        return
    kind = seen.kinds.get(id(value))
    if kind is not None and is_mapping(value):
        for key, info in zip(keys_of(kind), kind.model_fields.values(), strict=True):
            if key not in value and info.default_factory in places_of(kind):
                # A section that the file leaves out is judged as a stated one.
                yield from _within(_default_section(info.default_factory), (*at, key), (), root)
    yield from _items(value, at, lambda inner, place: _readable_parts(inner, place, seen, root))


def _partly_readable_parts(
    value: object, at: KeyPath, seen: Seen, broken: Collection[KeyPath], root: object
) -> Iterator[Placed[Model]]:
    """Yield the parts with mistakes of form, the outermost first."""
    if id(value) in seen.models:
        return
    kind = seen.kinds.get(id(value))
    if kind is not None and is_mapping(value):
        keys = {str(place[len(at)]) for place in broken if place[: len(at)] == at != place}
        yield Placed(at, read_in_part(kind, value, keys), root=root)
    yield from _items(
        value, at, lambda inner, place: _partly_readable_parts(inner, place, seen, broken, root)
    )


def _default_section(factory: object) -> object:
    return factory() if isinstance(factory, type) else None


def _items(
    value: object,
    at: KeyPath,
    parts_of_item: Callable[[object, KeyPath], Iterator[Placed[Model]]],
) -> Iterator[Placed[Model]]:
    if is_mapping(value):
        for key, inner in value.items():
            yield from parts_of_item(inner, (*at, str(key)))
    elif is_list(value):
        for number, inner in enumerate(value):
            yield from parts_of_item(inner, (*at, number))


def _names(document: Mapping[str, object], place: Collection[Key | None]) -> Iterator[str]:
    values: list[object] = [document]
    for key in place:
        values = [value[str(key)] for value in values if is_mapping(value) and key in value]
    for items in values:
        if is_mapping(items):
            yield from items
        elif is_list(items):
            yield from (str(item.get("name")) for item in items if is_mapping(item))


def _meet(pattern: Pattern, place: KeyPath) -> bool:
    """Return whether a mistake at ``place`` lies on the way to a part, or within it."""
    return all(key in (None, part) for key, part in zip(pattern, place, strict=False))
