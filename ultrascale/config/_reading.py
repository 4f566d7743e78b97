"""What could be read of a cluster file, and how rules judge it."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import cast

from ultrascale.config._base import Model
from ultrascale.config._document import Document, Key
from ultrascale.config._errors import Mistake
from ultrascale.config._facts import unknown_fact
from ultrascale.config._job_nodes import node_types_of
from ultrascale.config._reader import Part, values
from ultrascale.config.cluster import Cluster
from ultrascale.config.pools import Pool
from ultrascale.errors import CatalogError, ConfigError

# A rule takes what it judges by the parameters' names: fields of its part, then what `_offered`
# adds. It runs where all of them could be read, so one mistake never hides another.
Rule = Callable[..., Iterator[Mistake]]
Rules = Mapping[type[Model], tuple[Rule, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A cluster file as far as it could be read.

    Attributes:
        document: The file.
        cluster: The cluster that it describes; None where a mistake of form is in the way.
        parts: Everything readable, also of mappings that hold a mistake.
        known: Readable values of the sections, as ``section_field``.
        mistakes: What is wrong with the file in itself.
    """

    document: Document
    cluster: Cluster | None
    parts: tuple[Part, ...]
    known: Mapping[str, object]
    mistakes: tuple[Mistake, ...] = ()

    def judge(self, rules: Rules) -> Iterator[Mistake]:
        """Yield what ``rules`` find wrong with the readable parts."""
        offered = {**self.known, **_offered(self.parts)}
        for part in self.parts:
            own = {"given": part.given, "fields": part.fields}
            readable: dict[str, object] = {**offered, **part.fields, **own}
            for rule in _rules_for(part.kind, rules):
                needs = _parameters(rule)
                if needs <= readable.keys():
                    yield from _apply(rule, {name: readable[name] for name in needs}, part)

    def is_sound(self, *at: Key) -> bool:
        """Return whether there is no mistake at ``at`` or within."""
        return not any(mistake.at[: len(at)] == at for mistake in self.mistakes)

    def refusal(self, mistakes: Iterable[Mistake]) -> ConfigError:
        """Return the error that names each of ``mistakes`` once, in the order of the file."""
        placed = sorted(mistakes, key=lambda mistake: self.document.place(mistake.at))
        return ConfigError(dict.fromkeys(mistake.line(self.document) for mistake in placed))


def _apply(rule: Rule, arguments: Mapping[str, object], part: Part) -> Iterator[Mistake]:
    judged = frozenset((*part.at, name) for name in arguments)
    try:
        for found in rule(**arguments):
            at = (*part.at, *found.at)
            yield Mistake(at, found.wrong, found.todo, found.got, judged=judged)
    except CatalogError as error:
        # The catalog does not know what the rule has to judge: a refusal, never a guess.
        at = (*part.at, "instance_types") if part.kind is Pool else part.at
        types = cast("tuple[object, ...]", part.fields.get("instance_types", ()))
        wrong = unknown_fact(error, types)
        yield Mistake(at, wrong, "choose another instance type", got="", judged=judged)


def _offered(parts: tuple[Part, ...]) -> dict[str, object]:
    """Return what rules may ask about the file as a whole."""
    return {
        "parts": parts,
        "provisioners": frozenset(name for _, name in values(parts, Pool, "provisioner", str)),
        "node_types": frozenset(node_types_of(parts).values()),
    }


def _rules_for(kind: type[Model], rules: Rules) -> Iterator[Rule]:
    for base in kind.__mro__:
        yield from rules.get(base, ())


@cache
def _parameters(rule: Rule) -> frozenset[str]:
    return frozenset(inspect.signature(rule).parameters)
