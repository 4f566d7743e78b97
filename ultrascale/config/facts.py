"""`facts`: answers of the account that count in place of the catalog's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Annotated, Any

import msgspec

from ultrascale.catalog import eks
from ultrascale.catalog.addons import known_addons
from ultrascale.catalog.recorded import (
    Allocatable,
    Card,
    Hardware,
    RecordedFact,
    RecordedNodes,
    VersionFacts,
    card_cells,
)
from ultrascale.config._base import Model
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._parts import Every, Placed, Readable
from ultrascale.config._rules import RECORD_FACTS, rule
from ultrascale.config._values import Day, matching, one_of
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.pools import Pool

_KINDS: Mapping[str, object] = {
    "tier": eks.TierLimits,
    "network-cards": tuple[Card, ...],
    "hardware": Hardware,
    "end-of-support": date,
    "addon-build": Annotated[str, msgspec.Meta(pattern=r"^v\d+\.\d+\.\d+-eksbuild\.\d+$")],
    "allocatable": Allocatable,
    "start-time": Annotated[int, msgspec.Meta(ge=1, le=86_400)],
}


class Fact(Model):
    """An answer of the account, or a value seen on nodes, that counts for the catalog's."""

    fact: Annotated[str, one_of(_KINDS)]
    """Kind of the fact."""

    of: str
    """Its subject: a tier, instance type, Kubernetes minor, add-on or pool of the file."""

    kubernetes: Annotated[str, matching(r"1\.\d+", "not a minor", 'write it as "1.35"')] | None = (
        None
    )
    """Kubernetes minor for which a tier or an add-on has the value; another minor's do not count.

    Default: none.
    """

    value: Any  # Any: its form follows from the kind
    """Its value, in the form of its kind."""

    seen: Day
    """Day of the answer. Facts age, each kind at its pace."""

    # Any: as above.
    @property
    def known(self) -> Any:  # noqa: ANN401
        """The value as plan and catalog have it.

        Raises:
            ValueError: The value does not have the form of its kind.
        """
        try:
            # Any: as above.
            value: Any = msgspec.convert(self.value, _KINDS.get(self.fact))
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error
        if self.fact == "network-cards":
            cards: Mapping[int, Card] = {card.card: card for card in value}
            if 0 not in cards or "interface" not in cards[0].types or len(cards) < len(value):
                raise ValueError("no card 0 with an interface, or a card twice")
            return card_cells(value)
        if isinstance(value, Hardware):
            numbers = msgspec.structs.asdict(value).items()
            cells = {column: str(number) for column, number in numbers if number is not None}
            if not cells:
                raise ValueError("states nothing")
            return cells
        return value


def carry(facts: Sequence[Fact], pools: Iterable[Pool], kubernetes: Kubernetes) -> None:
    """Give pools and control plane the recorded facts, by which they answer from then on."""
    own: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}  # Any: as above
    seen: dict[str, date] = {}
    for fact in facts:
        with suppress(ValueError, KeyError):  # a rule names it
            if fact.kubernetes in (None, kubernetes.version):
                own[fact.fact][fact.of] = fact.known
                seen |= {fact.of: fact.seen} if fact.fact == "tier" else {}
    cards, numbers = own["network-cards"], own["hardware"]
    cells = {of: {**cards.get(of, {}), **numbers.get(of, {})} for of in {**cards, **numbers}}
    for pool in pools:
        pool.count_with(
            RecordedNodes(
                cells=cells,
                allocatable=own["allocatable"],
                start_seconds=own["start-time"].get(pool.name),
            )
        )
    catalog = VersionFacts()
    kubernetes.count_with(
        VersionFacts(
            tiers={**catalog.tiers, **own["tier"]},
            tiers_seen=seen,
            support_ends={**catalog.support_ends, **own["end-of-support"]},
            addons=own["addon-build"],
        )
    )


def recorded_facts(facts: Iterable[Fact]) -> tuple[RecordedFact, ...]:
    """Return what each fact is about, and how old it is."""
    return tuple(
        RecordedFact(
            kind=fact.fact,
            of=fact.of,
            seen=fact.seen,
            ends=fact.known if fact.fact == "end-of-support" else None,
        )
        for fact in facts
    )


@rule
def facts_have_the_form_of_their_kind(fact: Fact) -> Mistakes:
    if fact.fact not in _KINDS:
        yield refuse("fact", "no kind of fact", near(fact.fact, _KINDS))
        return
    try:
        _ = fact.known
    except ValueError as error:
        yield refuse("value", f"{error}", f"record it anew: {RECORD_FACTS}")
    if (fact.kubernetes is None) == (fact.fact in ("tier", "addon-build")):
        wrong = "a key that tier and addon-build need and others lack"
        yield refuse("kubernetes", wrong, "add it there, leave it out elsewhere")


@rule
def facts_are_about_the_file(fact: Fact, pools: Every[Pool]) -> Mistakes:
    users: dict[str, set[str]] = {}
    for name, provisioner in ((n, pool.provisioner) for pool in pools for n in pool.instance_types):
        users.setdefault(name, set()).add(provisioner)
    types = [*users]
    known: Mapping[str, Collection[str]] = {
        "network-cards": types,
        "hardware": types,
        "start-time": [pool.name for pool in pools],
        # Nodes of unlike provisioners offer different amounts.
        "allocatable": [name for name in types if len(users[name]) == 1],
        "tier": eks.TIER_LIMITS,
        "addon-build": known_addons(),
    }
    if fact.of not in known.get(fact.fact, (fact.of,)):
        todo = f"take the fact out, or write one of {', '.join(dict.fromkeys(known[fact.fact]))}"
        yield refuse("of", "nothing of this file that such a fact is about", todo)


@rule
def facts_are_stated_once(facts: Readable[Fact]) -> Mistakes:
    seen: dict[object, Placed[Fact]] = {}
    for placed in facts.placed:
        key = placed.item.fact, placed.item.of, placed.item.kubernetes
        if key in seen:
            yield Mistake(placed.at, f"{seen[key].path} records the same", "keep the newer", got="")
        seen.setdefault(key, placed)


@rule(severity="warning")
def facts_of_another_minor_do_not_count(fact: Fact, kubernetes: Kubernetes) -> Mistakes:
    if fact.kubernetes not in (None, kubernetes.version):
        text = f"kubernetes.version is {kubernetes.version}, so this fact does not count"
        yield note("kubernetes", f"{text}; take it out, or record anew: {RECORD_FACTS}")


def future_facts(facts: Iterable[Fact], today: date) -> Mistakes:
    """Yield the facts of days after ``today``; synthesis, without a clock, does not ask."""
    for number, fact in enumerate(facts):
        if fact.seen > today:
            at = ("facts", number, "seen")
            yield Mistake(at, "a day to come", "write the day of the answer", code="future_facts")
