"""Warnings of pools: legal but likely unintended values."""

from datetime import timedelta

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog import auto_mode, karpenter, matrix, regions
from ultrascale.config._errors import Mistakes, note
from ultrascale.config._parts import Placed, Readable
from ultrascale.config._rules import rule
from ultrascale.config.identity import Identity
from ultrascale.config.network import Network
from ultrascale.config.pools import (
    Pool,
    could_have_efa,
    has_efa,
    loses_efa,
    node_pools_of,
    spans_nodes,
    zones_of,
)
from ultrascale.config.purchase import CapacityBlock, Odcr, OnDemand, Spot


@rule(severity="warning")
def types_may_not_be_had(pool: Pool, identity: Identity) -> Mistakes:
    region, seller = identity.region, pool.facts.seller
    for number, name in enumerate(pool.instance_types):
        key = f"instance_types.{number}"
        if not catalog.lookup(name).announced:
            yield note(key, f"{name} is a preview name; EC2 may not launch it yet")
        if isinstance(pool.purchase, CapacityBlock):
            if region not in catalog.lookup(name).capacity_block_regions:
                yield note(key, f"AWS lists no Capacity Blocks of {name} in {region}; ask AWS")
        elif regions.offered(name, region, by=seller) is False:
            yield note(key, f"{name} has no listed price in {region}; check with AWS")


@rule(severity="warning")
def karpenter_repairs_by_alpha_gates(pool: Pool) -> Mistakes:
    if pool.is_karpenter and pool.repair in ("reboot", "replace"):
        shortest, longest = karpenter.REPAIR_DRAIN_MINUTES
        text = (
            f"Karpenter's repair is alpha, with gates for the whole cluster; pods of a broken "
            f"node get {shortest} to {longest} minutes, whatever their disruption budgets say: let "
            f"jobs save a checkpoint every {shortest} minutes"
        )
        yield note("repair", text)


@rule(severity="warning")
def efa_is_lost(pool: Pool, network: Network) -> Mistakes:
    """Warn of lost EFA where no rule refuses it: see `pool_rules.efa_is_given_up_knowingly`."""
    lost = loses_efa(pool, network)
    if lost == "types" and isinstance(pool.purchase, Spot):
        # A Spot pool needs its choice of types; on a node group, our own rule asks for it.
        yield note("efa", "no EFA for several instance types; write efa: none")
    elif lost == "zones" and not spans_nodes(pool):
        spot = isinstance(pool.purchase, Spot)
        todo = "write efa: none" if spot else "keep one zone, or write efa: none"
        yield note("efa", f"no EFA across several zones; {todo}")


@rule(severity="warning")
def replaced_within_window(pool: Pool) -> Mistakes:
    days, purchase = auto_mode.NODE_DAYS, pool.purchase
    if not pool.is_auto_mode or not isinstance(purchase, CapacityBlock):
        return
    if purchase.ends - purchase.starts > timedelta(days=days):
        text = (
            f"EKS Auto Mode replaces a node after {days} days, within this window; "
            "let jobs save checkpoints, or use managed-node-group"
        )
        yield note("purchase.ends", text)


@rule(severity="warning")
def reserved_elsewhere(pool: Pool) -> Mistakes:
    if pool.placement_group and isinstance(pool.purchase, Odcr) and not pool.purchase.reservation:
        text = (
            "a capacity reservation that was not made in this group may not fill it; "
            "leave it out, or make the reservation in the group"
        )
        yield note("placement_group", text)


@rule(severity="warning")
def spot_is_tightly_coupled(pool: Pool, network: Network) -> Mistakes:
    is_one = len(pool.instance_types) == 1 and len(zones_of(pool, network)) == 1
    is_spot = isinstance(pool.purchase, Spot) and pool.efa != "none"
    if is_spot and is_one and could_have_efa(pool):
        text = (
            "EC2 takes Spot nodes one by one, and a job that spans them over EFA stops "
            "with the first; let it save checkpoints, or use capacity-block"
        )
        yield note("purchase.option", text)


@rule(severity="warning")
def spot_is_never_reserved(pool: Pool) -> Mistakes:
    if pool.role == "reserved" and isinstance(pool.purchase, Spot):
        todo = "write burst" + (", with nodes.max" if pool.nodes.static is not None else "")
        yield note("role", f"EC2 takes Spot nodes back whatever the role; {todo}")


@rule(severity="warning")
def sizes_are_unlike(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    """Warn where the Cluster Autoscaler, which takes one node for all, may take the wrong one.

    Source:
    https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
    """
    specs = pool.specs
    scales = pool.nodes.lowest < pool.nodes.highest and not isinstance(pool.purchase, Odcr)
    known = all(matrix.can_be_planned(spec) for spec in specs)
    if not pool.is_node_group or not scales or not known:
        return
    vcpus = sorted({spec.vcpus for spec in specs})
    accelerators = sorted({spec.accelerator.count if spec.accelerator else 0 for spec in specs})
    unlike = [
        f"{' and '.join(map(str, counts))} {resource}"
        for counts, resource in ((vcpus, "vCPUs"), (accelerators, "accelerators"))
        if len(counts) > 1
    ]
    if unlike:
        other = node_pools_of(pools)
        text = (
            f"nodes of {', '.join(unlike)} in one group: the Cluster Autoscaler plans by "
            "one size, and adds nodes that are too small for waiting pods; keep types of one "
            "size" + ("" if pool.role == "system" else f", or use {other}")
        )
        yield note("instance_types", text)


@rule(severity="warning")
def kept_at_list_price(pool: Pool) -> Mistakes:
    """Warn where nodes paid by the second stay when no pod needs them."""
    scales = pool.is_node_pool and pool.nodes.static is None
    if scales and pool.role == "reserved" and isinstance(pool.purchase, OnDemand):
        text = (
            "reserved nodes are kept when they are idle, here at the On-Demand price; "
            "write burst, or nodes.static for a count that you mean to pay for"
        )
        yield note("role", text)


@rule(severity="warning")
def static_in_zones(pool: Pool, network: Network) -> Mistakes:
    """Warn where a fixed count may land in one zone.

    Source: https://karpenter.sh/docs/concepts/nodepools/#specreplicas
    """
    static = pool.nodes.static is not None and pool.is_node_pool
    if static and len(zones_of(pool, network)) > 1:
        by = pool.facts.name
        text = f"{by} does not spread a fixed count over zones; make a pool of each zone"
        yield note("zones", text)


@rule(severity="warning")
def jobs_without_efa(pool: Pool, network: Network, pools: Readable[Pool]) -> Mistakes:
    """Warn where pods of an EFA pool fit on nodes without EFA as well: nothing repels them."""
    for other in pools.placed:
        peer = other.item
        shared = [name for name in pool.instance_types if name in peer.instance_types]
        accelerated = any(catalog.lookup(name).accelerator for name in shared)
        if not _further_taints(pool) <= _further_taints(peer):
            continue
        if accelerated and not has_efa(pool, network) and has_efa(peer, network):
            text = (
                f"{shared[0]} has no EFA here, so a job for {other.path}, with EFA and the same "
                "taint, may run without EFA; "
                "let its pods select node-type, or ask for vpc.amazonaws.com/efa"
            )
            yield note("efa", text)
            return


@rule(severity="warning")
def reservation_is_filled_twice(pools: Readable[Pool]) -> Mistakes:
    """Warn where a node group, which starts at its maximum, shares a reservation."""
    groups = {
        pool.purchase.reservation
        for pool in pools
        if pool.is_node_group and isinstance(pool.purchase, Odcr)
    }
    filled: dict[str, tuple[Placed[Pool], int]] = {}
    for placed in pools.placed:
        pool, purchase = placed.item, placed.item.purchase
        if not isinstance(purchase, Odcr) or purchase.reservation not in groups - {None}:
            continue
        assert purchase.reservation is not None
        owner, nodes = filled.get(purchase.reservation, (placed, 0))
        nodes += pool.nodes.highest * pool.shards
        filled[purchase.reservation] = owner, nodes
        if owner is not placed:
            text = (
                f"also the reservation of {owner.path}, and a "
                f"node group starts with all its nodes, {nodes} together; lower nodes.max if the "
                "reservation has fewer, or keep one pool"
            )
            mistake = note("purchase.reservation", text)
            yield replace(mistake, at=(*placed.at, *mistake.at))


@rule(severity="warning")
def launched_twice(pool: Pool, pools: Readable[Pool]) -> Mistakes:
    """Warn where two scalers answer the same pod: neither sees the other's launches.

    Source: https://github.com/aws/karpenter-provider-aws/issues/2543
    """
    for other in pools.placed if _is_autoscaled(pool) else ():
        if _follows_pods(other.item) and _taint(pool) == _taint(other.item) is not None:
            scalers = f"the Cluster Autoscaler and {other.item.facts.name}"
            text = (
                f"pods that fit here and on {other.path} start "
                f"nodes of both, by {scalers}; let them select node-type"
            )
            yield note("provisioner", text)
            return


def _further_taints(pool: Pool) -> frozenset[tuple[str, str]]:
    """Return the taints of accelerated nodes beside the accelerators' own."""
    own = {(taint.key, taint.effect) for taint in pool.taints}
    return frozenset(own | ({("spot", "NoSchedule")} if isinstance(pool.purchase, Spot) else set()))


def _follows_pods(pool: Pool) -> bool:
    return pool.is_node_pool and pool.nodes.static is None


def _is_autoscaled(pool: Pool) -> bool:
    bought = isinstance(pool.purchase, OnDemand | Spot)
    scales = pool.nodes.lowest < pool.nodes.highest
    return pool.is_node_group and bought and scales


def _taint(pool: Pool) -> str | None:
    accelerator = pool.specs[0].accelerator
    return accelerator and accelerator.kind
