"""The order of preference, P1 to P6, and the filters that reject candidates: H1 to H10 and ours.

1. Held capacity. 2. Accelerators with Capacity Blocks on sale, a known start and end, and work that
would lose something by an interruption: a Capacity Block, or on HyperPod a training plan. 3. An
On-Demand Capacity Reservation: for services, which must be there; for other types with a start in
the future, unless the work is stateless; for other types under a contract. 4. The same for those
accelerators, used for a year and longer: a contract, by the account team. 5. Spot, where the work
bears an interruption and has several suitable types or zones. 6. On-Demand. Behind it ``later``:
Spot for coupled jobs of many nodes, or of one type in one zone; and ``last``: legal candidates that
meet no stated need.
"""

from collections.abc import Callable, Iterator, Mapping

from ultrascale import catalog
from ultrascale.catalog import (
    auto_mode,
    capacity_blocks,
    matrix,
    purchasing,
    regions,
    spot,
    training_plans,
)
from ultrascale.catalog.provisioners import (
    AUTO_MODE,
    KARPENTER,
    MANAGED_NODE_GROUP,
    SELF_MANAGED,
    Provisioner,
)
from ultrascale.core.table import all_parts
from ultrascale.plan.advice.candidates import is_spread
from ultrascale.plan.advice.held import usable_until
from ultrascale.plan.advice.model import (
    Candidate,
    Filter,
    Judged,
    Place,
    Question,
    Reason,
    Workload,
)
from ultrascale.plan.advice.times import DAY, sold_days

# --- Filters that reject a candidate or make it doubtful: H1 to H10 and this product's own --------
# A list of Regions may lag behind AWS's offers, so it makes a candidate doubtful and refuses none.


Reasons = Iterator[Reason]

# The system pool is a group too.
_MOST_GROUPS = matrix.MANAGED_NODE_GROUPS - 1
_WINDOWED = ("capacity-block", "training-plan")


def refusals(question: Question, candidate: Candidate) -> tuple[Reason, ...]:
    """Return the reasons against ``candidate`` for ``question``; nothing where it is legal."""
    unplanned = tuple(_planned(candidate))
    if unplanned:
        # The catalog may lack every other fact about such a type.
        return unplanned
    return tuple(reason for check in _CHECKS for reason in check(question, candidate))


def doubts(candidate: Candidate, region: str) -> tuple[Reason, ...]:
    """Return why only a live call can tell whether AWS has ``candidate`` in ``region``."""
    if candidate.held is not None:
        return ()
    if candidate.option == "capacity-block":
        return tuple(
            Reason(code="H2", text=f"AWS lists no Capacity Blocks of {name} in {region}")
            for name in candidate.instance_types
            if region not in catalog.lookup(name).capacity_block_regions
        )
    code: Filter = "H1" if candidate.facts.in_account else "H8"
    return tuple(
        Reason(code=code, text=f"{name} has no listed price in {region}")
        for name in candidate.instance_types
        if regions.offered(name, region, by=candidate.facts.seller) is False
        or regions.listed_nowhere(name, by=candidate.facts.seller)
    )


def _planned(candidate: Candidate) -> Reasons:
    for name in candidate.instance_types:
        spec = catalog.lookup(name)
        if not matrix.can_be_planned(spec):
            text = f"no source states what a node of {name} is made of, so no pool can be planned"
            yield Reason(code="check", text=text)


def _cell_works(question: Question, candidate: Candidate) -> Reasons:
    cell = matrix.cell(candidate.provisioner, candidate.option)
    if not cell.works:
        yield Reason(code="matrix", text=cell.refused)
        return
    if len(candidate.instance_types) < cell.fewest_types:
        text = (
            f"a Spot node group wants {cell.fewest_types} types, so that EC2 has a choice; "
            "name more, or use karpenter or auto-mode"
        )
        yield Reason(code="check", text=text)
    for name in candidate.instance_types:
        spec = catalog.lookup(name)
        why = matrix.why_not_launched(candidate.provisioner, spec)
        if why is not None:
            yield Reason(code="check", text=why)
        if candidate.option == "spot" and not spot.is_sold(name):
            yield Reason(code="check", text=f"EC2 does not sell {name} as Spot")
        if candidate.option == "training-plan" and spec.lacks_training_plans:
            yield Reason(code="check", text=f"no training plan is sold for {name}")


def _held_fits(question: Question, candidate: Candidate) -> Reasons:
    held = candidate.held
    if held is None:
        return
    wrong: list[str] = []
    if held.instance_type not in question.instance_types:
        wrong.append(f"of {held.instance_type}, which is not asked for")
    if held.zone not in question.zones:
        wrong.append(f"in {held.zone}, which is not asked for")
    until = usable_until(held)
    if until is not None and until <= question.starts:
        wrong.append(f"drained at {until:%Y-%m-%d %H:%M} UTC, before the work starts")
    latest = question.until
    if held.starts is not None and latest is not None and held.starts > latest:
        wrong.append(f"not there before {held.starts:%Y-%m-%d %H:%M} UTC, after the latest start")
    if question.coupled and held.count < question.nodes:
        rest = question.nodes - held.count
        wrong.append(
            f"of {held.count} nodes, and a coupled job needs its {question.nodes} at once: to use "
            f"it, ask for the other {rest} in {held.zone}"
        )
    for text in wrong:
        yield Reason(code="held", text=f"{held.name} is {text}")


def _window_is_sold(question: Question, candidate: Candidate) -> Reasons:
    if candidate.option not in _WINDOWED or candidate.held is not None:
        return
    (name,) = candidate.instance_types
    if candidate.option == "training-plan":
        what, longest = "a training plan", training_plans.LONGEST_DAYS
        sold, most = catalog.lookup(name).training_plan, None
    else:
        what, longest = "a Capacity Block", capacity_blocks.LONGEST_DAYS
        sold, most = _has_blocks(name), capacity_blocks.MOST_TOGETHER
    if not sold:
        yield Reason(code="H2", text=f"{what} of {name} is not sold")
    if question.days is None:
        yield Reason(code="H2", text=f"{what} ends, and a service or steady work does not")
    elif sold_days(candidate.option, question.days) is None:
        text = f"{what} lasts {longest} days at most, and the work {question.days:g}"
        yield Reason(code="H2", text=text)
    if most is not None and question.nodes > most:
        text = (
            f"all Capacity Blocks of a date together have {most} instances at most; run in parts, "
            "or ask your account team"
        )
        yield Reason(code="H2", text=text)
    ahead = capacity_blocks.LONGEST_AHEAD
    if question.starts > question.at + ahead:
        opens = question.starts - ahead
        text = f"{what} is sold {ahead.days} days ahead at most; ask again from {opens:%Y-%m-%d}"
        yield Reason(code="H2", text=text)


def _has_blocks(name: str) -> bool:
    spec = catalog.lookup(name)
    return spec.knows("capacity_block") and spec.capacity_block


def _interruption_is_borne(question: Question, candidate: Candidate) -> Reasons:
    if candidate.option == "spot" and question.tolerance == "none":
        text = "EC2 takes Spot nodes back with two minutes' notice, and the work bears none"
        yield Reason(code="H4", text=text)


def _auto_mode_suits(question: Question, candidate: Candidate) -> Reasons:
    if not candidate.is_auto_mode:
        return
    days = auto_mode.NODE_DAYS
    if question.image == "al2023":
        yield Reason(code="H5", text="EKS Auto Mode runs Bottlerocket alone")
    if question.tolerance == "none" and (question.days is None or question.days > days):
        text = f"EKS Auto Mode replaces a node after {days} days, and the work bears no restart"
        yield Reason(code="H5", text=text)
    if question.efa_lustre:
        yield Reason(code="H5", text="EKS Auto Mode's nodes mount no Lustre over EFA")
    if question.custom_kubelet:
        text = "EKS Auto Mode has few settings of the kubelet, those of its NodeClass"
        yield Reason(code="H5", text=text)


def _groups_hold(question: Question, candidate: Candidate) -> Reasons:
    most = matrix.NODES_PER_MANAGED_NODE_GROUP
    if candidate.is_managed and question.nodes > most * _MOST_GROUPS:
        text = (
            f"{_MOST_GROUPS} managed node groups of {most} nodes beside the system pool hold "
            f"{most * _MOST_GROUPS:,}, and {question.nodes:,} are needed"
        )
        yield Reason(code="H6", text=text)


def _part_suits(question: Question, candidate: Candidate) -> Reasons:
    for part in all_parts():
        if candidate.provisioner in part.provisioners:
            yield from part.refusals(question, candidate)


def _efa_reaches(question: Question, candidate: Candidate) -> Reasons:
    if not question.coupled:
        return
    if is_spread(candidate):
        text = "EFA reaches the nodes of one zone and one VPC, and a job is of one type"
        yield Reason(code="H10", text=text)
    for name in candidate.instance_types:
        if not catalog.lookup(name).efa_cards:
            yield Reason(code="H10", text=f"{name} has no EFA, and the job exchanges data over it")


def _is_asked_for(question: Question, candidate: Candidate) -> Reasons:
    if not candidate.facts.in_account and not question.outside_account:
        yield Reason(code="asked", text=f"{candidate.facts.word} is ruled out")
    if not candidate.is_auto_mode and question.image == "bottlerocket":
        text = f"{candidate.provisioner} pools of this product do not run Bottlerocket"
        yield Reason(code="asked", text=text)


_CHECKS: tuple[Callable[[Question, Candidate], Reasons], ...] = (
    _cell_works,
    _is_asked_for,
    _held_fits,
    _window_is_sold,
    _interruption_is_borne,
    _auto_mode_suits,
    _groups_hold,
    _part_suits,
    _efa_reaches,
)


# --- The order of preference, P1 to P6, as a rank over all candidates: the lowest legal one wins


CHAINS: Mapping[Workload, tuple[matrix.PurchaseOption, ...]] = {
    "pre-training": ("capacity-block", "training-plan", "on-demand"),
    "fine-tuning": ("capacity-block", "training-plan", "on-demand", "spot"),
    "batch-inference": ("spot", "on-demand"),
    "online-inference": ("odcr", "on-demand", "spot"),
    "data-processing": ("spot", "on-demand"),
    "development": ("on-demand", "spot"),
}
"""Fallbacks of each kind of work in their order, after the choice itself."""

_PLACES: Mapping[Place, int] = {
    **{"P1": 1, "P2": 2, "P3": 3, "P4": 4, "P5": 5, "P6": 6},
    **{"later": 7, "last": 8},
}

# A fixed set of nodes suits groups, one that follows its pods suits node pools. Karpenter comes
# before EKS Auto Mode as it has both kinds of images, more settings and no fee. A provisioner of a
# part is the last of both.
_FIXED: tuple[Provisioner, ...] = (*(MANAGED_NODE_GROUP, KARPENTER, SELF_MANAGED, AUTO_MODE),)
_ELASTIC: tuple[Provisioner, ...] = (*(KARPENTER, AUTO_MODE, MANAGED_NODE_GROUP, SELF_MANAGED),)


def judge(question: Question, candidate: Candidate) -> Judged:
    """Return the verdict on ``candidate``, and its place."""
    place = _place(question, candidate)
    doubtful = doubts(candidate, question.region)
    return Judged(
        candidate=candidate,
        refused=refusals(question, candidate),
        doubts=doubtful,
        place=place,
        rank=_rank(question, candidate, place, doubtful=bool(doubtful)),
    )


def _rank(
    question: Question, candidate: Candidate, place: Reason, *, doubtful: bool
) -> tuple[int, ...]:
    """Return the sort key of a candidate: whether it is surely sold, then its place."""
    fixed = question.coupled or candidate.option == "capacity-block"
    order = _FIXED if fixed else _ELASTIC
    held = [capacity.name for capacity in question.held]
    types = question.instance_types
    first = candidate.instance_types[0]
    return (
        int(doubtful),
        # The alternatives of `Place` are the keys.
        _PLACES[_known_place(place)],
        held.index(candidate.held.name) if candidate.held else 0,
        int(not is_spread(candidate)),
        types.index(first) if first in types else len(types),
        int(candidate.provisioner != question.provisioner),
        order.index(candidate.provisioner) if candidate.provisioner in order else len(order),
    )


def _known_place(reason: Reason) -> Place:
    return next(place for place in _PLACES if place == reason.code)


def _place(question: Question, candidate: Candidate) -> Reason:
    if candidate.held is not None:
        return Reason(code="P1", text=f"{candidate.held.name} is paid for already")
    if candidate.option in ("capacity-block", "training-plan"):
        return _place_of_window(question, candidate)
    if candidate.option == "odcr":
        return _place_of_reservation(question, candidate)
    if candidate.option == "spot":
        return _place_of_spot(question)
    return Reason(code="P6", text="On-Demand: no commitment, and capacity if there is any")


def _place_of_window(question: Question, candidate: Candidate) -> Reason:
    known = question.days is not None and sold_days(candidate.option, question.days) is not None
    if known and question.tolerance != "stateless":
        text = "start and end are known, and the work would lose something by an interruption"
        return Reason(code="P2", text=text)
    return Reason(code="last", text="the work has no end, or loses nothing by an interruption")


def _place_of_reservation(question: Question, candidate: Candidate) -> Reason:
    contract = question.commitment != "none" and _pays(question)
    scarce = any(_sold_in_blocks(name) for name in candidate.instance_types)
    if scarce and _is_long(question) and _pays(question):
        text = (
            "steady use for a year or more: a reservation by your account team, and a Savings Plan "
            "or a private offer for its price"
        )
        return Reason(code="P4", text=text)
    if question.workload == "online-inference":
        return Reason(code="P3", text="a service must be there: its capacity is reserved")
    if not scarce and question.starts > question.at and question.tolerance != "stateless":
        text = "the start is known, and no Capacity Blocks are sold of the type"
        return Reason(code="P3", text=text)
    if not scarce and question.days is None and contract:
        text = "steady use under a contract: a reservation, at the price of a Savings Plan"
        return Reason(code="P3", text=text)
    return Reason(code="last", text="paid for whether used or not, and nothing asks for that")


def _place_of_spot(question: Question) -> Reason:
    if question.coupled and question.nodes > purchasing.COUPLED_SPOT_NODES:
        text = (
            f"H4: a coupled job of more than {purchasing.COUPLED_SPOT_NODES} nodes stops with the "
            "first that EC2 takes back"
        )
        return Reason(code="later", text=text)
    if len(question.instance_types) > 1 or len(question.zones) > 1:
        text = "an interruption is borne, and several types or zones would do"
        return Reason(code="P5", text=text)
    text = "one type in one zone: where Spot is short there, there is nowhere to turn to"
    return Reason(code="later", text=text)


def _sold_in_blocks(name: str) -> bool:
    """Return whether a type is scarce: P families and Trainium."""
    return catalog.lookup(name).for_training


def _is_long(question: Question) -> bool:
    if question.days is not None:
        return question.days * DAY >= purchasing.LONG_TERM
    horizon = question.horizon_days
    signed = question.commitment != "none"
    return signed or (horizon is not None and horizon * DAY >= purchasing.LONG_TERM)


def _pays(question: Question) -> bool:
    """Return whether a commitment can pay at all: above a use of 1 - its discount it does."""
    return question.utilisation >= 1 - purchasing.SAVINGS_PLAN_LARGEST_DISCOUNT
