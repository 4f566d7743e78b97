"""The registry of rules: functions of typed parts of a cluster file.

A rule judges the part that its first parameter takes, and yields its mistakes with places within
that part. Further parameters take what else it needs. The registry finds each argument by its
annotation, which it checks when the rule is registered:

``Pool``
    As first parameter: each pool in turn. Of one with a mistake of form the rule judges what it
    can: it ends where it reads a key with such a mistake. Later: the pool that the first part is
    in.
``Network``
    The section, which a file has once, or as much of it as can be read; a rule is skipped where
    the file leaves it out. ``Network | None`` is None there.
``Readable[Pool]``
    The pools that can be read. As first parameter, the places of mistakes are those of the file.
``Every[Pool]``
    All pools; the rule waits until each can be read.
``Names[Pool]``
    The names of all pools, readable or not, for references.
"""

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from ultrascale.config._base import Model, Section, UnreadableKeyError
from ultrascale.config._errors import Mistake, Mistakes
from ultrascale.config._parts import Every, Names, Parts, Placed, Readable, Unreadable, types_in
from ultrascale.errors import CatalogError, UnknownFactError
from ultrascale.frozen import Frozen

RuleFunction = Callable[..., Mistakes]
F = TypeVar("F", bound=RuleFunction)
Kinds = tuple[type[Model], ...]
# What a rule takes for a parameter in a place of a file; it is skipped where that is `_MISSING`.
Finder = Callable[[Parts, Placed[object]], object]


# The facts of an instance type, in the user's words.
_FACTS: Mapping[str, str] = {
    "architecture": "which architecture it has",
    "capacity_block": "whether Capacity Blocks are sold for it",
    "efa_cards": "which of its network cards take EFA interfaces",
    "enis_card0": "how many interfaces its network card 0 takes",
    "ipv4_per_eni": "how many addresses its interfaces hold",
    "nvme_total_gb": "how much NVMe storage it has",
    "placement_group": "whether it may be in a cluster placement group",
    "prefix_delegation": "whether its interfaces take prefixes",
    "vcpus": "how many vCPUs it has",
    "accelerator.count": "how many whole accelerators it has",
    "accelerator.kind": "which accelerators it has",
}
# What a rule judges that takes all parts of a type.
_FILE = Placed((), None)
_TYPES = "instance_types"


class _Missing:
    """Stands for what a rule waits for."""


_MISSING = _Missing()


class _Rule(Frozen, kw_only=False):
    function: RuleFunction
    kinds: Kinds | None
    finders: tuple[Finder, ...]

    def mistakes(self, parts: Parts) -> Iterator[Mistake]:
        for judged in self._judged(parts):
            arguments = [find(parts, judged) for find in self.finders]
            if not any(argument is _MISSING for argument in arguments):
                yield from self._applied(arguments, judged)

    def _judged(self, parts: Parts) -> Iterable[Placed[object]]:
        if self.kinds is None:
            return (_FILE,)
        return (each for kind in self.kinds for each in parts.judged(kind))

    def _applied(self, arguments: list[object], judged: Placed[object]) -> Iterator[Mistake]:
        try:
            for mistake in self.function(*arguments):
                rests_on = mistake.rests_on and (*judged.at, *mistake.rests_on)
                yield replace(mistake, at=(*judged.at, *mistake.at), rests_on=rests_on)
        except UnreadableKeyError:
            return  # the mistake of form is told
        except CatalogError as error:
            # The catalog does not know what the rule has to judge: a refusal, never a guess.
            key = (_TYPES,) if hasattr(judged.item, _TYPES) else ()
            at = (*judged.at, *key)
            yield Mistake(at, _unknown_fact(error), "choose another instance type", got="")


class Rules:
    """Rules that judge the parts of a cluster file.

    Args:
        functions: The rules.

    Raises:
        TypeError: A rule takes what the registry does not know.
    """

    def __init__(self, *functions: RuleFunction) -> None:
        self._rules = [_checked(function) for function in functions]

    def __call__(self, function: F) -> F:
        """Register ``function``, as its decorator.

        Raises:
            TypeError: It takes what the registry does not know.
        """
        self._rules.append(_checked(function))
        return function

    def judge(self, parts: Parts) -> Iterator[Mistake]:
        """Yield what the rules find wrong with ``parts``."""
        for rule in self._rules:
            yield from rule.mistakes(parts)


def _checked(function: RuleFunction) -> _Rule:
    hints = typing.get_type_hints(function)
    hints.pop("return", None)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if not names or hints.keys() != {*names}:
        raise TypeError(f"rule {function.__name__} leaves a parameter without a type")
    first, *others = names
    kinds = None if _collection(hints[first]) else _kinds(hints[first])
    if kinds == ():
        raise _unknown(function, first, hints[first])
    finders: list[Finder] = [_finder(function, first, hints[first]) if kinds is None else _item]
    finders += [_finder(function, name, hints[name], within=kinds or ()) for name in others]
    return _Rule(function, kinds, tuple(finders))


def _finder(function: RuleFunction, name: str, hint: object, *, within: Kinds = ()) -> Finder:
    collection = _collection(hint)
    if collection is not None:
        return collection
    optional = type(None) in typing.get_args(hint)
    kinds = _kinds(hint)
    if len(kinds) == 1 and issubclass(kinds[0], Section):
        return _section(kinds[0], optional=optional)
    if kinds and within and not optional and all(_holds(kind, within) for kind in kinds):
        return lambda _, judged: _above(kinds, judged)
    raise _unknown(function, name, hint)


def _collection(hint: object) -> Finder | None:
    """Return what finds all parts of a type, or their names; None for another annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kinds = _kinds(arguments[0]) if len(arguments) == 1 else ()
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if origin is Readable:
        return lambda parts, _: Readable(parts.of(kind))
    if origin is Every:
        return lambda parts, _: Every(parts.of(kind)) if parts.are_complete(kind) else _MISSING
    if origin is Names:
        return lambda parts, _: parts.names(kind)
    return None


def _section(kind: type[Section], *, optional: bool) -> Finder:
    def find(parts: Parts, _: Placed[object]) -> object:
        section = parts.section(kind)
        missing = isinstance(section, Unreadable) or (section is None and not optional)
        return _MISSING if missing else section

    return find


def _item(_: Parts, judged: Placed[object]) -> object:
    return judged.item


def _above(kinds: Kinds, judged: Placed[object]) -> object:
    found = (part for part in reversed(judged.above) if isinstance(part, kinds))
    return next(found, _MISSING)


def _kinds(hint: object) -> Kinds:
    """Return the types of parts that an annotation names; none where it names anything else."""
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    kinds = [each for each in members if isinstance(each, type) and issubclass(each, Model)]
    others = [each for each in members if each not in kinds and each is not type(None)]
    return () if others else tuple(kinds)


def _is_union(hint: object) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _holds(outer: type[Model], inner: Kinds) -> bool:
    """Return whether a part of type ``outer`` may have parts of the types ``inner`` in it."""
    for info in outer.model_fields.values():
        for kind, _ in types_in(info.annotation):
            if issubclass(kind, inner) or _holds(kind, inner):
                return True
    return False


def _unknown(function: RuleFunction, name: str, hint: object) -> TypeError:
    text = f"rule {function.__name__} takes {name}: {hint}, which no part of a cluster file is"
    return TypeError(text)


def _unknown_fact(error: CatalogError) -> str:
    """Return the fact that ``error`` misses, or its own text where it is about something else."""
    if isinstance(error, UnknownFactError) and error.fact in _FACTS:
        return f"no source says of {error.entry} {_FACTS[error.fact]}"
    return str(error)


rule = Rules()
"""The rules of the cluster file in itself; `plan` has its own."""
