"""What a cluster file may say, but its user should know."""

from collections.abc import Iterator

from ultrascale import catalog
from ultrascale.catalog import regions
from ultrascale.config.cluster import Cluster
from ultrascale.config.pools import Pool


def warnings(cluster: Cluster) -> tuple[str, ...]:
    """Return what is legal in ``cluster`` but likely not meant, a line for each."""
    return tuple(_found(cluster))


def _found(cluster: Cluster) -> Iterator[str]:
    if not cluster.kubernetes.admins:
        yield "kubernetes.admins: empty, so nobody can use kubectl; add the ARN of an IAM role"
    for number, pool in enumerate(cluster.pools):
        yield from _not_to_be_had(f"pools.{number}.instance_types", pool, cluster.region)
        yield from _without_efa(f"pools.{number}.efa", pool)
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
    specs = [catalog.lookup(name) for name in pool.instance_types]
    if pool.efa != "auto" or not all(spec.knows("efa_cards") and spec.efa_cards for spec in specs):
        return
    if not any(spec.accelerator for spec in specs):
        return
    if len(specs) > 1:
        yield f"{key}: no EFA for several instance types; keep one type, or write efa: none"
    elif len(pool.zones) > 1:
        yield f"{key}: no EFA across several zones; keep one zone, or write efa: none"
