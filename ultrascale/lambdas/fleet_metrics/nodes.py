"""Measures of nodes: accelerators, cost, health and missing nodes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ..ledger import CORDONED, JOINING, UNHEALTHY
from .measures import CAPACITY, NODE_TYPE, Key, Measures, whole
from .paid import Paid
from .settings import Initialization, Settings, Topology

if TYPE_CHECKING:
    from ..kubernetes_objects import Object, Status

RESERVED = "reserved"
BURST = "burst"


class Place(NamedTuple):
    """Place of a pod."""

    node_type: str  # Node type of its node
    idle_counts: bool  # Whether an idle accelerator there is reserved and usable


@dataclass
class Nodes:
    """Places and counts of nodes; the nodes' objects are not kept in memory."""

    # Place of each node, by its name
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    reserved: int = 0  # Accelerators that are reserved and usable
    pools: Counter[str] = field(default_factory=Counter[str])  # Number of nodes of each pool
    # Number of nodes of each group of the network, by its label and the label's value
    groups: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    # Why nodes that joined long ago take no work, by their name
    uninitialized: dict[str, str] = field(default_factory=dict[str, str])


def measure_nodes(
    nodes: "Iterable[Object]",
    settings: Settings,
    measures: Measures,
    *,
    now: float,
    paid: Paid | None = None,
) -> Nodes:
    """Add up the measures of ``nodes`` one by one, and return the nodes' places."""
    places = Nodes()
    # Equal places share one object: a fleet has a hundred thousand nodes.
    kinds: dict[Place, Place] = {}
    _make_known(settings, measures)
    for node in nodes:
        labels = node["metadata"].get("labels", {})
        node_type = labels.get(settings.node_type_label)
        if node_type is None:
            # The pool is not in the cluster file.
            continue
        keys: tuple[Key, ...] = (None, (NODE_TYPE, node_type))
        pool = labels.get(settings.pool_label, "")
        places.pools[pool] += 1
        accelerators = _accelerators(node, settings)
        measures.add("nodes", 1, *keys)
        measures.add("accelerators", accelerators, *keys)
        start = settings.initialization
        young, lack = _age_seconds(node, now) < start.seconds, _lack(node, pool, start)
        late = bool(lack) and not young
        if late:
            places.uninitialized[node["metadata"]["name"]] = lack
            measures.add("nodes_not_initialized", 1, None)
        broken = late or _is_broken(node, settings)
        measures.add("broken_nodes", broken, *keys)
        _add_topology(labels, pool, settings.topology, places, measures)
        if capacity := labels.get(settings.capacity_label):
            measures.add("nodes", 1, (CAPACITY, capacity))
            keys = (*keys, (CAPACITY, capacity))
        if (rate := settings.rates.get(pool)) is None:
            measures.add("unpriced_nodes", 1, None)
        else:
            measures.add("spend", rate, *keys)
        _add_health(labels, settings, measures)
        role = labels.get(settings.role_label)
        if role == BURST:
            measures.add("burst_nodes", 1, None)
        counts = role == RESERVED and not broken and _is_usable(node, settings)
        if counts:
            places.reserved += accelerators
        if paid is not None:
            reasons = [*_reasons(node, settings, lacks=bool(lack), young=young)]
            paid.add_node(node, accelerators, reasons, settings)
        place = Place(node_type, counts)
        places.places[node["metadata"]["name"]] = kinds.setdefault(place, place)
    return places


def measure_missing(nodes: Nodes, settings: Settings, measures: Measures, *, now: float) -> None:
    """Count the missing nodes among those paid for at ``now``, in seconds since 1970."""
    for window in settings.windows:
        starts = -math.inf if window.starts is None else window.starts
        until = math.inf if window.until is None else window.until
        due = window.nodes if starts <= now < until else 0
        measures.add("nodes_missing", max(due - nodes.pools[window.pool], 0), None)


def _make_known(settings: Settings, measures: Measures) -> None:
    """Set all measures to 0: a gap in a metric would mean that the function did not run."""
    keys: list[Key] = [(NODE_TYPE, name) for name in sorted({*settings.node_types.values()})]
    for measure in ("nodes", "broken_nodes", "accelerators", "accelerators_in_use"):
        measures.add(measure, 0, None, *keys)
    measures.add("nodes", 0, *((CAPACITY, name) for name in settings.capacities))
    for measure in (
        "burst_nodes",
        "unpriced_nodes",
        "nodes_in_recovery",
        "nodes_in_checks",
        "nodes_not_initialized",
    ):
        measures.add(measure, 0, None)
    if settings.topology.pools:
        measures.add("nodes_without_topology", 0, None)


def _accelerators(node: "Object", settings: Settings) -> int:
    """Return the number of a node's accelerators that pods can use: failed devices do not count."""
    amounts = node["status"].get("allocatable", {})
    return sum(whole(amounts[name]) for name in amounts.keys() & settings.accelerators)


def _add_health(labels: Mapping[str, str], settings: Settings, measures: Measures) -> None:
    health = labels.get(settings.health_label)
    if health is None or health == settings.healthy:
        return
    checked = health == settings.checking
    measures.add("nodes_in_checks" if checked else "nodes_in_recovery", 1, None)


def _is_broken(node: "Object", settings: Settings) -> bool:
    """Return whether the kubelet or the node monitoring agent reports the node as broken."""
    conditions = conditions_of(node["status"])
    failed = any(conditions.get(name) == "False" for name in settings.conditions)
    return failed or conditions.get("Ready") != "True"


def conditions_of(status: "Status") -> Mapping[str, str]:
    """Return the conditions of an object by their types."""
    return {condition["type"]: condition["status"] for condition in status.get("conditions", ())}


def _reasons(node: "Object", settings: Settings, *, lacks: bool, young: bool) -> Iterator[str]:
    """Yield the reasons of a node's idle accelerators; a ``young`` node may lack something."""
    labels = node["metadata"].get("labels", {})
    health = labels.get(settings.health_label, settings.healthy)
    states = conditions_of(node["status"])
    stopped = lacks or states.get("Ready") != "True"
    joins = health == settings.checking or (young and stopped)
    if joins:
        yield JOINING
    failed = any(states.get(name) == "False" for name in settings.conditions)
    if failed or health not in (settings.healthy, settings.checking) or (stopped and not joins):
        yield UNHEALTHY
    if node["spec"].get("unschedulable"):
        yield CORDONED


def _add_topology(
    labels: Mapping[str, str], pool: str, topology: Topology, places: Nodes, measures: Measures
) -> None:
    if pool in topology.pools and topology.label not in labels:
        measures.add("nodes_without_topology", 1, None)
    for label in topology.labels:
        if label not in labels:
            # Volcano also leaves such a node out of its network groups.
            break
        places.groups[label, labels[label]] += 1


def _age_seconds(node: "Object", now: float) -> float:
    created = node["metadata"].get("creationTimestamp")
    return math.inf if created is None else now - datetime.fromisoformat(created).timestamp()


def _lack(node: "Object", pool: str, start: Initialization) -> str:
    """Return what a node lacks to take work; empty if it has all."""
    metadata = node["metadata"]
    for taint in node["spec"].get("taints", ()):
        if taint["key"].endswith(start.taint_suffix) or taint["key"] in start.taints:
            return f"taint {taint['key']}"
    amounts = node["status"].get("allocatable", {})
    for resource in start.offers.get(pool, ()):
        if not whole(amounts.get(resource, "0")):
            return f"no {resource}"
    labels = metadata.get("labels", {})
    if start.launched in labels and labels.get(start.initialized) != "true":
        return f"no label {start.initialized}"
    return ""


def _is_usable(node: "Object", settings: Settings) -> bool:
    """Return whether HyperPod reports a node as healthy and the node is not cordoned."""
    health = node["metadata"]["labels"].get(settings.health_label, settings.healthy)
    return health == settings.healthy and not node["spec"].get("unschedulable")
