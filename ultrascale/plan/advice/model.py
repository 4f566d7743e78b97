"""Questions to the adviser, and its answers."""

from datetime import datetime
from typing import Literal, get_args

from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.provisioners import Provisioned, Provisioner
from ultrascale.frozen import Frozen
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


class Held(Frozen):
    """Capacity that is paid for already."""

    option: PurchaseOption  # Its purchase option
    name: str  # Id of the reservation, or ARN of the training plan
    instance_type: str  # Its instance type
    zone: str  # Its zone
    count: int  # Its instances
    starts: datetime | None = None  # Start of its window, in UTC; None without one
    ends: datetime | None = None  # End of its window, in UTC; None without one


class Question(Frozen):
    """Workload, its time and the conditions that its user accepts."""

    workload: Workload  # The kind of work
    instance_types: tuple[str, ...]  # Suitable types, the preferred one first
    nodes: int  # Nodes needed at a time
    region: str  # AWS Region
    zones: tuple[str, ...]  # Suitable zones, the preferred one first
    at: datetime  # Now, in UTC: the adviser reads no clock
    starts: datetime  # Earliest start, in UTC
    until: datetime | None  # Latest start, in UTC; None if it may be any time later
    days: float | None  # Its length; None if it has no end
    # Expected length of work without an end; None if unknown.
    horizon_days: float | None = None
    # Loss by an interruption: all, the work since the last checkpoint, or nothing.
    tolerance: Tolerance
    coupled: bool  # Whether its nodes exchange data over EFA all the time
    utilisation: float = 1.0  # Part of the time in which the nodes have work, 0 to 1
    commitment: Commitment = "none"  # Term of a contract that its user would sign
    # Preferred provisioner, if it can launch the nodes; None without a preference.
    provisioner: Provisioner | None = None
    # Whether nodes may be used that are no instances of the account.
    outside_account: bool = True
    kubernetes_version: str  # Version of the cluster
    placement_group: bool = False  # Whether nodes should share a cluster placement group
    image: Image = "any"  # Software that the nodes have to run
    custom_kubelet: bool = False  # Whether they need settings that EKS Auto Mode has no field for
    efa_lustre: bool = False  # Whether they mount FSx for Lustre over EFA
    held: tuple[Held, ...] = ()  # Capacity that is paid for already
    budget_usd: float | None = None  # Most that it may cost: in all, or in a month if it has no end


class Candidate(Frozen, Provisioned):
    """One way to have the nodes."""

    option: PurchaseOption  # How they are paid for
    provisioner: Provisioner  # Its provisioner
    # Types of the pool; several where any of them suits at any time.
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]  # Zones of the pool, likewise
    # The held capacity that it uses; None where it is still to be bought.
    held: Held | None = None


class Reason(Frozen):
    """Reason that a candidate is refused, doubtful, or at its place in the order."""

    # ``H1`` to ``H10`` a filter, ``P1`` to ``P6`` a place in the order of preference, ``later`` and
    # ``last`` the places behind them, ``matrix`` and ``check`` this product's own limits, ``asked``
    # a condition of the question, ``held`` held capacity that does not fit, ``cost`` a matter of
    # money, ``fallback`` a note on a fallback.
    code: Code
    text: str  # The reason


class Judged(Frozen):
    """A candidate with its verdict."""

    candidate: Candidate  # The candidate
    refused: tuple[Reason, ...]  # Reasons against it; empty where it is legal
    doubts: tuple[Reason, ...]  # Doubts that only a live call can settle
    place: Reason  # Its place in the order of preference
    rank: tuple[int, ...]  # Key by which legal candidates are sorted

    @property
    def legal(self) -> bool:
        """Whether no known rule forbids it."""
        return not self.refused


class Cost(Frozen):
    """Cost of the nodes alone, as far as it is known offline."""

    low: float | None  # Least, in US dollars; None where no source states it
    high: float | None  # Most, in US dollars; None where no source states it
    period: str  # The paid thing
    formula: str  # The sum in words, or why there is none
    sources: tuple[str, ...] = ()  # Pages that state its terms


class Step(Frozen):
    """A link of the chain: the choice, or a fallback for the case that the link before it fails."""

    judged: Judged  # The candidate
    pools: tuple[str, ...]  # Names of its pools in the fragment
    nodes: int  # Its number of nodes
    # Usable time of a Capacity Block or training plan; None for the others.
    usable_hours: Figure | None
    cost: Cost  # Its cost
    get: tuple[str, ...]  # Way to get it: a command, or whom to ask


class Advice(Frozen):
    """The adviser's answer."""

    question: Question  # The question
    choice: Step | None  # The capacity to buy; None where no candidate is legal
    fallback: tuple[Step, ...] = ()  # The capacity to try next, in this order
    warnings: tuple[Reason, ...] = ()  # Notes to read before money is spent
    quotas: tuple[QuotaNeed, ...] = ()  # Service quotas that choice and fallback need together
    fragment: str = ""  # Their `pools:`, in YAML; empty without a choice
    cluster_file: str = ""  # The smallest cluster file around it; empty without a choice
    candidates: tuple[Judged, ...] = ()  # All candidates, best first, the refused ones last

    @property
    def steps(self) -> tuple[Step, ...]:
        """The choice and its fallback."""
        return (self.choice, *self.fallback) if self.choice is not None else ()
