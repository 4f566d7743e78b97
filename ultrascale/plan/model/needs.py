"""Needs of a cluster: numbers, each with its formula and sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from ultrascale.plan.model.access import AccessEntryPlan
from ultrascale.plan.model.backend import IdentityPlan
from ultrascale.plan.model.decisions import Decision
from ultrascale.plan.model.keys import KeyPolicyPlan
from ultrascale.plan.model.network import SubnetKind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that follows from a cluster file at its full size.

    Attributes:
        id: Where it belongs and what it is, such as ``train.vcpus``.
        value: The number; None where no source states what it follows from.
        unit: What it counts.
        formula: The sum in words and numbers; why there is none, where ``value`` is None.
        sources: Pages that state its terms.
        without: Pools, or terms, of which it holds nothing, as theirs is not known.
    """

    id: str
    value: float | None
    unit: str
    formula: str
    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


Figures = Mapping[str, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNeeds:
    """Needs of a pool, with all of its shards.

    Attributes:
        pool: Its name in the cluster file.
        figures: By the part of their id after the pool's name, in one order for all pools.
    """

    pool: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetNeeds:
    """The subnets of one kind in one zone, held against the nodes that take addresses of them.

    Attributes:
        kind: What they are for.
        zone: Their zone.
        ranges: How many there are of each mask, such as ``/18``.
        cidrs: Their ranges, in the order in which they were added.
        figures: By the last part of their id; none of nodes where the kind holds none.
        holds_skew: Whether the zone holds every pool that may launch here with all of its nodes,
            as a pool of several zones may land wholly in one; None where the kind holds no nodes.
    """

    kind: SubnetKind
    zone: str
    ranges: Mapping[str, int]
    cidrs: tuple[str, ...]
    figures: Figures
    holds_skew: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneNeeds:
    """Load of a cluster on its control plane.

    Attributes:
        tier: The file's tier, in EKS's own words.
        smallest: The smallest tier that fits; None where no published one does.
        state: Whether the file's tier fits, a larger one does, or none that EKS publishes.
        advice: What to do about it; None where the file's tier fits.
        figures: By the part of their id after ``control_plane.``.
    """

    tier: str
    smallest: str | None
    state: TierState
    advice: str | None
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNeeds:
    """The window of a Capacity Block or a training plan.

    Attributes:
        pool: Its pool.
        purchase: Which of the two it is.
        starts: Its start.
        usable_until: When its nodes are drained.
        ends: Its end.
        state: How it lies to the time that the plan is made for; None without such a time.
        note: What is to be known of it; None where it is as it should be.
        figures: ``usable_hours``, ``drain_minutes``, and with such a time ``hours_ahead`` or
            ``hours_left``.
    """

    pool: str
    purchase: str
    starts: datetime
    usable_until: datetime
    ends: datetime
    state: WindowState | None
    note: str | None
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMoney:
    """Cost of a pool as the file buys it, beside the same nodes On-Demand.

    Attributes:
        pool: Its name in the cluster file.
        purchase: How the file buys it.
        figures: By the last part of their id.
        holds_when: When the file's purchase costs less than On-Demand.
    """

    pool: str
    purchase: str
    figures: Figures
    holds_when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyItem:
    """A thing beside nodes that a cluster pays for.

    Attributes:
        name: The thing, such as ``NAT gateways``.
        service: Its service in the price list.
        item: Its item there.
        kind: ``baseline`` is paid as long as the cluster stands; ``usage`` by what goes through it,
            and is in no sum.
        pool: The pool with whose window it starts and ends; None where it stands all of the time.
        quantity: How many units, in a month where ``unit`` is of usage; None where the file does
            not say it.
        unit: What the price is for one of, as the price list has it.
        unit_price: Price of one unit in ``currency``; None where none is known.
        currency: Currency of the price.
        valid_on: Day of the price; None without one.
        source: Page that states the price; None without one.
        usd_per_hour: Its price for an hour.
        usd_per_month: Its price for 730 hours.
    """

    name: str
    service: str
    item: str
    kind: Literal["baseline", "usage"]
    pool: str | None
    quantity: float | None
    unit: str
    unit_price: float | None
    currency: str
    valid_on: date | None
    source: str | None
    usd_per_hour: Figure
    usd_per_month: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyNeeds:
    """Cost of all that the file buys, beside the same fleet On-Demand.

    Attributes:
        items: Things beside nodes.
        unpriced: Items of ``items`` without a price, by their names.
        unpriced_types: Types without a price, by the pool whose sum they are missing in.
        oldest: Day of the oldest price in the sums; None where no price is known.
        newest: Day of the newest.
        spot_at_on_demand: Pools whose Spot nodes are counted at the On-Demand price.
        pools: In file order.
        figures: Sums, by the part of their id after ``money.``.
        half: When the file costs half of the same fleet On-Demand.
        assumptions: What all of it rests on.
    """

    items: tuple[MoneyItem, ...]
    unpriced: tuple[str, ...]
    unpriced_types: Mapping[str, tuple[str, ...]]
    oldest: date | None
    newest: date | None
    spot_at_on_demand: tuple[str, ...]
    pools: tuple[PoolMoney, ...]
    figures: Figures
    half: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedLimit:
    """Quota value that AWS has granted above the published one, as the file says.

    Attributes:
        code: Code of the quota in Service Quotas.
        value: How many.
        reference: The case or agreement that grants them.
    """

    code: str
    value: int
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaNeed:
    """A service quota, held against what a cluster needs of it.

    Attributes:
        code: Its code in Service Quotas; None where it has to be looked up there by its name.
        service: Code of its service there; None where that is not known.
        name: Its name there.
        needed: What the cluster needs.
        default: How many it is before AWS raises it; None where that is not known.
        most: How many at most AWS publishes that it grants; None where it publishes none.
        agreed: What AWS has granted of it, as the file says; None where it says nothing.
        state: Whether the default holds it, AWS has to be asked, what is agreed holds it, more
            than AWS publishes would have to be granted, or that cannot be said offline.
        clusters: Into how many clusters, each with a VPC of its own, the nodes would have to be
            divided to stay within ``most``; None where they need not be.
        advice: What to ask of whom, and what to do instead; None where nothing is to be done.
    """

    code: str | None
    service: str | None
    name: str
    needed: Figure
    default: int | None
    most: int | None
    agreed: AgreedLimit | None = None
    state: NeedState
    clusters: Figure | None = None
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadNeed:
    """A part of what the control plane carries.

    Attributes:
        group: Kind of load.
        name: Origin of the load.
        needed: How much it is.
        most: Largest value that somebody published, or a quota; None where there is none.
        agreed: What AWS has granted of it, as the file says; None where it says nothing.
        state: Whether it is within ``most``, AWS may be asked for more, what is agreed holds it,
            nobody has published as much, or nothing is published of it.
        advice: What to do about it; None where nothing is to be done.
    """

    group: LoadGroup
    name: str
    needed: Figure
    most: float | None
    agreed: AgreedLimit | None
    state: LoadState
    advice: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaToRaise:
    """A service quota whose default does not hold the cluster.

    Attributes:
        code: Its code in Service Quotas; None where it has to be looked up there by its name.
        service: Code of its service there; None where that is not known.
        name: Its name there.
        needed: Value to ask for: what the cluster needs, rounded up. Other clusters of the account
            come on top.
        default: How many it is before AWS raises it.
        most: How many at most AWS publishes that it grants; None where it publishes none.
        command: Command of the AWS CLI that requests it; None where no request raises it so far.
    """

    code: str | None
    service: str | None
    name: str
    needed: int
    default: int
    most: int | None
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyAnswer:
    """Price of the cluster at full size.

    Attributes:
        usd_per_hour: Of all that has a known price and is paid by the hour or month.
        usd_per_month: The same for 730 hours, of a window for those of it alone.
        oldest: Day of the oldest price in it; None where no price is known.
        newest: Day of the newest.
        nodes: Nodes of all pools at most, which the sums are of.
        nodes_at_first: Nodes that the pools are made with.
        nodes_priced: How many of ``nodes`` have a known price.
        paid_before: Pools that are paid up front, at a price that only AWS's offer states, and so
            in no sum.
        unpriced: Parts of the cluster without a known price.
        lacking: The same and ``paid_before`` in words of readers: instance types, those of most
            nodes first, then pools that are paid up front, then things beside nodes.
        without_count: How many parts ``paid_before`` and ``unpriced`` are.
        spot_at_on_demand: Pools whose Spot nodes are counted at the On-Demand price, the most that
            they cost: with one, no sum is a lower bound.
        excluded: Kinds of usage that are in no sum.
        command: Command that gets the prices of ``unpriced``; None where no price list has any.
    """

    usd_per_hour: Figure
    usd_per_month: Figure
    oldest: date | None
    newest: date | None
    nodes: int
    nodes_at_first: int
    nodes_priced: int
    paid_before: tuple[str, ...]
    unpriced: tuple[str, ...]
    lacking: tuple[str, ...]
    without_count: int
    spot_at_on_demand: tuple[str, ...]
    excluded: tuple[str, ...]
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The largest risk of a cluster, the first that applies in the order of ``RiskKind``.

    Attributes:
        kind: Kind of the risk.
        subject: The pool, quota, zone or load that it is of; empty where there is none.
        text: The risk, in one sentence.
        advice: What to do about it; None where nothing is to be done.
        figure: Its size; None where it has none.
    """

    kind: RiskKind
    subject: str
    text: str
    advice: str | None
    figure: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """Answers to the first questions about a cluster.

    Attributes:
        verdict: ``fits``; ``raise`` where quotas or the tier are to be raised first; ``beyond``
            where it needs more than AWS publishes; ``over`` where a window is over.
        why: Reasons of the verdict.
        quotas: Quotas to raise beyond their default, accelerated instances first.
        quota_count: How many they are.
        quotas_unknown: Names of quotas whose default no source states.
        money: Its price.
        window: The next window that is not over, or the first where the plan is made for no time.
        risk: The largest risk.
    """

    verdict: Verdict
    why: tuple[str, ...]
    quotas: tuple[QuotaToRaise, ...]
    quota_count: int
    quotas_unknown: tuple[str, ...]
    money: MoneyAnswer
    window: WindowNeeds | None
    risk: Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNeeds:
    """Time of the checkpoints of a job template, or of one job on all nodes of a pool.

    Attributes:
        subject: The template or the pool.
        model: Model that it trains.
        place: Place of its checkpoints; empty where the cluster file has none.
        figures: By the last part of their id.
    """

    subject: str
    model: str
    place: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceNeeds:
    """Nodes and money of a service.

    Attributes:
        service: Its name.
        pools: Pools that it may run on.
        figures: By the last part of their id.
        is_bound: Whether its money is the most that it costs: Spot at the On-Demand price.
    """

    service: str
    pools: tuple[str, ...]
    figures: Figures
    is_bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNeed:
    """A task of the owner of a file system or bucket that exists, before a deployment.

    Attributes:
        name: Name of the storage in the cluster file.
        resource: Its id, or S3's name of it.
        owner: Its account; None for the cluster's.
        security_group: Security group that the task is about; None for others.
        need: What has to be so.
        why: What fails otherwise.
        statements: Statements that the resource's policy needs.
        source: Address of the page that says so.
    """

    name: str
    resource: str
    owner: str | None
    security_group: str | None
    need: str
    why: str
    statements: tuple[Mapping[str, object], ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNeeds:
    """Needs of a cluster at its full size.

    Attributes:
        name: The cluster.
        region: Its Region.
        at: The time that its windows are held against; None shows them unjudged.
        answer: Whether it fits, what to raise, its price, its next window, its largest risk.
        pools: In file order.
        totals: Sums of the pools' figures, by the same keys.
        subnets: One for each kind of subnet in each zone.
        control_plane: What it asks of its control plane.
        launch: How long its first step takes to begin, by the part of their id after ``launch.``.
        placement: How long gangs take to be placed by network topology; None where they are not.
        checkpoints: How long checkpoints take, and how often they pay.
        services: Nodes and money of each service, in file order.
        queues: Who is guaranteed which nodes; None without Kueue.
        calendar: Windows of Capacity Blocks and training plans, in file order.
        repairs: What a broken node of each pool meets, in file order.
        access: Roles that the file lets into the cluster, and what EKS allows each.
        callers: Callers of the backend, and what each may submit; None without the backend.
        keys: What has to stand in the policies of the user's own KMS keys.
        storage: Tasks of the owners of file systems and buckets that exist.
        money: What it costs.
        quotas: Those that it needs something of.
        load: What its control plane carries, by origin.
        remarks: What is open or off because of the cluster's size, its subnets or its reservations.
        topology: Its parts, and where each lies.
        spend: What it costs a day, over the time of its windows.
        decisions: What was decided for it, and why.
    """

    name: str
    region: str
    at: datetime | None
    answer: PlanAnswer
    pools: tuple[PoolNeeds, ...]
    totals: Figures
    subnets: tuple[SubnetNeeds, ...]
    control_plane: ControlPlaneNeeds
    launch: Figures
    placement: PlacementPlan | None
    checkpoints: tuple[CheckpointNeeds, ...]
    services: tuple[ServiceNeeds, ...]
    queues: QueueNeeds | None
    calendar: tuple[WindowNeeds, ...]
    repairs: tuple[RepairPlan, ...]
    access: tuple[AccessEntryPlan, ...]
    callers: IdentityPlan | None
    keys: tuple[KeyPolicyPlan, ...]
    storage: tuple[StorageNeed, ...]
    money: MoneyNeeds
    quotas: tuple[QuotaNeed, ...]
    load: tuple[LoadNeed, ...]
    remarks: tuple[str, ...]
    topology: Topology
    spend: SpendNeeds
    decisions: tuple[Decision, ...]
