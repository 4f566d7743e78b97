"""Every way to have the nodes of a question, legal or not."""

from collections.abc import Iterator

from ultrascale import catalog
from ultrascale.catalog import matrix
from ultrascale.catalog.provisioners import PROVISIONERS
from ultrascale.plan.advice.model import Candidate, Question

LAUNCHED: tuple[matrix.PurchaseOption, ...] = ("on-demand", "spot")
"""Options without a reservation: the pool has several types and zones, and nothing is bought ahead.
"""


def candidates(question: Question) -> Iterator[Candidate]:
    """Yield all candidates: held capacity, then each option, provisioner and shape of a pool."""
    for held in question.held:
        for provisioner in PROVISIONERS:
            yield Candidate(
                option=held.option,
                provisioner=provisioner,
                instance_types=(held.instance_type,),
                zones=(held.zone,),
                held=held,
            )
    for option in matrix.PURCHASE_OPTIONS:
        for types, zones in _shapes(question, option):
            for provisioner in PROVISIONERS:
                yield Candidate(
                    option=option, provisioner=provisioner, instance_types=types, zones=zones
                )


def is_spread(candidate: Candidate) -> bool:
    """Return whether nodes of the pool may differ in type or zone."""
    return len(candidate.instance_types) > 1 or len(candidate.zones) > 1


def _shapes(
    question: Question, option: matrix.PurchaseOption
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield types and zones of a pool: one of each, or all suitable ones.

    A reservation has one type in one zone. The offer alone names the zone: the first of the
    question stands in for it.
    """
    for name in question.instance_types:
        yield (name,), question.zones[:1]
    if option in LAUNCHED:
        for types in _alike(question.instance_types):
            if len(types) > 1 or len(question.zones) > 1:
                yield types, question.zones


def _alike(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the types that may share a pool, each group of one kind of hardware."""
    groups: dict[tuple[str | None, str], list[str]] = {}
    for name in names:
        spec = catalog.lookup(name)
        if matrix.can_be_planned(spec):
            kind = spec.accelerator.kind if spec.accelerator else None
            groups.setdefault((kind, spec.architecture), []).append(name)
    for group in groups.values():
        yield tuple(group)
