"""What the function is told with each call: the cluster file's own names, and prices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import FleetExporters, FleetInput, FleetWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """The GPU exporters that are asked.

    Attributes:
        path: Path of the list of their pods.
        selector: Label selector of their pods.
        port: Port that they answer on.
        most: How many are asked at most; the rest are taken to be like them.
        metrics: Measure by name of the exporter's metric, and by how much its value is multiplied.
    """

    path: str
    selector: str
    port: int
    most: int
    metrics: Mapping[str, tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When nodes of a pool are paid for.

    Attributes:
        pool: The pool.
        starts: From when on, in seconds since 1970; minus infinity where the file knows no start.
        until: Until when they can be used; infinity where it knows no end.
        nodes: How many.
    """

    pool: str
    starts: float
    until: float
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How a node says where in AWS's network it is.

    Attributes:
        label: Label that every such node has.
        pools: Pools whose nodes have to say it.
    """

    label: str
    pools: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The cluster as its plan has it.

    Attributes:
        cluster: Its name.
        namespace: CloudWatch namespace.
        metrics: Name and unit of the metric of each measure.
        node_type_label: Label with the node type.
        role_label: Label with the role.
        capacity_label: Label with the purchase option.
        instance_type_label: Label with the instance type.
        health_label: Label with HyperPod's word on a node.
        healthy: Its value on a node that takes work.
        checking: Its value on a node that is being checked.
        conditions: Conditions of a node that are false when it is broken.
        pool_label: Label with the name of the pool.
        job_label: Label of pods with the name of their job.
        node_types: Node type of each pool.
        capacities: Purchase options.
        accelerators: Extended resources of whole accelerators.
        parts: What each resource is of a whole accelerator: a NeuronCore, of its device.
        teams: Team of each namespace that has one.
        left_out: Namespaces of which no pod is looked at: their pods ask for no accelerators.
        prices: Price of an hour by instance type; what has no price has none here.
        queues: Path of the list of what waits in queues; None where there are none.
        queue_names: The queues.
        exporters: The GPU exporters; None where there are none of ours.
        windows: When nodes are paid for whether they run or not.
        topology: How nodes say where in AWS's network they are.
    """

    cluster: str
    namespace: str
    metrics: Mapping[str, tuple[str, str]]
    node_type_label: str
    role_label: str
    capacity_label: str
    instance_type_label: str
    health_label: str
    healthy: str
    checking: str
    conditions: frozenset[str]
    pool_label: str
    job_label: str
    node_types: Mapping[str, str]
    capacities: Sequence[str]
    accelerators: frozenset[str]
    parts: Mapping[str, float]
    teams: Mapping[str, str]
    left_out: Sequence[str]
    prices: Mapping[str, float]
    queues: str | None
    queue_names: Sequence[str]
    exporters: Exporters | None
    windows: Sequence[Window]
    topology: Topology

    @classmethod
    def parse(cls, event: "FleetInput") -> "Settings":
        """Return the settings in the input of the schedule."""
        labels = event["Labels"]
        return cls(
            cluster=event["Cluster"],
            namespace=event["Namespace"],
            metrics={key: (each["Name"], each["Unit"]) for key, each in event["Metrics"].items()},
            node_type_label=labels["NodeType"],
            role_label=labels["Role"],
            capacity_label=labels["Capacity"],
            instance_type_label=labels["InstanceType"],
            health_label=labels["Health"],
            healthy=event["Healthy"],
            checking=event["Checking"],
            conditions=frozenset(event["Conditions"]),
            pool_label=labels["Pool"],
            job_label=labels["Job"],
            node_types=event["NodeTypes"],
            capacities=event["Capacities"],
            accelerators=frozenset(event["Accelerators"]),
            parts=event["Parts"],
            teams=event["Teams"],
            left_out=event["LeftOut"],
            prices=event["Prices"],
            queues=event["Queues"],
            queue_names=event["QueueNames"],
            windows=[_window(each) for each in event["Windows"]],
            topology=Topology(
                label=event["Topology"]["Label"], pools=frozenset(event["Topology"]["Pools"])
            ),
            exporters=None if event["Exporters"] is None else _exporters(event["Exporters"]),
        )


def _window(told: "FleetWindow") -> Window:
    return Window(
        pool=told["Pool"],
        starts=_seconds(told["Starts"], -math.inf),
        until=_seconds(told["Until"], math.inf),
        nodes=told["Nodes"],
    )


def _exporters(told: "FleetExporters") -> Exporters:
    metrics = told["Metrics"].items()
    return Exporters(
        path=told["Path"],
        selector=told["Selector"],
        port=told["Port"],
        most=told["Most"],
        metrics={name: (each["Measure"], each["Times"]) for name, each in metrics},
    )


def _seconds(moment: str | None, unknown: float) -> float:
    return unknown if moment is None else datetime.fromisoformat(moment).timestamp()
