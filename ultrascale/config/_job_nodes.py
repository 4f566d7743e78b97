"""The pools that a job may run on, as far as a cluster file can be read."""

from collections.abc import Mapping
from typing import cast

from ultrascale import catalog
from ultrascale.config._document import KeyPath
from ultrascale.config._reader import Fields, Part, maps, values
from ultrascale.config.jobs import Resources
from ultrascale.config.pools import NODE_TYPE, Nodes, Pool
from ultrascale.config.purchase import OnDemand, Spot

Chosen = Mapping[KeyPath, Part]


def names_of(parts: tuple[Part, ...]) -> frozenset[str]:
    """Return the names of the readable pools."""
    return frozenset(name for _, name in values(parts, Pool, "name", str))


def node_types_of(parts: tuple[Part, ...]) -> Mapping[KeyPath, str]:
    """Return the value of the label `node-type` on each readable pool's nodes."""
    labels = dict(maps(parts, Pool, "labels"))
    return {
        at: str(labels.get(at, {}).get(NODE_TYPE, name))
        for at, name in values(parts, Pool, "name", str)
    }


def chosen_pools(job: Fields, parts: tuple[Part, ...]) -> Chosen:
    """Return the readable pools that a job names; none where it names none, or not readably."""
    pool = job.get("pool")
    if pool is not None:
        return {at: part for at, part in _pools(parts).items() if part.fields.get("name") == pool}
    selector = cast("Mapping[str, str]", job.get("node_selector", {}))
    prefer = cast("tuple[str, ...]", job.get("prefer", ()))
    wanted = {*prefer, selector.get(NODE_TYPE)} - {None}
    types = node_types_of(parts)
    return {at: part for at, part in _pools(parts).items() if types.get(at) in wanted}


def devices_of(pool: Part, kind: str) -> tuple[int, ...]:
    """Return the accelerators of ``kind`` on a node of each type that could be read.

    Raises:
        CatalogError: No source states how many a type has.
    """
    return tuple(_accelerators(spec, kind) for spec in _specs(pool))


def processes_of(pool: Part, resources: Resources) -> int | None:
    """Return the GPUs or NeuronCores of a pod; None where there are none, or none is known."""
    specs = [spec for spec in _specs(pool) if spec.accelerator is not None]
    found = [_processes(spec.accelerator, resources) for spec in specs if spec.accelerator]
    return min(found, default=None)


def most_nodes(pool: Part) -> int | None:
    """Return the most nodes of a pool with all of its shards; None where that is not readable."""
    nodes, shards = pool.fields.get("nodes"), pool.fields.get("shards")
    if not isinstance(nodes, Nodes) or not isinstance(shards, int):
        return None
    if nodes.max is None and nodes.static is None:
        return None  # a mistake of its own
    return nodes.highest * shards


def capacity_of(pool: Part) -> tuple[str, ...]:
    """Return what its nodes are of `reserved`, `spot` and `on-demand`; empty if unreadable."""
    purchase = pool.fields.get("purchase")
    if purchase is None:
        return ()
    if isinstance(purchase, Spot):
        return ("spot",) if purchase.fallback == "none" else ("spot", purchase.fallback)
    return ("on-demand",) if isinstance(purchase, OnDemand) else ("reserved",)


def _pools(parts: tuple[Part, ...]) -> Chosen:
    return {part.at: part for part in parts if part.kind is Pool}


def _specs(pool: Part) -> list[catalog.InstanceType]:
    types = cast("tuple[str, ...]", pool.fields.get("instance_types", ()))
    return [catalog.lookup(name) for name in types]


def _accelerators(spec: catalog.InstanceType, kind: str) -> int:
    found = spec.accelerator
    return found.count if found is not None and found.kind == kind else 0


def _processes(accelerator: catalog.Accelerator, resources: Resources) -> int:
    if accelerator.kind == "nvidia":
        return accelerator.count if resources.gpu is None else resources.gpu
    devices = accelerator.count if resources.neuron is None else resources.neuron
    return devices * accelerator.neuron_cores_logical // accelerator.count
