"""What a cluster file may say, but its user should know."""

from collections.abc import Iterator
from datetime import timedelta

from ultrascale import catalog
from ultrascale.catalog import auto_mode, hyperpod_chart, matrix, quotas, regions
from ultrascale.config._efa import could_have_efa, has_efa
from ultrascale.config._node_pool_warnings import (
    kept_at_list_price,
    launched_twice,
    static_in_zones,
)
from ultrascale.config._pool_rules import node_pools_of
from ultrascale.config.cluster import Cluster
from ultrascale.config.pools import Pool
from ultrascale.config.purchase import CapacityBlock, Odcr, Spot


def warnings(cluster: Cluster) -> tuple[str, ...]:
    """Return what is legal in ``cluster`` but likely not meant, a line for each."""
    return tuple(_found(cluster))


def _found(cluster: Cluster) -> Iterator[str]:
    if not cluster.kubernetes.admins:
        yield "kubernetes.admins: empty, so nobody can use kubectl; add the ARN of an IAM role"
    node_pools = node_pools_of(frozenset(pool.provisioner for pool in cluster.pools))
    for number, pool in enumerate(cluster.pools):
        yield from _not_to_be_had(f"pools.{number}.instance_types", pool, cluster.region)
        yield from _without_efa(f"pools.{number}.efa", pool)
        yield from _replaced_within_window(f"pools.{number}.purchase.ends", pool)
        yield from _reserved_elsewhere(f"pools.{number}.placement_group", pool)
        yield from _tightly_coupled_spot(f"pools.{number}.purchase.option", pool)
        yield from _spot_is_never_reserved(f"pools.{number}.role", pool)
        yield from _unlike_sizes(f"pools.{number}.instance_types", pool, node_pools)
        yield from kept_at_list_price(f"pools.{number}.role", pool)
        yield from static_in_zones(f"pools.{number}.zones", pool)
    yield from _jobs_without_efa(cluster.pools)
    yield from _filled_twice(cluster.pools)
    yield from launched_twice(cluster.pools)
    yield from _agent_may_lack_an_image(cluster)
    yield from _granted_already(cluster)
    for number, lustre in enumerate(cluster.storage.lustre):
        if not any(lustre.zone in pool.zones for pool in cluster.pools):
            yield f"storage.lustre.{number}.zone: no pool has nodes in {lustre.zone}"


def _granted_already(cluster: Cluster) -> Iterator[str]:
    agreed, usage = cluster.agreed_limits, quotas.NETWORK_ADDRESS_USAGE
    if agreed is not None and usage.most is not None and agreed.nau_per_vpc <= usage.most:
        yield (
            f"agreed_limits.nau_per_vpc: AWS publishes that it grants {usage.most:,}, so this says "
            "nothing more; leave it out, or write what the agreement says"
        )


def _agent_may_lack_an_image(cluster: Cluster) -> Iterator[str]:
    on_hyperpod = any(pool.provisioner == "hyperpod" for pool in cluster.pools)
    if on_hyperpod and cluster.region not in hyperpod_chart.AGENT_REGIONS:
        yield (
            "region: AWS's HyperPod chart may know no image of the health-monitoring agent in "
            f"{cluster.region}, without which no faulty node is found; ask AWS"
        )


def _not_to_be_had(key: str, pool: Pool, region: str) -> Iterator[str]:
    hyperpod = pool.provisioner == "hyperpod"
    for number, name in enumerate(pool.instance_types):
        if not catalog.lookup(name).announced:
            yield f"{key}.{number}: {name} is a preview name; EC2 may not launch it yet"
        if isinstance(pool.purchase, CapacityBlock):
            if region not in catalog.lookup(name).capacity_block_regions:
                yield f"{key}.{number}: AWS lists no Capacity Blocks of {name} in {region}; ask AWS"
        elif regions.offered(name, region, hyperpod=hyperpod) is False:
            yield f"{key}.{number}: {name} has no listed price in {region}; check with AWS"


def _without_efa(key: str, pool: Pool) -> Iterator[str]:
    if pool.efa != "auto" or not could_have_efa(pool):
        return
    spot = isinstance(pool.purchase, Spot)
    if len(pool.instance_types) > 1:
        # A Spot pool needs its choice of types, on a node group by our own rule.
        todo = "write efa: none" if spot else "keep one type, or write efa: none"
        yield f"{key}: no EFA for several instance types; {todo}"
    elif len(pool.zones) > 1:
        todo = "write efa: none" if spot else "keep one zone, or write efa: none"
        yield f"{key}: no EFA across several zones; {todo}"


def _replaced_within_window(key: str, pool: Pool) -> Iterator[str]:
    days = auto_mode.NODE_DAYS
    purchase = pool.purchase
    if pool.provisioner != "auto-mode" or not isinstance(purchase, CapacityBlock):
        return
    if purchase.ends - purchase.starts > timedelta(days=days):
        yield (
            f"{key}: EKS Auto Mode replaces a node after {days} days, within this window; "
            "let jobs save checkpoints, or use managed-node-group"
        )


def _reserved_elsewhere(key: str, pool: Pool) -> Iterator[str]:
    if pool.placement_group and isinstance(pool.purchase, Odcr) and not pool.purchase.reservation:
        yield (
            f"{key}: a capacity reservation that was not made in this group may not fill it; "
            "leave it out, or make the reservation in the group"
        )


def _tightly_coupled_spot(key: str, pool: Pool) -> Iterator[str]:
    one = len(pool.instance_types) == 1 and len(pool.zones) == 1
    spot = isinstance(pool.purchase, Spot) and pool.efa != "none"
    if spot and one and could_have_efa(pool):
        yield (
            f"{key}: EC2 takes Spot nodes one by one, and a job that spans them over EFA stops "
            "with the first; let it save checkpoints, or use capacity-block"
        )


def _spot_is_never_reserved(key: str, pool: Pool) -> Iterator[str]:
    if pool.role == "reserved" and isinstance(pool.purchase, Spot):
        todo = "write burst" + (", with nodes.max" if pool.nodes.static is not None else "")
        yield f"{key}: EC2 takes Spot nodes back whatever the role; {todo}"


def _unlike_sizes(key: str, pool: Pool, other: str) -> Iterator[str]:
    """Warn where the Cluster Autoscaler, which takes one node for all, may take the wrong one.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
    """
    specs = [catalog.lookup(name) for name in pool.instance_types]
    scales = pool.nodes.lowest < pool.nodes.highest and not isinstance(pool.purchase, Odcr)
    known = all(matrix.can_be_planned(spec) for spec in specs)
    if pool.provisioner not in matrix.NODE_GROUPS or not scales or not known:
        return
    vcpus = sorted({spec.vcpus for spec in specs})
    accelerators = sorted({spec.accelerator.count if spec.accelerator else 0 for spec in specs})
    unlike = [
        f"{' and '.join(map(str, counts))} {what}"
        for counts, what in ((vcpus, "vCPUs"), (accelerators, "accelerators"))
        if len(counts) > 1
    ]
    if unlike:
        yield (
            f"{key}: nodes of {', '.join(unlike)} in one group: the Cluster Autoscaler takes one "
            "for all, and adds nodes that are too small for the pods that wait; keep types of one "
            "size" + ("" if pool.role == "system" else f", or use {other}")
        )


def _jobs_without_efa(pools: tuple[Pool, ...]) -> Iterator[str]:
    """Warn where pods of an EFA pool fit on nodes without EFA as well: nothing repels them."""
    for number, pool in enumerate(pools):
        for other, peer in enumerate(pools):
            shared = [name for name in pool.instance_types if name in peer.instance_types]
            accelerated = any(catalog.lookup(name).accelerator for name in shared)
            if not _repels(pool) <= _repels(peer):
                continue
            if accelerated and not has_efa(pool) and has_efa(peer):
                yield (
                    f"pools.{number}.efa: nodes of {shared[0]} without EFA, which pools.{other} "
                    f"has with EFA behind the same taint: a job may land here and run without; "
                    "let its pods select node-type, or ask for vpc.amazonaws.com/efa"
                )
                break


def _repels(pool: Pool) -> frozenset[tuple[str, str]]:
    """Return the taints of accelerated nodes beside the one of their accelerators."""
    own = {(taint.key, taint.effect) for taint in pool.taints}
    return frozenset(own | ({("spot", "NoSchedule")} if isinstance(pool.purchase, Spot) else set()))


def _filled_twice(pools: tuple[Pool, ...]) -> Iterator[str]:
    """Warn where a node group, which starts at its maximum, shares a reservation."""
    groups = {
        pool.purchase.reservation
        for pool in pools
        if pool.provisioner in matrix.NODE_GROUPS and isinstance(pool.purchase, Odcr)
    }
    filled: dict[str, tuple[int, int]] = {}
    for number, pool in enumerate(pools):
        purchase = pool.purchase
        if not isinstance(purchase, Odcr) or purchase.reservation not in groups - {None}:
            continue
        assert purchase.reservation is not None
        owner, nodes = filled.get(purchase.reservation, (number, 0))
        nodes += pool.nodes.highest * pool.shards
        filled[purchase.reservation] = owner, nodes
        if owner != number:
            yield (
                f"pools.{number}.purchase.reservation: the reservation of pools.{owner} too, and a "
                f"node group starts with all its nodes, {nodes} together; lower nodes.max if the "
                "reservation has fewer, or keep one pool"
            )
