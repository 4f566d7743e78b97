"""Questions to the adviser, and its answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.provisioners import Provisioned, Provisioner
from ultrascale.plan.model import Figure, QuotaNeed

Workload = Literal[
    "pre-training",
    "fine-tuning",
    "batch-inference",
    "online-inference",
    "data-processing",
    "development",
]
Tolerance = Literal["none", "checkpoint", "stateless"]
Commitment = Literal["none", "1-year", "3-year"]
Image = Literal["any", "al2023", "bottlerocket"]
Filter = Literal["H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10"]
Place = Literal["P1", "P2", "P3", "P4", "P5", "P6", "later", "last"]
Code = Filter | Place | Literal["matrix", "asked", "held", "check", "cost", "fallback"]

WORKLOADS: tuple[Workload, ...] = get_args(Workload)
TOLERANCES: tuple[Tolerance, ...] = get_args(Tolerance)
COMMITMENTS: tuple[Commitment, ...] = get_args(Commitment)
IMAGES: tuple[Image, ...] = get_args(Image)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Capacity that is paid for already.

    Attributes:
        option: What it is.
        name: Id of the reservation, or ARN of the training plan.
        instance_type: Its instance type.
        zone: Its zone.
        count: Its instances.
        starts: Start of its window, in UTC; None without one.
        ends: End of its window, in UTC; None without one.
    """

    option: PurchaseOption
    name: str
    instance_type: str
    zone: str
    count: int
    starts: datetime | None = None
    ends: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Workload, its time and the conditions that its user accepts.

    Attributes:
        workload: What it is.
        instance_types: Types that would do, the one that is preferred first.
        nodes: How many are needed at a time.
        region: AWS Region.
        zones: Zones that would do, the one that is preferred first.
        at: Now, in UTC: the adviser reads no clock.
        starts: Earliest start, in UTC.
        until: Latest start, in UTC; None if it may be any time later.
        days: How long it runs; None if it has no end.
        horizon_days: How long something without an end is expected to be there; None if unknown.
        tolerance: What an interruption costs: all, what follows the last checkpoint, or nothing.
        coupled: Whether its nodes exchange data over EFA all the time.
        utilisation: Part of the time in which the nodes have work, 0 to 1.
        commitment: Term of a contract that its user would sign.
        provisioner: What should launch the nodes, if it can; None without a preference.
        hyperpod: Whether SageMaker HyperPod may be used.
        kubernetes_version: Version of the cluster.
        placement_group: Whether nodes should share a cluster placement group.
        image: What the nodes have to run.
        custom_kubelet: Whether they need settings that EKS Auto Mode has no field for.
        efa_lustre: Whether they mount FSx for Lustre over EFA.
        held: What is paid for already.
        budget_usd: Most that it may cost: in all, or in a month if it has no end.
    """

    workload: Workload
    instance_types: tuple[str, ...]
    nodes: int
    region: str
    zones: tuple[str, ...]
    at: datetime
    starts: datetime
    until: datetime | None
    days: float | None
    horizon_days: float | None = None
    tolerance: Tolerance
    coupled: bool
    utilisation: float = 1.0
    commitment: Commitment = "none"
    provisioner: Provisioner | None = None
    hyperpod: bool = True
    kubernetes_version: str
    placement_group: bool = False
    image: Image = "any"
    custom_kubelet: bool = False
    efa_lustre: bool = False
    held: tuple[Held, ...] = ()
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Provisioned):
    """One way to have the nodes.

    Attributes:
        option: How they are paid for.
        provisioner: What launches them.
        instance_types: Types of the pool; several where any of them would do at any time.
        zones: Zones of the pool, likewise.
        held: What it uses of what is paid for already; None where it is still to be bought.
    """

    option: PurchaseOption
    provisioner: Provisioner
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    held: Held | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Reason that a candidate is refused, doubtful, or at its place in the order.

    Attributes:
        code: ``H1`` to ``H10`` a filter, ``P1`` to ``P6`` a place in the order of preference,
            ``later`` and ``last`` the places behind them, ``matrix`` and ``check`` this product's
            own limits, ``asked`` what the question rules out, ``held`` what does not fit of what
            is paid for, ``cost`` a matter of money, ``fallback`` one of what is tried next.
        text: The reason.
    """

    code: Code
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A candidate, and what is to be said of it.

    Attributes:
        candidate: The candidate.
        refused: Why it is none; empty where it is legal.
        doubts: Why it may turn out to be none, which only a live call can tell.
        place: Its place in the order of preference.
        rank: What legal candidates are sorted by.
    """

    candidate: Candidate
    refused: tuple[Reason, ...]
    doubts: tuple[Reason, ...]
    place: Reason
    rank: tuple[int, ...]

    @property
    def legal(self) -> bool:
        """Whether nothing known speaks against it."""
        return not self.refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of the nodes alone, as far as it is known offline.

    Attributes:
        low: Least, in US dollars; None where no source states it.
        high: Most, in US dollars; None where no source states it.
        period: What it is the cost of.
        formula: The sum in words, or why there is none.
        sources: Pages that state its terms.
    """

    low: float | None
    high: float | None
    period: str
    formula: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A link of the chain: the choice, or what is tried where what stands before it fails.

    Attributes:
        judged: The candidate.
        pools: Names of its pools in the fragment.
        nodes: How many nodes it has.
        usable_hours: How long a Capacity Block or training plan is of use; None for the others.
        cost: What it costs.
        get: How it is got: a command, or whom to ask.
    """

    judged: Judged
    pools: tuple[str, ...]
    nodes: int
    usable_hours: Figure | None
    cost: Cost
    get: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The adviser's answer.

    Attributes:
        question: What was asked.
        choice: What to buy; None where nothing is legal.
        fallback: What to try next, in this order.
        warnings: What to know before money is spent.
        quotas: Service quotas that choice and fallback need together.
        fragment: Their `pools:`, in YAML; empty without a choice.
        cluster_file: The smallest cluster file around it; empty without a choice.
        candidates: All that was weighed, best first, the refused ones last.
    """

    question: Question
    choice: Step | None
    fallback: tuple[Step, ...] = ()
    warnings: tuple[Reason, ...] = ()
    quotas: tuple[QuotaNeed, ...] = ()
    fragment: str = ""
    cluster_file: str = ""
    candidates: tuple[Judged, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The choice and its fallback."""
        return (self.choice, *self.fallback) if self.choice is not None else ()
