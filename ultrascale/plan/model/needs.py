"""Needs of a cluster: numbers, each with its formula and sources."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.access import AccessEntryPlan
from ultrascale.plan.model.decisions import Decision
from ultrascale.plan.model.network import SubnetKind
from ultrascale.plan.model.parts import PartNeeds
from ultrascale.plan.model.placement import PlacementPlan
from ultrascale.plan.model.queueing import QueueNeeds
from ultrascale.plan.model.repair import RepairPlan
from ultrascale.plan.model.spend import SpendNeeds
from ultrascale.plan.model.topology import Topology

NeedState = Literal["within", "ask", "agreed", "beyond", "unknown"]
LoadGroup = Literal["nodes", "pods", "objects", "watches", "requests", "logs", "pulls"]
LoadState = Literal["within", "ask", "agreed", "beyond", "unpublished"]
TierState = Literal["within", "ask", "beyond"]
WindowState = Literal["ahead", "running", "draining", "over"]
Verdict = Literal["fits", "raise", "beyond", "over"]
RiskKind = Literal[
    "window-over",
    "beyond",
    "tier",
    "zone",
    "quota",
    "unreserved",
    "spot",
    "window",
    "none",
]


class Figure(Frozen):
    """A number that follows from a cluster file at its full size."""

    id: str  # Where it belongs and what it is, such as ``train.vcpus``
    value: float | None  # The number; None where no source states what it follows from
    unit: str  # What it counts
    formula: str  # The sum in words and numbers; why there is none, where ``value`` is None
    sources: tuple[str, ...] = ()  # Pages that state its terms
    # Pools, or terms, of which it holds nothing, as theirs is not known.
    without: tuple[str, ...] = ()


Figures = Mapping[str, Figure]


class PoolNeeds(Frozen):
    """Needs of a pool, with all of its shards."""

    pool: str  # Its name in the cluster file
    figures: Figures  # By the part of their id after the pool's name, in one order for all pools


class SubnetNeeds(Frozen):
    """The subnets of one kind in one zone, held against the nodes that take addresses of them."""

    kind: SubnetKind  # What they are for
    zone: str  # Their zone
    ranges: Mapping[str, int]  # How many there are of each mask, such as ``/18``
    cidrs: tuple[str, ...]  # Their ranges, in the order in which they were added
    figures: Figures  # By the last part of their id; none of nodes where the kind holds none
    # Whether the zone holds every pool that may launch here with all of its nodes, as a pool of
    # several zones may land wholly in one; None where the kind holds no nodes.
    holds_skew: bool | None


class ControlPlaneNeeds(Frozen):
    """Load of a cluster on its control plane."""

    tier: str  # The file's tier, in EKS's own words
    smallest: str | None  # The smallest tier that fits; None where no published one does
    state: TierState  # Whether the file's tier fits, a larger one does, or none that EKS publishes
    advice: str | None  # What to do about it; None where the file's tier fits
    figures: Figures  # By the part of their id after ``control_plane.``


class WindowNeeds(Frozen):
    """The window of a Capacity Block or a training plan."""

    pool: str  # Its pool
    purchase: str  # Which of the two it is
    starts: datetime  # Its start
    usable_until: datetime  # When its nodes are drained
    ends: datetime  # Its end
    # How it lies to the time that the plan is made for; None without such a time.
    state: WindowState | None
    note: str | None  # What is to be known of it; None where it is as it should be
    # ``usable_hours``, ``drain_minutes``, and with such a time ``hours_ahead`` or ``hours_left``.
    figures: Figures


class PoolMoney(Frozen):
    """Cost of a pool as the file buys it, beside the same nodes On-Demand."""

    pool: str  # Its name in the cluster file
    purchase: str  # How the file buys it
    figures: Figures  # By the last part of their id
    holds_when: str  # When the file's purchase costs less than On-Demand


class MoneyItem(Frozen):
    """A thing beside nodes that a cluster pays for."""

    name: str  # The thing, such as ``NAT gateways``
    service: str  # Its service in the price list
    item: str  # Its item there
    # ``baseline`` is paid as long as the cluster stands; ``usage`` by what goes through it, and is
    # in no sum.
    kind: Literal["baseline", "usage"]
    # The pool with whose window it starts and ends; None where it stands all of the time.
    pool: str | None
    # How many units, in a month where ``unit`` is of usage; None where the file does not say it.
    quantity: float | None
    unit: str  # What the price is for one of, as the price list has it
    unit_price: float | None  # Price of one unit in ``currency``; None where none is known
    currency: str  # Currency of the price
    valid_on: date | None  # Day of the price; None without one
    source: str | None  # Page that states the price; None without one
    usd_per_hour: Figure  # Its price for an hour
    usd_per_month: Figure  # Its price for 730 hours


class MoneyNeeds(Frozen):
    """Cost of all that the file buys, beside the same fleet On-Demand."""

    items: tuple[MoneyItem, ...]  # Things beside nodes
    unpriced: tuple[str, ...]  # Items of ``items`` without a price, by their names
    # Types without a price, by the pool whose sum they are missing in.
    unpriced_types: Mapping[str, tuple[str, ...]]
    oldest: date | None  # Day of the oldest price in the sums; None where no price is known
    newest: date | None  # Day of the newest
    spot_at_on_demand: tuple[str, ...]  # Pools whose Spot nodes are counted at the On-Demand price
    pools: tuple[PoolMoney, ...]  # In file order
    figures: Figures  # Sums, by the part of their id after ``money.``
    half: str  # When the file costs half of the same fleet On-Demand
    assumptions: tuple[str, ...]  # What all of it rests on


class AgreedLimit(Frozen):
    """Quota value that AWS has granted above the published one, as the file says."""

    code: str  # Code of the quota in Service Quotas
    value: int  # How many
    reference: str  # The case or agreement that grants them


class QuotaNeed(Frozen):
    """A service quota, held against what a cluster needs of it."""

    # Its code in Service Quotas; None where it has to be looked up there by its name.
    code: str | None
    service: str | None  # Code of its service there; None where that is not known
    name: str  # Its name there
    needed: Figure  # What the cluster needs
    default: int | None  # How many it is before AWS raises it; None where that is not known
    most: int | None  # How many at most AWS publishes that it grants; None where it publishes none
    # What AWS has granted of it, as the file says; None where it says nothing.
    agreed: AgreedLimit | None = None
    # Whether the default holds it, AWS has to be asked, what is agreed holds it, more than AWS
    # publishes would have to be granted, or that cannot be said offline.
    state: NeedState
    # Into how many clusters, each with a VPC of its own, the nodes would have to be divided to stay
    # within ``most``; None where they need not be.
    clusters: Figure | None = None
    # What to ask of whom, and what to do instead; None where nothing is to be done.
    advice: str | None = None


class LoadNeed(Frozen):
    """A part of what the control plane carries."""

    group: LoadGroup  # Kind of load
    name: str  # Origin of the load
    needed: Figure  # How much it is
    # Largest value that somebody published, or a quota; None where there is none.
    most: float | None
    # What AWS has granted of it, as the file says; None where it says nothing.
    agreed: AgreedLimit | None
    # Whether it is within ``most``, AWS may be asked for more, what is agreed holds it, nobody has
    # published as much, or nothing is published of it.
    state: LoadState
    advice: str | None  # What to do about it; None where nothing is to be done


class QuotaToRaise(Frozen):
    """A service quota whose default does not hold the cluster."""

    # Its code in Service Quotas; None where it has to be looked up there by its name.
    code: str | None
    service: str | None  # Code of its service there; None where that is not known
    name: str  # Its name there
    # Value to ask for: what the cluster needs, rounded up. Other clusters of the account come on
    # top.
    needed: int
    default: int  # How many it is before AWS raises it
    most: int | None  # How many at most AWS publishes that it grants; None where it publishes none
    # Command of the AWS CLI that requests it; None where no request raises it so far.
    command: str | None


class MoneyAnswer(Frozen):
    """Price of the cluster at full size."""

    usd_per_hour: Figure  # Of all that has a known price and is paid by the hour or month
    usd_per_month: Figure  # The same for 730 hours, of a window for those of it alone
    oldest: date | None  # Day of the oldest price in it; None where no price is known
    newest: date | None  # Day of the newest
    nodes: int  # Nodes of all pools at most, which the sums are of
    nodes_at_first: int  # Nodes that the pools are made with
    nodes_priced: int  # How many of ``nodes`` have a known price
    # Pools that are paid up front, at a price that only AWS's offer states, and so in no sum.
    paid_before: tuple[str, ...]
    unpriced: tuple[str, ...]  # Parts of the cluster without a known price
    # The same and ``paid_before`` in words of readers: instance types, those of most nodes first,
    # then pools that are paid up front, then things beside nodes.
    lacking: tuple[str, ...]
    without_count: int  # How many parts ``paid_before`` and ``unpriced`` are
    # Pools whose Spot nodes are counted at the On-Demand price, the most that they cost: with one,
    # no sum is a lower bound.
    spot_at_on_demand: tuple[str, ...]
    excluded: tuple[str, ...]  # Kinds of usage that are in no sum
    # Command that gets the prices of ``unpriced``; None where no price list has any.
    command: str | None


class Risk(Frozen):
    """The largest risk of a cluster, the first that applies in the order of ``RiskKind``."""

    kind: RiskKind  # Kind of the risk
    subject: str  # The pool, quota, zone or load that it is of; empty where there is none
    text: str  # The risk, in one sentence
    advice: str | None  # What to do about it; None where nothing is to be done
    figure: Figure | None = None  # Its size; None where it has none


class PlanAnswer(Frozen):
    """Answers to the first questions about a cluster."""

    # ``fits``; ``raise`` where quotas or the tier are to be raised first; ``beyond`` where it needs
    # more than AWS publishes; ``over`` where a window is over.
    verdict: Verdict
    why: tuple[str, ...]  # Reasons of the verdict
    # Quotas to raise beyond their default, accelerated instances first.
    quotas: tuple[QuotaToRaise, ...]
    quota_count: int  # How many they are
    quotas_unknown: tuple[str, ...]  # Names of quotas whose default no source states
    money: MoneyAnswer  # Its price
    # The next window that is not over, or the first where the plan is made for no time.
    window: WindowNeeds | None
    risk: Risk  # The largest risk


class CheckpointNeeds(Frozen):
    """Time of the checkpoints of a job template, or of one job on all nodes of a pool."""

    subject: str  # The template or the pool
    model: str  # Model that it trains
    place: str  # Place of its checkpoints; empty where the cluster file has none
    figures: Figures  # By the last part of their id


class ServiceNeeds(Frozen):
    """Nodes and money of a service."""

    service: str  # Its name
    pools: tuple[str, ...]  # Pools that it may run on
    figures: Figures  # By the last part of their id
    is_bound: bool  # Whether its money is the most that it costs: Spot at the On-Demand price


class StorageNeed(Frozen):
    """A task of the owner of a file system or bucket that exists, before a deployment."""

    name: str  # Name of the storage in the cluster file
    resource: str  # Its id, or S3's name of it
    owner: str | None  # Its account; None for the cluster's
    security_group: str | None  # Security group that the task is about; None for others
    need: str  # What has to be so
    why: str  # What fails otherwise
    statements: tuple[Mapping[str, object], ...]  # Statements that the resource's policy needs
    source: str  # Address of the page that says so


class ClusterNeeds(Frozen):
    """Needs of a cluster at its full size."""

    name: str  # The cluster
    region: str  # Its Region
    at: datetime | None  # The time that its windows are held against; None shows them unjudged
    # Whether it fits, what to raise, its price, its next window, its largest risk.
    answer: PlanAnswer
    pools: tuple[PoolNeeds, ...]  # In file order
    totals: Figures  # Sums of the pools' figures, by the same keys
    subnets: tuple[SubnetNeeds, ...]  # One for each kind of subnet in each zone
    control_plane: ControlPlaneNeeds  # What it asks of its control plane
    # How long its first step takes to begin, by the part of their id after ``launch.``.
    launch: Figures
    # How long gangs take to be placed by network topology; None where they are not.
    placement: PlacementPlan | None
    checkpoints: tuple[CheckpointNeeds, ...]  # How long checkpoints take, and how often they pay
    services: tuple[ServiceNeeds, ...]  # Nodes and money of each service, in file order
    queues: QueueNeeds | None  # Who is guaranteed which nodes; None without Kueue
    # Windows of Capacity Blocks and training plans, in file order.
    calendar: tuple[WindowNeeds, ...]
    repairs: tuple[RepairPlan, ...]  # What a broken node of each pool meets, in file order
    # Roles that the file lets into the cluster, and what EKS allows each.
    access: tuple[AccessEntryPlan, ...]
    parts: tuple[PartNeeds, ...]  # Needs of parts, in the order of their table
    storage: tuple[StorageNeed, ...]  # Tasks of the owners of file systems and buckets that exist
    money: MoneyNeeds  # What it costs
    quotas: tuple[QuotaNeed, ...]  # Those that it needs something of
    load: tuple[LoadNeed, ...]  # What its control plane carries, by origin
    # What is open or off because of the cluster's size, its subnets or its reservations.
    remarks: tuple[str, ...]
    topology: Topology  # Its parts, and where each lies
    spend: SpendNeeds  # What it costs a day, over the time of its windows
    decisions: tuple[Decision, ...]  # What was decided for it, and why
