"""What a cluster file may say, but its user should know."""

from collections.abc import Iterator
from datetime import timedelta

from ultrascale import catalog
from ultrascale.catalog import matrix, regions
from ultrascale.config.cluster import Cluster
from ultrascale.config.pools import Pool
from ultrascale.config.purchase import CapacityBlock, Odcr, Spot


def warnings(cluster: Cluster) -> tuple[str, ...]:
    """Return what is legal in ``cluster`` but likely not meant, a line for each."""
    return tuple(_found(cluster))


def _found(cluster: Cluster) -> Iterator[str]:
    if not cluster.kubernetes.admins:
        yield "kubernetes.admins: empty, so nobody can use kubectl; add the ARN of an IAM role"
    for number, pool in enumerate(cluster.pools):
        yield from _not_to_be_had(f"pools.{number}.instance_types", pool, cluster.region)
        yield from _without_efa(f"pools.{number}.efa", pool)
        yield from _replaced_within_window(f"pools.{number}.purchase.ends", pool)
        yield from _reserved_elsewhere(f"pools.{number}.placement_group", pool)
        yield from _tightly_coupled_spot(f"pools.{number}.purchase.option", pool)
        yield from _spot_is_never_reserved(f"pools.{number}.role", pool)
    for number, lustre in enumerate(cluster.storage.lustre):
        if not any(lustre.zone in pool.zones for pool in cluster.pools):
            yield f"storage.lustre.{number}.zone: no pool has nodes in {lustre.zone}"


def _not_to_be_had(key: str, pool: Pool, region: str) -> Iterator[str]:
    hyperpod = pool.provisioner == "hyperpod"
    for number, name in enumerate(pool.instance_types):
        if not catalog.lookup(name).announced:
            yield f"{key}.{number}: {name} is a preview name; EC2 may not launch it yet"
        if regions.offered(name, region, hyperpod=hyperpod) is False:
            yield f"{key}.{number}: {name} has no listed price in {region}; check with AWS"


def _without_efa(key: str, pool: Pool) -> Iterator[str]:
    if pool.efa != "auto" or not _could_have_efa(pool):
        return
    if len(pool.instance_types) > 1:
        yield f"{key}: no EFA for several instance types; keep one type, or write efa: none"
    elif len(pool.zones) > 1:
        yield f"{key}: no EFA across several zones; keep one zone, or write efa: none"


def _could_have_efa(pool: Pool) -> bool:
    """Return whether every type takes EFA interfaces and some type has accelerators."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    taken = all(spec.knows("efa_cards") and spec.efa_cards for spec in specs)
    return taken and any(spec.accelerator for spec in specs)


def _replaced_within_window(key: str, pool: Pool) -> Iterator[str]:
    days = matrix.AUTO_MODE_NODE_DAYS
    purchase = pool.purchase
    if pool.provisioner != "auto-mode" or not isinstance(purchase, CapacityBlock):
        return
    if purchase.ends - purchase.starts > timedelta(days=days):
        yield (
            f"{key}: EKS Auto Mode replaces a node after {days} days, within this window; "
            "let jobs save checkpoints, or use karpenter"
        )


def _reserved_elsewhere(key: str, pool: Pool) -> Iterator[str]:
    if pool.placement_group and isinstance(pool.purchase, Odcr):
        yield (
            f"{key}: a capacity reservation that was not made in this group may not fill it; "
            "leave it out, or make the reservation in the group"
        )


def _tightly_coupled_spot(key: str, pool: Pool) -> Iterator[str]:
    one = len(pool.instance_types) == 1 and len(pool.zones) == 1
    spot = isinstance(pool.purchase, Spot) and pool.efa != "none"
    if spot and one and _could_have_efa(pool):
        yield (
            f"{key}: EC2 takes Spot nodes one by one, and a job that spans them over EFA stops "
            "with the first; let it save checkpoints, or use capacity-block"
        )


def _spot_is_never_reserved(key: str, pool: Pool) -> Iterator[str]:
    if pool.role == "reserved" and isinstance(pool.purchase, Spot):
        yield f"{key}: EC2 takes Spot nodes back whatever the role; write burst"
