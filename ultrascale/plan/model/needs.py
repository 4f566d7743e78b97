"""Needs of a cluster: numbers, each with its formula and sources."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.access import AccessEntryPlan
from ultrascale.plan.model.decisions import Decision
from ultrascale.plan.model.network import SubnetKind
from ultrascale.plan.model.node_pools import RepairPlan
from ultrascale.plan.model.parts import PartNeeds
from ultrascale.plan.model.placement import PlacementPlan
from ultrascale.plan.model.queueing import QueueNeeds
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

    id: str  # Its pool or subject, and its name, such as ``train.vcpus``
    value: float | None  # The number; None where no source states one of its terms
    unit: str  # Its unit
    formula: str  # Its formula in words and numbers; the reason where ``value`` is None
    sources: tuple[str, ...] = ()  # Pages that state its terms
    # Pools, or terms, that it leaves out as unknown.
    without: tuple[str, ...] = ()


Figures = Mapping[str, Figure]


class PoolNeeds(Frozen):
    """Needs of a pool, with all of its shards."""

    pool: str  # Its name in the cluster file
    figures: (
        Figures  # Figures by the part of their id after the pool's name, in one order for all pools
    )


class SubnetNeeds(Frozen):
    """The subnets of one kind in one zone, beside the nodes' demand."""

    kind: SubnetKind  # Their kind
    zone: str  # Their zone
    ranges: Mapping[str, int]  # Number of subnets of each mask, such as ``/18``
    cidrs: tuple[str, ...]  # Their ranges, in the order in which they were added
    figures: (
        Figures  # Figures by the last part of their id; none of nodes where the kind holds none
    )
    # Whether the zone holds every pool that may launch here with all of its nodes, as a pool of
    # several zones may land wholly in one; None where the kind holds no nodes.
    holds_skew: bool | None


class ControlPlaneNeeds(Frozen):
    """Load of a cluster on its control plane."""

    tier: str  # The file's tier, in EKS's own words
    smallest: str | None  # The smallest tier that fits; None where no published one does
    state: TierState  # Whether the file's tier fits, a larger one does, or none that EKS publishes
    advice: str | None  # Advice; None where the file's tier fits
    figures: Figures  # Figures by the part of their id after ``control_plane.``


class WindowNeeds(Frozen):
    """The window of a Capacity Block or a training plan."""

    pool: str  # Its pool
    purchase: str  # Capacity Block or training plan
    starts: datetime  # Its start
    usable_until: datetime  # Start of the drain of its nodes
    ends: datetime  # Its end
    # Its relation to the plan's time; None without such a time.
    state: WindowState | None
    note: str | None  # Note on it; None where nothing is wrong
    # ``usable_hours``, ``drain_minutes``, and with such a time ``hours_ahead`` or ``hours_left``.
    figures: Figures


class PoolMoney(Frozen):
    """Cost of a pool as the file buys it, beside the same nodes On-Demand."""

    pool: str  # Its name in the cluster file
    purchase: str  # Its purchase in the file
    figures: Figures  # Figures by the last part of their id
    holds_when: str  # Condition under which the file's purchase costs less than On-Demand


class MoneyItem(Frozen):
    """A paid thing beside nodes."""

    name: str  # The thing, such as ``NAT gateways``
    service: str  # Its service in the price list
    item: str  # Its item there
    # ``baseline`` costs as long as the cluster stands; ``usage`` by its use, outside all sums.
    kind: Literal["baseline", "usage"]
    # The pool with whose window it starts and ends; None where it stands all of the time.
    pool: str | None
    # Units, in a month where ``unit`` is of usage; None where the file does not say it.
    quantity: float | None
    unit: str  # Unit of the price in the price list
    unit_price: float | None  # Price of one unit in ``currency``; None where none is known
    currency: str  # Currency of the price
    valid_on: date | None  # Day of the price; None without one
    source: str | None  # Page that states the price; None without one
    usd_per_hour: Figure  # Its price for an hour
    usd_per_month: Figure  # Its price for 730 hours


class MoneyNeeds(Frozen):
    """Cost of everything that the file buys, beside the same fleet On-Demand."""

    items: tuple[MoneyItem, ...]  # Things beside nodes
    unpriced: tuple[str, ...]  # Items of ``items`` without a price, by their names
    # Types without a price, by the pool whose sum lacks them.
    unpriced_types: Mapping[str, tuple[str, ...]]
    oldest: date | None  # Day of the oldest price in the sums; None where no price is known
    newest: date | None  # Day of the newest
    spot_at_on_demand: tuple[str, ...]  # Pools whose Spot nodes are counted at the On-Demand price
    pools: tuple[PoolMoney, ...]  # Costs of pools, in file order
    figures: Figures  # Sums, by the part of their id after ``money.``
    half: str  # Condition under which the file costs half of the same fleet On-Demand
    assumptions: tuple[str, ...]  # Notes on all sums


class AgreedLimit(Frozen):
    """Value of a quota in the file, granted by AWS above the published one."""

    code: str  # Code of the quota in Service Quotas
    value: int  # Granted value
    reference: str  # The case or agreement that grants them


class QuotaNeed(Frozen):
    """A service quota beside the cluster's need."""

    # Its code in Service Quotas; None where only its name is known there.
    code: str | None
    service: str | None  # Code of its service there; None where unknown
    name: str  # Its name there
    needed: Figure  # Need of the cluster
    default: int | None  # Default value; None where unknown
    most: int | None  # Largest value that AWS publishes that it grants; None without one
    # Value that AWS has granted, by the file; None without one.
    agreed: AgreedLimit | None = None
    # Whether the default holds it, AWS has to be asked, the agreed value holds it, AWS would have
    # to grant more than it publishes, or nobody can say it offline.
    state: NeedState
    # Number of clusters, each with a VPC of its own, into which the nodes would have to be divided
    # to stay within ``most``; None where they need not be.
    clusters: Figure | None = None
    # Request to make, and its alternative; None where nothing is to be done.
    advice: str | None = None


class LoadNeed(Frozen):
    """A part of the control plane's load."""

    group: LoadGroup  # Kind of load
    name: str  # Origin of the load
    needed: Figure  # Amount of the load
    # Largest published value, or a quota; None where there is none.
    most: float | None
    # Value that AWS has granted, by the file; None without one.
    agreed: AgreedLimit | None
    # Whether it is within ``most``, AWS may be asked for more, the agreed value holds it, nobody
    # has published as much, or nothing is published of it.
    state: LoadState
    advice: str | None  # Advice; None where nothing is to be done


class QuotaToRaise(Frozen):
    """A service quota whose default does not hold the cluster."""

    # Its code in Service Quotas; None where only its name is known there.
    code: str | None
    service: str | None  # Code of its service there; None where unknown
    name: str  # Its name there
    # Value to ask for: the cluster's need, rounded up. Other clusters of the account come on top.
    needed: int
    default: int  # Default value
    most: int | None  # Largest value that AWS publishes that it grants; None without one
    # Command of the AWS CLI that requests it; None where no request raises it so far.
    command: str | None


class MoneyAnswer(Frozen):
    """Price of the cluster at full size."""

    usd_per_hour: (
        Figure  # Sum of everything that has a known price and is paid by the hour or month
    )
    usd_per_month: Figure  # Sum of 730 hours, or of a window where everything has one
    oldest: date | None  # Day of the oldest price in it; None where no price is known
    newest: date | None  # Day of the newest
    nodes: int  # Most nodes of all pools, behind the sums
    nodes_at_first: int  # Nodes with which the pools are made
    nodes_priced: int  # Nodes of ``nodes`` with a known price
    # Pools that are paid up front, at a price that only AWS's offer states: no sum has them.
    paid_before: tuple[str, ...]
    unpriced: tuple[str, ...]  # Parts of the cluster without a known price
    # ``paid_before`` and ``unpriced`` in words of readers: instance types, those of most nodes
    # first, then pools that are paid up front, then things beside nodes.
    lacking: tuple[str, ...]
    without_count: int  # Number of parts in ``paid_before`` and ``unpriced``
    # Pools whose Spot nodes count at the On-Demand price, the most that they cost: with one, no sum
    # is a lower bound.
    spot_at_on_demand: tuple[str, ...]
    excluded: tuple[str, ...]  # Kinds of usage outside all sums
    # Command that gets the prices of ``unpriced``; None where no price list has any.
    command: str | None


class Risk(Frozen):
    """The largest risk of a cluster, the first that applies in the order of ``RiskKind``."""

    kind: RiskKind  # Kind of the risk
    subject: str  # Its pool, quota, zone or load; empty where there is none
    text: str  # The risk, in one sentence
    advice: str | None  # Advice; None where nothing is to be done
    figure: Figure | None = None  # Its size; None where it has none


class PlanAnswer(Frozen):
    """Answers to the first questions about a cluster."""

    # ``fits``; ``raise`` where quotas or the tier are to be raised first; ``beyond`` where it needs
    # more than AWS publishes; ``over`` where a window is over.
    verdict: Verdict
    why: tuple[str, ...]  # Reasons of the verdict
    # Quotas to raise beyond their default, accelerated instances first.
    quotas: tuple[QuotaToRaise, ...]
    quota_count: int  # Number of these quotas
    quotas_unknown: tuple[str, ...]  # Names of quotas whose default no source states
    money: MoneyAnswer  # Its price
    # The next window that is not over, or the first where the plan has no time.
    window: WindowNeeds | None
    risk: Risk  # The largest risk
    # Number of the facts that it rests on and that have expired; None without a time.
    expired_facts: int | None = None


class CheckpointNeeds(Frozen):
    """Time of the checkpoints of a job template, or of one job on all nodes of a pool."""

    subject: str  # The template or the pool
    model: str  # Model that it trains
    place: str  # Place of its checkpoints; empty where the cluster file has none
    figures: Figures  # Figures by the last part of their id


class ServiceNeeds(Frozen):
    """Nodes and money of a service."""

    service: str  # Its name
    pools: tuple[str, ...]  # Its possible pools
    figures: Figures  # Figures by the last part of their id
    is_bound: bool  # Whether its money is the most that it costs: Spot at the On-Demand price


class StorageNeed(Frozen):
    """A task of an existing file system's or bucket's owner, before a deployment."""

    name: str  # Name of the storage in the cluster file
    resource: str  # Its id, or S3's name of it
    owner: str | None  # Its account; None for the cluster's
    security_group: str | None  # Security group of the task; None for other tasks
    need: str  # Required state
    why: str  # Failure without it
    statements: tuple[Mapping[str, object], ...]  # Statements that the resource's policy needs
    source: str  # Address of the page that states it


class ClusterNeeds(Frozen):
    """Needs of a cluster at its full size."""

    name: str  # The cluster
    region: str  # Its Region
    at: datetime | None  # The time at which its windows are judged; None leaves them unjudged
    # Verdict, quotas to raise, price, next window, largest risk.
    answer: PlanAnswer
    pools: tuple[PoolNeeds, ...]  # Needs of pools, in file order
    totals: Figures  # Sums of the pools' figures, by the same keys
    subnets: tuple[SubnetNeeds, ...]  # Needs of subnets, by kind and zone
    control_plane: ControlPlaneNeeds  # Load on its control plane
    # Times until its first step, by the part of their id after ``launch.``.
    launch: Figures
    # Times of placing gangs by network topology; None without such gangs.
    placement: PlacementPlan | None
    checkpoints: tuple[CheckpointNeeds, ...]  # Times of checkpoints, and the intervals that pay
    services: tuple[ServiceNeeds, ...]  # Nodes and money of each service, in file order
    queues: QueueNeeds | None  # Guaranteed nodes of queues; None without Kueue
    # Windows of Capacity Blocks and training plans, in file order.
    calendar: tuple[WindowNeeds, ...]
    repairs: tuple[RepairPlan, ...]  # Repair of a broken node of each pool, in file order
    # Roles that the file lets into the cluster, with their access policies.
    access: tuple[AccessEntryPlan, ...]
    parts: tuple[PartNeeds, ...]  # Needs of parts, in the order of their table
    storage: tuple[StorageNeed, ...]  # Tasks of the owners of file systems and buckets that exist
    money: MoneyNeeds  # Its cost
    quotas: tuple[QuotaNeed, ...]  # Service quotas that it uses
    load: tuple[LoadNeed, ...]  # Load of its control plane, by origin
    # Notes on what is open or off because of its size, its subnets or its reservations.
    remarks: tuple[str, ...]
    topology: Topology  # Its parts and their places
    spend: SpendNeeds  # Its cost a day, over the time of its windows
    decisions: tuple[Decision, ...]  # Decisions for it, with reasons
