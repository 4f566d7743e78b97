"""Rules of a pool: its keys, the network and the other pools."""

import math
import re
from collections.abc import Iterable

from ultrascale import catalog
from ultrascale.catalog import kubernetes, matrix
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistake, Mistakes, refuse
from ultrascale.config._parts import Every, Readable
from ultrascale.config._rules import rule
from ultrascale.config.karpenter import Karpenter
from ultrascale.config.network import Network
from ultrascale.config.pools import (
    FALLBACK_SUFFIX,
    TWO_OWNERS,
    Nodes,
    Pool,
    loses_efa,
    node_pools_of,
    spans_nodes,
    zones_of,
)
from ultrascale.config.purchase import CapacityBlock, OnDemand, Spot
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.storage import Storage

_ANOTHER_TYPE = "choose another instance type"

# A NodePool's name is the value of a label on its nodes.
# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
_LONGEST_LABEL_VALUE = 63

# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html
_AUTO_MODE_NAMES = frozenset({"general-purpose", "system-nodes"})


@rule
def counts_fit(nodes: Nodes) -> Mistakes:
    if nodes.static is not None:
        for key in sorted(nodes.model_fields_set & {"min", "max"}):
            yield refuse(key, "a second count beside static", "keep static, or min and max")
        if nodes.static < 1:
            todo = "write at least 1, or max for a pool that may be empty"
            yield refuse("static", "a pool that never has a node", todo)
    elif nodes.max is None:
        yield refuse("", "no count of nodes", "add max, or static for a fixed count")
    elif nodes.max < 1:
        todo = "write at least 1; min: 0 lets the pool be empty"
        yield refuse("max", "a pool that never has a node", todo)
    elif nodes.min > nodes.max:
        yield refuse("min", f"more than max: {nodes.max}", f"write at most {nodes.max}")


@rule
def name_is_not_auto_modes(pool: Pool) -> Mistakes:
    if pool.is_auto_mode and pool.name in _AUTO_MODE_NAMES:
        wrong = "the name of a NodePool that EKS Auto Mode or this product makes"
        yield refuse("name", wrong, "choose another, such as the name of its accelerator")


@rule
def name_has_room(pool: Pool) -> Mistakes:
    suffix = f"-{pool.shards}" if pool.shards > 1 else ""
    if isinstance(pool.purchase, Spot) and pool.purchase.fallback != "none":
        suffix += FALLBACK_SUFFIX
    excess = len(pool.name) + len(suffix) - _LONGEST_LABEL_VALUE
    if excess > 0:
        wrong = f"too long for a node label once {suffix} is added"
        yield refuse("name", wrong, f"write at most {len(pool.name) - excess} characters")


@rule
def one_kind_of_hardware(pool: Pool) -> Mistakes:
    if len(pool.instance_types) == 1:
        return
    specs = pool.specs
    kinds = {spec.accelerator.kind if spec.accelerator else "none" for spec in specs}
    if len(kinds) > 1:
        wrong = f"types with unlike accelerators in one pool ({', '.join(sorted(kinds))})"
        yield refuse("instance_types", wrong, "make a pool of each kind")
    architectures = {spec.architecture for spec in specs}
    if len(architectures) > 1:
        wrong = f"types of unlike architectures in one pool ({', '.join(sorted(architectures))})"
        yield refuse("instance_types", wrong, "make a pool of each architecture")


@rule
def provisioner_launches_the_types(pool: Pool) -> Mistakes:
    for number, name in enumerate(pool.instance_types):
        spec = catalog.lookup(name)
        wrong = matrix.why_not_launched(pool.provisioner, spec)
        if wrong is not None:
            todo = "use managed-node-group" if matrix.can_be_planned(spec) else _ANOTHER_TYPE
            yield refuse(f"instance_types.{number}", wrong, todo)


@rule
def karpenter_is_installed(
    pool: Pool, pools: Readable[Pool], karpenter: Karpenter | None
) -> Mistakes:
    if not pool.is_karpenter or karpenter is not None:
        return
    if any(pool.is_auto_mode for pool in pools):
        yield refuse("provisioner", TWO_OWNERS, "use auto-mode, or a cluster for each")
    else:
        todo = "add karpenter: {version: …} to the cluster file"
        yield refuse("provisioner", "Karpenter is not installed", todo)


@rule
def zones_have_subnets(pool: Pool, network: Network) -> Mistakes:
    # Without any subnet or zone, another mistake names the missing key.
    for number, zone in enumerate(pool.zones if network.zone_names else ()):
        if zone not in network.zone_names:
            yield refuse(f"zones.{number}", *network.why_no_subnet(), got=repr(zone))
        elif network.vpc is not None:
            accelerated = any(spec.accelerator for spec in pool.specs)
            if zone not in (zones := network.zones_for(accelerated=accelerated)):
                use = "accelerated" if accelerated else "nodes"
                wrong = f"no subnet of this zone has use: {use}"
                todo = f"use {' or '.join(zones)}" if zones else f"add use: {use} to a subnet"
                yield refuse(f"zones.{number}", wrong, todo, got=repr(zone))


@rule
def counts_act(pool: Pool) -> Mistakes:
    if pool.is_node_pool and pool.nodes.static is None and pool.nodes.min > 0:
        wrong = f"{pool.provisioner} pools that scale have no minimum"
        yield refuse("nodes.min", wrong, "leave it out, or use static for a fixed count")


@rule
def static_pools_are_reserved(pool: Pool) -> Mistakes:
    if pool.is_node_pool and pool.role == "burst" and pool.nodes.static is not None:
        wrong = "a fixed count in a pool of role burst, which comes and goes with its pods"
        yield refuse("nodes.static", wrong, "write role: reserved, or nodes.max for a burst pool")


@rule
def managed_group_holds_the_nodes(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    most = matrix.NODES_PER_MANAGED_NODE_GROUP
    key, count = pool.nodes.upper_count
    # A Capacity Block has fewer, and another rule says so.
    if not pool.is_managed or pool.purchase.option == "capacity-block" or count <= most:
        return
    groups = math.ceil(count * pool.shards / most)
    wrong = f"more nodes than the {most} that EKS lets a managed node group have"
    todo = f"use {node_pools_of(pools)}"
    if groups <= matrix.MANAGED_NODE_GROUPS:
        nodes = math.ceil(count * pool.shards / groups)
        todo = f"make {groups} shards or pools of {nodes} nodes each, or {todo}"
    yield refuse(f"nodes.{key}", wrong, todo)


@rule
def pool_fits_into_a_cluster(pool: Pool) -> Mistakes:
    _, count = pool.nodes.upper_count
    total, most = count * pool.shards, kubernetes.NODES_PER_CLUSTER
    if pool.shards > 1 and total > most:
        wrong = f"shards of {total} nodes together, and no cluster has more than {most}"
        yield refuse("shards", wrong, f"write at most {most // count}")


@rule
def system_pool_is_there_first(pool: Pool) -> Mistakes:
    if pool.role != "system":
        return
    if pool.facts.needs_controllers:
        wrong = f"{pool.provisioner} cannot launch this pool, as its own controllers run there"
        yield refuse("provisioner", wrong, "use managed-node-group")
    elif pool.is_node_group and pool.nodes.lowest < 1:
        wrong = "a system pool that may be empty: nothing would scale it up"
        got = None if "nodes" in pool.model_fields_set else ""
        yield refuse("nodes", wrong, "set nodes.min to at least 1", got=got)


@rule
def system_pool_has_no_accelerators(pool: Pool) -> Mistakes:
    for number, name in enumerate(pool.instance_types if pool.role == "system" else ()):
        if catalog.lookup(name).accelerator is not None:
            wrong = "an accelerated type in a system pool: its taint keeps every controller off"
            yield refuse(f"instance_types.{number}", wrong, "use a type without accelerators")


@rule
def placement_group_has_one_zone(pool: Pool, network: Network) -> Mistakes:
    zones = zones_of(pool, network)
    if pool.placement_group and len(zones) > 1:
        wrong = "a cluster placement group lives in one zone"
        yield refuse("zones", wrong, "keep one zone", got=yaml_list(zones))


@rule
def placement_group_takes_the_types(pool: Pool) -> Mistakes:
    for number, name in enumerate(pool.instance_types if pool.placement_group else ()):
        if not catalog.lookup(name).placement_group:
            wrong = "a type that no cluster placement group takes"
            yield refuse(f"instance_types.{number}", wrong, "leave placement_group out")


@rule
def efa_has_one_zone(pool: Pool, network: Network) -> Mistakes:
    zones = zones_of(pool, network)
    if pool.efa == "all" and len(zones) > 1:
        wrong = "EFA does not reach from zone to zone"
        yield refuse("zones", wrong, "keep one zone, or set efa: auto", got=yaml_list(zones))


@rule
def efa_has_one_type(pool: Pool) -> Mistakes:
    if pool.efa == "all" and len(pool.instance_types) > 1:
        wrong = "the layout of EFA interfaces fits one instance type"
        yield refuse("instance_types", wrong, "make a pool of each type, or set efa: auto")


@rule
def efa_is_given_up_knowingly(pool: Pool, network: Network) -> Mistakes:
    """Refuse nodes that lose EFA by another key: jobs would use TCP, and say nothing.

    A Spot pool needs its choice of types and zones, and gets a warning. Other rules refuse
    reservations of several zones, and Capacity Blocks of several types.
    """
    lost = loses_efa(pool, network)
    if lost == "types" and not isinstance(pool.purchase, Spot | CapacityBlock):
        wrong = "nodes of a pool of several types get no EFA"
        todo = "keep one type, or write efa: none"
        yield refuse("instance_types", wrong, todo, got=yaml_list(pool.instance_types))
    elif lost == "zones" and isinstance(pool.purchase, OnDemand) and spans_nodes(pool):
        wrong = "nodes of a pool in several zones get no EFA"
        todo = "keep one zone, or write efa: none"
        yield refuse("zones", wrong, todo, got=yaml_list(zones_of(pool, network)))


@rule
def efa_is_there(pool: Pool) -> Mistakes:
    for number, spec in enumerate(pool.specs if pool.efa == "all" else ()):
        if not spec.efa_cards:
            wrong = "a type without EFA"
            yield refuse(f"instance_types.{number}", wrong, "set efa: none")


def fixed_group_mistakes(pool: Pool) -> Mistakes:
    """Yield counts and types of a pool that groups of a fixed size do not take."""
    facts = pool.facts
    if not facts.is_fixed or not matrix.cell(pool.provisioner, pool.purchase.option).works:
        return
    key, count = pool.nodes.upper_count
    if pool.nodes.static is None and count:
        wrong = f"a count that scales: nothing scales {facts.word}'s instance groups"
        yield refuse(f"nodes.{key}", wrong, "write static for a fixed count")
    if facts.nodes_per_group is not None and count > facts.nodes_per_group:
        wrong = f"more than the {facts.nodes_per_group} instances of a {facts.word} group"
        yield refuse(f"nodes.{key}", wrong, "write shards of fewer nodes")
    if facts.types_per_group is not None and len(pool.instance_types) > facts.types_per_group:
        wrong = f"more than the {facts.types_per_group} types of a {facts.word} group"
        yield refuse("instance_types", wrong, "leave some out", got=str(len(pool.instance_types)))


@rule
def node_group_takes_the_types(pool: Pool) -> Mistakes:
    most = matrix.TYPES_PER_AUTO_SCALING_GROUP
    if pool.is_managed:
        most = matrix.TYPES_PER_MANAGED_NODE_GROUP
    if pool.is_node_group and len(pool.instance_types) > most:
        wrong = f"more instance types than the {most} that a group of {pool.provisioner} takes"
        yield refuse("instance_types", wrong, "leave some out", got=str(len(pool.instance_types)))


@rule
def shards_have_names_of_their_own(pools: Readable[Pool]) -> Mistakes:
    """Yield shards, named after pool and number, that have another pool's name."""
    for pool in pools:
        pattern = re.compile(rf"{re.escape(pool.name)}-(\d+)")
        for other in pools.placed if pool.shards > 1 else ():
            match = pattern.fullmatch(other.item.name)
            if match and int(match[1]) <= pool.shards:
                wrong = f"the name of a shard of pool {pool.name}"
                yield Mistake((*other.at, "name"), wrong, "choose another")


@rule
def fallbacks_have_names_of_their_own(pools: Readable[Pool]) -> Mistakes:
    """Yield On-Demand fallbacks of Spot pools that have the name of another pool."""
    for pool in pools:
        if not isinstance(pool.purchase, Spot) or pool.purchase.fallback == "none":
            continue
        number = r"-\d+" if pool.shards > 1 else ""
        pattern = re.compile(re.escape(pool.name) + number + re.escape(FALLBACK_SUFFIX))
        for other in pools.placed:
            if pattern.fullmatch(other.item.name):
                wrong = f"the name of the NodePool that pool {pool.name} falls back to"
                yield Mistake((*other.at, "name"), wrong, "choose another")


@rule
def managed_node_groups_fit(pools: Readable[Pool]) -> Mistakes:
    """Yield more managed node groups than EKS allows; each shard of a pool is one."""
    count = sum(pool.shards for pool in pools if pool.is_managed)
    if count > matrix.MANAGED_NODE_GROUPS:
        wrong = f"more than the {matrix.MANAGED_NODE_GROUPS} managed node groups of a cluster"
        other = node_pools_of(pools)
        todo = f"use {other} or self-managed for some, or fewer shards"
        yield refuse("pools", wrong, todo, got=f"{count} with their shards")


@rule
def controllers_have_nodes(
    pools: Every[Pool], scheduling: Scheduling, storage: Storage, sections: Readable[Section]
) -> Mistakes:
    if not len(pools):
        yield refuse("pools", "no pool at all", "add one named system", got="")
    elif any(pool.role == "system" for pool in pools):
        return
    elif (
        _has_controllers(scheduling, storage)
        or any(section.has_controllers for section in sections)
        or any(not pool.is_auto_mode for pool in pools)
    ):
        wrong = "no pool has role: system, so controllers and add-ons have no nodes"
        yield refuse("pools", wrong, "add a pool named system", got="")


def _has_controllers(scheduling: Scheduling, storage: Storage) -> bool:
    """Return whether a controller needs system nodes in a cluster of Auto Mode alone."""
    return (
        scheduling.engine != "none"
        or scheduling.neuron_scheduler_extension
        or scheduling.rendezvous.has_server
        or bool(storage.lustre)
        # Mountpoint for S3 has a controller.
        or bool(storage.default_claims)
        or bool(storage.bucket_claims)
    )


def count_is_sound(pool: Pool, pools: Readable[Pool]) -> bool:
    """Return whether the number of nodes of ``pool``, one of ``pools``, passes its rules."""
    return not any(
        (
            *counts_fit(pool.nodes),
            *managed_group_holds_the_nodes(pool, pools),
            *fixed_group_mistakes(pool),
        )
    )


def yaml_list(values: Iterable[str]) -> str:
    """Return ``values`` spelled as a list of YAML."""
    return f"[{', '.join(values)}]"
