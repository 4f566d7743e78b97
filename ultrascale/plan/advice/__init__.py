"""Advice on the way to buy capacity for a workload: offline, each rejection with its reason."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec.structs import replace

from ultrascale.catalog import matrix
from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.prices import PriceList, catalog_prices
from ultrascale.frozen import Frozen
from ultrascale.plan.advice.candidates import LAUNCHED, candidates, cost_of, money_warnings
from ultrascale.plan.advice.fragment import Entry, as_file, as_fragment, falls_back, pools_of
from ultrascale.plan.advice.held import lasts, lost_time
from ultrascale.plan.advice.model import (
    Advice,
    Candidate,
    Cost,
    Held,
    Judged,
    Question,
    Reason,
    Step,
)
from ultrascale.plan.advice.notes import how_to_get, warnings_of
from ultrascale.plan.advice.order import CHAINS, judge
from ultrascale.plan.advice.reading import REQUIRED, Given, read_question
from ultrascale.plan.advice.trial import Trial, attempt
from ultrascale.plan.model import ClusterNeeds, Figure

__all__ = [
    "CHAINS",
    "REQUIRED",
    "Advice",
    "Candidate",
    "Cost",
    "Given",
    "Held",
    "Judged",
    "Question",
    "Reason",
    "Step",
    "advise",
    "pools_for",
    "read_question",
]


# Both are bought for one window: one of them is enough.
_WINDOWED = {"capacity-block", "training-plan"}


class _Link(Frozen):
    """A candidate of the chain, with its pools, planned beside those before it."""

    judged: Judged
    nodes: int
    pools: tuple[Entry, ...]
    trial: Trial
    falls_back: bool


def advise(question: Question, price_list: PriceList | None = None) -> Advice:
    """Return the way to buy capacity that fits ``question`` best, and its fallbacks.

    The choice has the least rank of all legal candidates. Candidates beyond AWS's published limits
    come after all others.

    Args:
        question: The workload.
        price_list: Prices; None takes the catalog's.
    """
    known = price_list or catalog_prices()
    judged = _sorted(judge(question, candidate) for candidate in candidates(question))
    judged, choice = _choose(question, judged)
    if choice is None:
        return Advice(question=question, choice=None, candidates=judged)
    chain, left_out = _behind(question, judged, choice)
    # Each link was planned beside those before it.
    trial = chain[-1].trial
    assert trial.needs is not None, trial.refused
    fragment, cluster_file = _texts(chain)
    steps = [_step(question, link, trial.needs, known) for link in chain]
    return Advice(
        question=question,
        choice=steps[0],
        fallback=tuple(steps[1:]),
        warnings=(*_warnings(question, judged, steps, trial), *left_out),
        quotas=trial.needs.quotas,
        fragment=fragment,
        cluster_file=cluster_file,
        candidates=judged,
    )


def pools_for(
    question: Question, shares: Sequence[tuple[PurchaseOption, int]]
) -> tuple[tuple[Reason, ...], str, str]:
    """Return the reasons against pools of given options and nodes, their fragment and their file.

    The texts are empty where there are reasons; the question's own nodes do not count.
    """
    chain: list[_Link] = []
    for option, nodes in shares:
        asked = replace(question, nodes=nodes)
        best, *_ = _sorted(
            judge(asked, item) for item in candidates(asked) if item.option == option
        )
        link = _link(asked, best, chain) if best.legal else None
        if link is None or link.trial.refused:
            return link.trial.refused if link else best.refused, "", ""
        chain.append(link)
    return (), *_texts(chain)


def _texts(chain: Sequence[_Link]) -> tuple[str, str]:
    """Return the fragment of a chain's pools, and the cluster file around them."""
    document, unbought = chain[-1].trial.document, _unbought(chain)
    assert document is not None
    pools = [pool for link in chain for pool in link.pools]
    return as_fragment(document, pools, unbought=unbought), as_file(document, unbought=unbought)


def _sorted(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    return tuple(sorted(judged, key=lambda item: (not item.legal, item.rank)))


def _choose(
    question: Question, judged: Sequence[Judged]
) -> tuple[tuple[Judged, ...], _Link | None]:
    """Return the candidates after their planning, and the best legal one."""
    weighed = {item.candidate: item for item in judged}
    beyond: list[_Link] = []
    choice: _Link | None = None
    for item in judged:
        link = _link(question, item, ()) if item.legal else None
        if link is None:
            break
        trial = link.trial
        if not trial.refused and not trial.reasons_beyond_limits:
            choice = link
            break
        if trial.refused:
            weighed[item.candidate] = replace(item, refused=trial.refused)
        else:
            weighed[item.candidate] = replace(
                item, doubts=(*item.doubts, *trial.reasons_beyond_limits)
            )
            beyond.append(link)
    return _sorted(weighed.values()), choice or next(iter(beyond), None)


def _behind(
    question: Question, judged: Sequence[Judged], choice: _Link
) -> tuple[list[_Link], list[Reason]]:
    """Return the chain that begins with ``choice``, and the reasons against other links."""
    chain = [choice]
    left_out: list[Reason] = []
    for wanted in _candidates_for_links(
        question, [item for item in judged if item.legal and _sold(item)]
    ):
        why: tuple[Reason, ...] = ()
        for item in wanted:
            if not _adds(question, chain, item.candidate):
                continue
            link = _link(question, item, chain)
            if not link.trial.refused:
                chain.append(link)
                break
            why = why or link.trial.refused
        else:
            for reason in why[:1]:
                text = f"no {wanted[0].candidate.option} pool beside the choice: {reason.text}"
                left_out.append(Reason(code="fallback", text=text))
    return chain, left_out


def _candidates_for_links(question: Question, legal: Sequence[Judged]) -> Iterator[list[Judged]]:
    """Yield the candidates for each further link: held capacity, then the workload's chain."""
    for held in question.held:
        yield [item for item in legal if item.candidate.held == held]
    for option in CHAINS[question.workload]:
        yield [item for item in legal if item.candidate.option == option and _waits(item.candidate)]


def _sold(judged: Judged) -> bool:
    """Return whether AWS lists the capacity for sale: a fallback of hope is none."""
    return all(doubt.code != "H2" for doubt in judged.doubts)


def _waits(candidate: Candidate) -> bool:
    """Return whether a pool costs nothing before it is needed; some have their nodes at once."""
    windowed = candidate.option in _WINDOWED
    return candidate.held is None and (windowed or not candidate.facts.is_fixed)


def _adds(question: Question, chain: Sequence[_Link], candidate: Candidate) -> bool:
    if candidate.held is None and candidate.option not in LAUNCHED and _served(question, chain):
        return False
    for link in chain:
        other = link.judged.candidate
        same = other.option == candidate.option and other.held == candidate.held
        bought = candidate.held is None and other.held is None
        windows = bought and {other.option, candidate.option} <= _WINDOWED
        served = link.falls_back and candidate.option == "on-demand"
        if same or windows or served:
            return False
    return True


def _served(question: Question, chain: Sequence[_Link]) -> bool:
    held = [(link.nodes, link.judged.candidate.held) for link in chain]
    lasting = [
        nodes for nodes, capacity in held if capacity is not None and lasts(question, capacity)
    ]
    return sum(lasting) >= question.nodes


def _link(question: Question, judged: Judged, chain: Sequence[_Link]) -> _Link:
    """Return the next link: held capacity supplies at most its nodes, other capacity the rest."""
    candidate = judged.candidate
    there = sum(link.nodes for link in chain if link.judged.candidate.held is not None)
    rest = question.nodes - there if there < question.nodes else question.nodes
    nodes = min(rest, candidate.held.count) if candidate.held is not None else rest
    names = [str(pool["name"]) for link in chain for pool in link.pools]
    stem = f"{question.workload}-{candidate.option}"
    taken = sum(name == stem or name.startswith(f"{stem}-") for name in names)
    pools = pools_of(question, candidate, nodes=nodes, taken=taken, first=not chain)
    return _Link(
        judged=judged,
        nodes=nodes,
        pools=pools,
        trial=attempt(question, [*(pool for link in chain for pool in link.pools), *pools]),
        falls_back=not chain and falls_back(question, candidate),
    )


def _step(question: Question, link: _Link, needs: ClusterNeeds, price_list: PriceList) -> Step:
    candidate = link.judged.candidate
    names = tuple(str(pool["name"]) for pool in link.pools)
    hours = [window.figures["usable_hours"] for window in needs.calendar if window.pool in names]
    usable = min(hours, key=lambda hour: hour.value or 0, default=None)
    return Step(
        judged=link.judged,
        pools=names,
        nodes=link.nodes,
        usable_hours=usable and _hours_left(question, candidate.held, usable),
        cost=cost_of(question, candidate, link.nodes, price_list),
        get=tuple(how_to_get(question, link.judged, link.nodes)),
    )


def _hours_left(question: Question, held: Held | None, usable: Figure) -> Figure:
    over = lost_time(question, held) / timedelta(hours=1) if held is not None else 0
    if not over or usable.value is None:
        return usable
    formula = f"{usable.formula}; {over:,.1f} hours of it are over when the work starts"
    return replace(usable, value=usable.value - over, formula=formula)


def _unused(
    question: Question, judged: Sequence[Judged], steps: Sequence[Step]
) -> Iterator[Reason]:
    """Yield the reasons against held capacity that is no part of the answer."""
    used = [step.judged.candidate.held for step in steps]
    for held in question.held:
        if held in used:
            continue
        of_it = [item for item in judged if item.candidate.held == held and _could(item)]
        # Refused candidates stand last; the fewer reasons, the nearer.
        nearest = min(of_it, key=lambda item: len(item.refused))
        for reason in nearest.refused:
            text = reason.text if reason.code == "held" else f"{held.name} is no use: {reason.text}"
            yield Reason(code="held", text=text)


def _could(judged: Judged) -> bool:
    return matrix.cell(judged.candidate.provisioner, judged.candidate.option).works


def _order_of_launches(steps: Sequence[Step]) -> Iterator[Reason]:
    """Yield that node pools are tried in another order than the steps are."""
    launched = [
        step.judged.candidate.option
        for step in steps
        if step.judged.candidate.is_node_pool and step.judged.candidate.option in LAUNCHED
    ]
    if launched == ["on-demand", "spot"]:
        text = (
            "of pods that may run on both, Spot is launched before On-Demand, as it costs less; "
            "let those that are to be On-Demand first select its pool by node-type"
        )
        yield Reason(code="fallback", text=text)


def _warnings(
    question: Question, judged: Sequence[Judged], steps: Sequence[Step], trial: Trial
) -> Iterator[Reason]:
    reasons = [
        reason for step in steps for reason in warnings_of(question, step, first=step is steps[0])
    ]
    reasons += [*_unused(question, judged, steps), *_order_of_launches(steps)]
    reasons += [
        *trial.warnings,
        *trial.reasons_beyond_limits,
        *trial.control_plane,
        *money_warnings(question, steps[0].cost),
    ]
    first = steps[0]
    if len(steps) == 1 and not falls_back(question, first.judged.candidate):
        text = "nothing legal is left to fall back on: try other types, zones or Regions"
        reasons.append(Reason(code="fallback", text=text))
    yield from dict.fromkeys(reasons)


def _unbought(chain: Sequence[_Link]) -> frozenset[str]:
    return frozenset(
        str(pool["name"])
        for link in chain
        if link.judged.candidate.held is None
        and link.judged.candidate.option not in ("on-demand", "spot")
        for pool in link.pools
    )
