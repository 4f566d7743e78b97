"""What a cluster file may ask of Karpenter and EKS Auto Mode, but its user should know."""

from collections.abc import Iterator

from ultrascale import catalog
from ultrascale.catalog import matrix
from ultrascale.config.pools import Pool
from ultrascale.config.purchase import OnDemand, Spot

_SCALED_BY = {"karpenter": "Karpenter", "auto-mode": "EKS Auto Mode"}


def kept_at_list_price(key: str, pool: Pool) -> Iterator[str]:
    """Warn where nodes that are paid for by the second stay when no pod needs them."""
    scales = pool.provisioner in matrix.NODE_POOLS and pool.nodes.static is None
    if scales and pool.role == "reserved" and isinstance(pool.purchase, OnDemand):
        yield (
            f"{key}: reserved nodes are kept when they are idle, here at the On-Demand price; "
            "write burst, or nodes.static for a count that you mean to pay for"
        )


def static_in_zones(key: str, pool: Pool) -> Iterator[str]:
    """Warn where a fixed count may land in one zone.

    Source: https://karpenter.sh/docs/concepts/nodepools/#specreplicas
    """
    static = pool.nodes.static is not None and pool.provisioner in matrix.NODE_POOLS
    if static and len(pool.zones) > 1:
        by = _SCALED_BY[pool.provisioner]
        yield f"{key}: {by} does not spread a fixed count over zones; make a pool of each zone"


def launched_twice(pools: tuple[Pool, ...]) -> Iterator[str]:
    """Warn where two scalers answer the same pod: neither sees what the other is launching.

    Source: https://github.com/aws/karpenter-provider-aws/issues/2543
    """
    node_pools = [(number, pool) for number, pool in enumerate(pools) if _follows_pods(pool)]
    for number, pool in enumerate(pools):
        if not _is_autoscaled(pool):
            continue
        for other, peer in node_pools:
            if _taint(pool) == _taint(peer) is not None:
                scalers = f"the Cluster Autoscaler and {_SCALED_BY[peer.provisioner]}"
                yield (
                    f"pools.{number}.provisioner: pods that fit here and on pools.{other} start "
                    f"nodes of both, by {scalers}; let them select node-type"
                )
                break


def _follows_pods(pool: Pool) -> bool:
    return pool.provisioner in matrix.NODE_POOLS and pool.nodes.static is None


def _is_autoscaled(pool: Pool) -> bool:
    """Return whether the Cluster Autoscaler sizes the pool's node group."""
    bought = isinstance(pool.purchase, OnDemand | Spot)
    scales = pool.nodes.lowest < pool.nodes.highest
    return pool.provisioner in matrix.NODE_GROUPS and bought and scales


def _taint(pool: Pool) -> str | None:
    accelerator = catalog.lookup(pool.instance_types[0]).accelerator
    return accelerator and accelerator.kind
