"""The engine of rules: functions that judge a cluster file, its plan, or a job by typed parts.

A rule yields the mistakes of its first parameter, with places within that part. The rule's name is
the code of its mistakes, and its severity says whether they are errors, warnings or notes. Further
parameters take other values that it needs. The engine chooses each argument by its annotation,
which it checks when the rule is registered, and skips a rule where a value is missing:

``Pool``
    As first parameter: each pool in turn. A rule still judges a pool with a mistake of form, until
    it reads a key with such a mistake. Later: the pool that the first part is in.
``Network``
    The section, which a file has once, or as much of it as can be read; a rule is skipped where
    the file leaves it out. ``Network | None`` is None there.
``Readable[Pool]``
    The pools that can be read. As first parameter, the places of mistakes are those of the file.
``Every[Pool]``
    All pools; the rule waits until each can be read.
``Names[Pool]``
    The names of all pools, readable or not, for references.
Any other type
    A value that the caller supplies, such as a plan, or a fact that follows from such values.
    Places are those of the file, or of the job.
"""

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar, overload

from msgspec.structs import replace

from ultrascale.config._base import Model, Section, UnreadableKeyError
from ultrascale.config._document import Document
from ultrascale.config._errors import Mistake, Mistakes
from ultrascale.config._parts import Every, Names, Parts, Placed, Readable, Unreadable, types_in
from ultrascale.errors import CatalogError, Severity, UnknownFactError
from ultrascale.frozen import Frozen

RuleFunction = Callable[..., Mistakes]
F = TypeVar("F", bound=RuleFunction)
G = TypeVar("G", bound=Callable[..., object])
T = TypeVar("T")
Kinds = tuple[type[Model], ...]


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
# EC2 states them of a type, and `facts` may hold its answer.
_ANSWERED = frozenset({"efa_cards", "enis_card0", "prefix_delegation", "accelerator.count"})
RECORD_FACTS = "`ultrascale preflight FILE --record`"
"""The command that records the account's answers in a file."""
# Stands for the file where a rule judges no single part.
_FILE = Placed((), None)
_TYPES = "instance_types"


class _Missing:
    """Stands for a missing argument, for which a rule waits."""


_MISSING = _Missing()


class _Call(Frozen, kw_only=False):
    """A rule, or the provider of a fact, with the finders of its arguments."""

    function: Callable[..., object]  # The rule or provider
    # Types of the parts that it judges one by one; None where it judges all at once.
    kinds: Kinds | None
    # Finders of the arguments; the function is skipped where a finder returns `_MISSING`.
    finders: "tuple[Finder, ...]"
    # Types of the values and facts that it takes; `Parts` stands for all parts.
    takes: frozenset[object]
    after: Sequence[RuleFunction] = ()  # Rules that must have found nothing
    severity: Severity = "error"  # Severity of its mistakes

    def arguments(self, known: "Known", judged: Placed[object]) -> list[object] | None:
        arguments = [find(known, judged) for find in self.finders]
        return None if any(argument is _MISSING for argument in arguments) else arguments


class _Rule(_Call, kw_only=False):
    function: RuleFunction

    def mistakes(self, known: "Known") -> Iterator[Mistake]:
        if not known.allows(self):
            return
        for judged in self._places_to_judge(known):
            arguments = self.arguments(known, judged)
            if arguments is not None:
                yield from self._mistakes_at(arguments, judged)

    def _places_to_judge(self, known: "Known") -> Iterable[Placed[object]]:
        if self.kinds is None:
            return (_FILE,)
        return (placed for kind in self.kinds for placed in known.parts.to_judge(kind))

    def _mistakes_at(self, arguments: list[object], judged: Placed[object]) -> Iterator[Mistake]:
        code, severity = self.function.__name__, self.severity
        try:
            for mistake in self.function(*arguments):
                rests_on = mistake.rests_on and (*judged.at, *mistake.rests_on)
                at = (*judged.at, *mistake.at)
                yield replace(mistake, at=at, rests_on=rests_on, code=code, severity=severity)
        except UnreadableKeyError:
            return  # the mistake of form has its own line
        except CatalogError as error:
            if self.takes - {Parts}:
                raise
            # The catalog lacks a fact that the rule needs: the engine refuses, and never guesses.
            key = (_TYPES,) if hasattr(judged.item, _TYPES) else ()
            at = (*judged.at, *key)
            wrong, todo = _unknown_fact(error), "choose another instance type"
            if isinstance(error, UnknownFactError) and error.fact in _ANSWERED:
                todo += f", or record what EC2 says of it: {RECORD_FACTS}"
            yield Mistake(at, wrong, todo, got="", code=code, severity=severity)


class Known:
    """Values that rules take, each by its type, with the facts and mistakes that follow.

    Args:
        rules: The rules.
        facts: The provider of each fact, by the type of the fact.
        values: The values.
    """

    def __init__(
        self, rules: Iterable[_Rule], facts: Mapping[object, _Call], values: Iterable[object]
    ) -> None:
        self._rules = {rule.function: rule for rule in rules}
        self._facts = facts
        self._values: dict[object, object] = {type(value): value for value in values}
        self._found: dict[RuleFunction, tuple[Mistake, ...]] = {}

    @property
    def parts(self) -> Parts:
        parts = self._values[Parts]
        assert isinstance(parts, Parts)
        return parts

    def value(self, kind: object) -> object:
        if kind not in self._values:
            self._values[kind] = self._fact(kind)
        return self._values[kind]

    def get(self, kind: type[T]) -> T | None:
        value = self.value(kind)
        return value if isinstance(value, kind) else None

    def allows(self, call: _Call) -> bool:
        """Return whether a function has its parts, and no rule before it finds a mistake."""
        is_there = Parts not in call.takes or Parts in self._values
        return is_there and not any(self.mistakes_by(other) for other in call.after)

    def mistakes_by(self, function: RuleFunction) -> tuple[Mistake, ...]:
        if function not in self._found:
            rule = self._rules.get(function)
            self._found[function] = () if rule is None else tuple(rule.mistakes(self))
        return self._found[function]

    def mistakes(
        self, *, resting_on: type | None = None, severity: Severity = "error"
    ) -> Iterator[Mistake]:
        """Yield the mistakes that rules of a severity find.

        Args:
            resting_on: Type of a value; rules that do not need it are left out.
            severity: The severity.
        """
        for function, rule in self._rules.items():
            if rule.severity == severity and (resting_on is None or self._rests(rule, resting_on)):
                yield from self.mistakes_by(function)

    def _rests(self, call: _Call, kind: object) -> bool:
        """Return whether a function needs a value of type ``kind``, directly or through a fact."""
        providers = (self._facts[taken] for taken in call.takes if taken in self._facts)
        return kind in call.takes or any(self._rests(provider, kind) for provider in providers)

    def _fact(self, kind: object) -> object:
        provider = self._facts.get(kind)
        if provider is None or not self.allows(provider):
            return _MISSING
        arguments = provider.arguments(self, _FILE)
        fact = None if arguments is None else provider.function(*arguments)
        return _MISSING if fact is None else fact


# The argument of a function that judges a place; `_MISSING` skips the function.
Finder = Callable[[Known, Placed[object]], object]


class Rules:
    """Rules, and the facts that they take beside the caller's values.

    Args:
        functions: Rules whose mistakes are errors.
        given: Types of the caller's values, `Parts` for those of a cluster file, and of facts
            whose functions are registered later.

    Raises:
        TypeError: A rule takes a value that the engine does not know.
    """

    def __init__(self, *functions: RuleFunction, given: Iterable[object] = (Parts,)) -> None:
        self._given = frozenset(given)
        self._facts: dict[object, _Call] = {}
        self._rules: list[_Rule] = []
        for function in functions:
            self(function)

    @overload
    def __call__(self, function: F, /) -> F: ...

    @overload
    def __call__(
        self, /, *, severity: Severity = "error", after: Sequence[RuleFunction] = ()
    ) -> Callable[[F], F]: ...

    def __call__(
        self,
        function: F | None = None,
        /,
        *,
        severity: Severity = "error",
        after: Sequence[RuleFunction] = (),
    ) -> F | Callable[[F], F]:
        """Register a rule, as its decorator, with or without arguments.

        Args:
            function: The rule.
            severity: Severity of its mistakes.
            after: Rules that have to find nothing first.

        Raises:
            TypeError: It takes a value that the engine does not know.
        """

        def register(function: F) -> F:
            kinds, finders, takes = self._signature(function)
            self._rules.append(_Rule(function, kinds, finders, takes, after, severity))
            return function

        return register if function is None else register(function)

    def fact(self, *, after: Sequence[RuleFunction] = ()) -> Callable[[G], G]:
        """Return the decorator of a fact's function; the fact has the type that it returns.

        Where it returns None, the fact is missing, and rules that take it are skipped.

        Args:
            after: Rules that have to find nothing first.

        Raises:
            TypeError: The function takes a value that the engine does not know.
        """

        def register(function: G) -> G:
            kinds, finders, takes = self._signature(function)
            kind = _without_none(_hints(function)["return"])
            if kinds is not None:
                raise TypeError(f"fact {function.__name__} takes a part of a cluster file")
            self._facts[kind] = _Call(function, None, finders, takes, after)
            return function

        return register

    def order(self, *modules: types.ModuleType) -> None:
        """Set the order of rules by ``modules``, whichever was imported first.

        Mistakes at one place come in the order of their rules. Rules of other modules, which belong
        to parts, come last.
        """
        places = {module.__name__: number for number, module in enumerate(modules)}
        self._rules.sort(key=lambda rule: places.get(rule.function.__module__, len(places)))

    def known(self, *values: object) -> Known:
        return Known(self._rules, self._facts, values)

    def judge(
        self, *values: object, resting_on: type | None = None, severity: Severity = "error"
    ) -> Iterator[Mistake]:
        return self.known(*values).mistakes(resting_on=resting_on, severity=severity)

    def _signature(
        self, function: Callable[..., object]
    ) -> tuple[Kinds | None, tuple[Finder, ...], frozenset[object]]:
        """Return the types that a function judges one by one, its finders, and what it takes."""
        hints = {name: hint for name, hint in _hints(function).items() if name != "return"}
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        if not names or hints.keys() != {*names}:
            raise TypeError(f"rule {function.__name__} leaves a parameter without a type")
        first, *others = names
        at_once = self._value(hints[first]) is not None or self._collection(hints[first])
        kinds = None if at_once else self._kinds(hints[first])
        if kinds == ():
            raise _unknown(function, first, hints[first])
        finders: list[Finder] = [_item if kinds else self._finder(function, first, hints[first])]
        finders += [self._finder(function, name, hints[name], kinds or ()) for name in others]
        takes = frozenset(hint if self._is_value(hint) else Parts for hint in hints.values())
        return kinds, tuple(finders), takes

    def _finder(
        self, function: Callable[..., object], name: str, hint: object, within: Kinds = ()
    ) -> Finder:
        if (finder := self._value(hint) or self._collection(hint)) is not None:
            return finder
        optional = type(None) in typing.get_args(hint)
        kinds = self._kinds(hint)
        if len(kinds) == 1 and issubclass(kinds[0], Section):
            return _section(kinds[0], optional=optional)
        if kinds and within and not optional and all(_holds(kind, within) for kind in kinds):
            return lambda _, judged: _enclosing(kinds, judged)
        raise _unknown(function, name, hint)

    def _value(self, hint: object) -> Finder | None:
        """Return the finder of a value or a fact; None for another annotation."""
        return (lambda known, _: known.value(hint)) if self._is_value(hint) else None

    def _is_value(self, hint: object) -> bool:
        return hint in self._given or hint in self._facts

    def _kinds(self, hint: object) -> Kinds:
        """Return the types of parts that an annotation names; none where it names others."""
        return _kinds(hint) if Parts in self._given else ()

    def _collection(self, hint: object) -> Finder | None:
        """Return the finder of all parts of a type, or of their names; None for any other hint."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        kinds = self._kinds(arguments[0]) if len(arguments) == 1 else ()
        if len(kinds) != 1:
            return None
        (kind,) = kinds
        if origin is Readable:
            return lambda known, _: Readable(known.parts.readable(kind))
        if origin is Every:
            return lambda known, _: _all_readable(known.parts, kind)
        if origin is Names:
            return lambda known, _: known.parts.names(kind)
        return None


def _hints(function: Callable[..., object]) -> Mapping[str, object]:
    """Return the annotations of a function; evaluating text among them is slow."""
    hints = function.__annotations__
    is_text = any(isinstance(hint, str) for hint in hints.values())
    return typing.get_type_hints(function) if is_text else hints


def _all_readable(parts: Parts, kind: type[Model]) -> object:
    return Every(parts.readable(kind)) if parts.are_complete(kind) else _MISSING


def _section(kind: type[Section], *, optional: bool) -> Finder:
    def find(known: Known, _: Placed[object]) -> object:
        section = known.parts.section(kind)
        missing = isinstance(section, Unreadable) or (section is None and not optional)
        return _MISSING if missing else section

    return find


def _item(_: Known, judged: Placed[object]) -> object:
    return judged.item


def _enclosing(kinds: Kinds, judged: Placed[object]) -> object:
    parts = (part for part in reversed(judged.above) if isinstance(part, kinds))
    return next(parts, _MISSING)


@cache
def _kinds(hint: object) -> Kinds:
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    kinds = [member for member in members if isinstance(member, type) and issubclass(member, Model)]
    others = [member for member in members if member not in kinds and member is not type(None)]
    return () if others else tuple(kinds)


def _without_none(hint: object) -> object:
    """Return the type behind ``T | None``; any other hint as it is."""
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    return members[0] if _is_union(hint) and len(members) == 1 else hint


def _is_union(hint: object) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


@cache
def _holds(outer: type[Model], inner: Kinds) -> bool:
    for info in outer.model_fields.values():
        for kind, _ in types_in(info.annotation):
            if issubclass(kind, inner) or _holds(kind, inner):
                return True
    return False


def _unknown(function: Callable[..., object], name: str, hint: object) -> TypeError:
    text = f"rule {function.__name__} takes {name}: {hint}, which no part of a cluster file is"
    return TypeError(text)


def _unknown_fact(error: CatalogError) -> str:
    """Return the sentence on the fact that ``error`` misses; its own text for another error."""
    if isinstance(error, UnknownFactError) and error.fact in _FACTS:
        return f"for {error.entry} no source says {_FACTS[error.fact]}"
    return str(error)


rule = Rules(given=(Parts, Document))
"""The rules of the cluster file itself; `plan` has its own, and those of jobs."""
