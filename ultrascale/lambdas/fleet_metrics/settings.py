"""Settings of the fleet metrics: the plan makes this record, the schedule sends it as JSON."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """The GPU exporters."""

    path: str  # Path of the list of their pods
    selector: str  # Label selector of their pods
    port: int  # Their port
    most: int  # The most exporters to ask; they stand for the rest
    # Measure and factor of its values, by the exporter's metric
    metrics: Mapping[str, tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Services whose server publishes metrics."""

    namespaces: Collection[str]  # Their namespaces
    server_label: str  # Label of pods with the program that answers
    server: str  # Its value on pods of such services
    # Label with the place of a pod in its replica, whose first pod answers; pods that are a whole
    # replica have none
    leader_label: str
    port: str  # Name of the port that they answer at
    path: str  # Path of the metrics
    most: int  # The most pods to ask, over all services; the sample stands for the rest
    names: Mapping[str, str]  # Names of the metrics, by the fields of `MetricNames`


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window in which nodes of a pool are paid for."""

    pool: str  # The pool
    starts: float | None  # Its start, in seconds since 1970; None where the file has none
    until: float | None  # End of the nodes' use; None where the file has none
    nodes: int  # Number of nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialization:
    """Marks of a node that takes no work yet."""

    seconds: float  # Age from which such a node is broken
    taint_suffix: str  # End of the keys of drivers' start-up taints
    taints: Collection[str]  # Other start-up taints
    launched: str  # Label of nodes whose launcher says when they are initialized
    initialized: str  # Label by which it says so
    offers: Mapping[str, Sequence[str]]  # Resources of the nodes of each pool, by plugins


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Topology label of nodes: their place in AWS's network."""

    label: str  # The label
    pools: Collection[str]  # Pools whose nodes must have it
    labels: Sequence[str] = ()  # Labels of all layers that HyperNodes are made of, the lowest first
    hyper_nodes: str = ""  # Path of the list of HyperNodes; empty where none are made
    touched: str = ""  # Name of the HyperNode that is made and deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A reservation of a pool; tags may name several."""

    pool: str  # The pool
    purchase: str  # Purchase option
    # Its id, or the ARN of a training plan or a resource group; empty where tags name it
    id: str
    tags: Mapping[str, str]  # Its tags
    types: Mapping[str, int]  # Accelerators of an instance, by its type
    zones: Sequence[str]  # Zones of its nodes
    # Seconds from the start of the drain to the end; None without a window
    lead: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSettings:
    """Jobs that leave accelerators idle."""

    below_percent: float  # Use of a GPU below which it is idle
    seconds: int  # Time without use of any
    ends: bool  # Whether the job is ended then
    every: int  # Seconds between two measurements
    most: int  # The most exporters to ask
    pools: Sequence[str]  # Pools whose nodes have an exporter
    kinds: Sequence[tuple[str, str, str]]  # API group, plural and version of the kinds of jobs
    job_label: str  # Label of pods and objects with the name of their job


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """The ledger of paid accelerators."""

    bucket: str  # S3's name of its bucket
    every: int  # Seconds between two measurements
    accelerators: Mapping[str, int]  # Accelerators of an instance, by its type
    # Labels of nodes whose value is the id of their reservation
    labels: Sequence[str]
    # Reservation of the nodes of a pool without such a label: id, or ARN of a training plan
    reservations: Mapping[str, str]
    reserved: Sequence[Reserved]  # Reservations to ask AWS for
    # Labels of pods whose value is their queue, the first one first
    queues: Sequence[str]
    idle: IdleSettings | None  # None: idle jobs are not looked for

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> "LedgerSettings":
        """Return the settings in their part of the schedule's input."""
        rest = dict(fields)
        reserved = [Reserved(**own) for own in rest.pop("reserved")]
        idle = rest.pop("idle")
        return cls(reserved=reserved, idle=idle and IdleSettings(**idle), **rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The cluster's settings."""

    cluster: str  # Its name
    namespace: str  # CloudWatch namespace
    metrics: Mapping[str, Sequence[str]]  # Name and unit of the metric of each measure
    node_type_label: str  # Label with the node type
    role_label: str  # Label with the role
    capacity_label: str  # Label with the purchase option
    instance_type_label: str  # Label with the instance type
    health_label: str  # Label with HyperPod's health of a node
    healthy: str  # Its value on a healthy node
    checking: str  # Its value on a node under test
    conditions: Collection[str]  # Conditions that are false on a broken node
    pool_label: str  # Label with the name of the pool
    job_label: str  # Label of pods with the name of their job
    node_types: Mapping[str, str]  # Node type of each pool
    capacities: Sequence[str]  # Purchase options
    accelerators: Collection[str]  # Extended resources of whole accelerators
    # Share of an accelerator of each resource, such as a NeuronCore of its device
    parts: Mapping[str, float]
    teams: Mapping[str, str]  # Team of each namespace that has one
    left_out: Sequence[str]  # Namespaces without accelerators, whose pods are not read
    rates: Mapping[str, float]  # Price of a node-hour by pool, where it is known
    queues: str | None  # Path of the list of queued entries; None without queues
    queue_names: Sequence[str]  # The queues
    exporters: Exporters | None  # The GPU exporters; None without our own
    services: Services | None  # Services whose server tells its metrics; None without any
    windows: Sequence[Window]  # Windows in which nodes are paid for whether they run or not
    initialization: Initialization  # Marks of a node that takes no work yet
    topology: Topology  # Topology label of nodes
    ledger: LedgerSettings | None  # The ledger of paid accelerators; None without one

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> "Settings":
        """Return the settings in the input of the schedule, which is this record as JSON."""
        parts: Mapping[str, Callable[..., object]] = {
            "initialization": Initialization,
            "topology": Topology,
            "exporters": Exporters,
            "services": Services,
        }
        fields = dict(event)
        for key, kind in parts.items():
            fields[key] = None if event[key] is None else kind(**event[key])
        fields["windows"] = [Window(**window) for window in event["windows"]]
        ledger = event["ledger"]
        fields["ledger"] = None if ledger is None else LedgerSettings.parse(ledger)
        return cls(**fields)
