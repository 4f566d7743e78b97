"""The order of preference, P1 to P6, as a rank over all candidates: the lowest legal one wins.

1. Held capacity. 2. Accelerators with Capacity Blocks on sale, a known start and end, and work that
would lose something by an interruption: a Capacity Block, or on HyperPod a training plan. 3. An
On-Demand Capacity Reservation: for services, which must be there; for other types with a start in
the future, unless the work is stateless; for other types under a contract. 4. The same for those
accelerators, used for a year and longer: a contract, by the account team. 5. Spot, where the work
bears an interruption and has several suitable types or zones. 6. On-Demand. Behind it ``later``:
Spot for coupled jobs of many nodes, or of one type in one zone; and ``last``: legal candidates that
meet no stated need.
"""

from collections.abc import Mapping

from ultrascale import catalog
from ultrascale.catalog import matrix, purchasing
from ultrascale.catalog.provisioners import (
    AUTO_MODE,
    KARPENTER,
    MANAGED_NODE_GROUP,
    SELF_MANAGED,
    Provisioner,
)
from ultrascale.plan.advice.candidates import is_spread
from ultrascale.plan.advice.filters import doubts, refusals
from ultrascale.plan.advice.model import Candidate, Judged, Place, Question, Reason, Workload
from ultrascale.plan.advice.times import DAY, sold_days

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
