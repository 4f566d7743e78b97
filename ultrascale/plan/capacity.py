"""Purchase options of a pool: the price of its nodes, and the time in which they exist."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from ultrascale import catalog, config
from ultrascale.catalog import capacity_blocks, training_plans
from ultrascale.plan import names
from ultrascale.plan.model import CapacityType, PoolPlan, ReservationPlan, SizedBy, WindowPlan

# Resources by which a pod gets a device, beside the counted one.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    names.NEURON_DEVICE: (names.NEURON_CORE, "aws.amazon.com/neurondevice")
}

SIZED_BY_PODS: frozenset[SizedBy] = frozenset({"provisioner", "cluster-autoscaler"})
"""Provisioners that launch nodes when pods wait for them."""

# Karpenter's words for the purchase of a node.
# Source: https://karpenter.sh/docs/concepts/nodepools/#capacity-type
_CAPACITY_TYPES: Mapping[str, CapacityType] = {
    "on-demand": "on-demand",
    "spot": "spot",
    "odcr": "reserved",
    "capacity-block": "reserved",
    "training-plan": "reserved",
}


def accelerators_of(pools: Iterable[PoolPlan]) -> tuple[str, ...]:
    """Return every resource by which a pod gets an accelerator of the pools."""
    devices = {pool.accelerator for pool in pools if pool.accelerator is not None}
    aliases = {alias for device in devices for alias in _ALIASES.get(device, ())}
    return tuple(sorted(devices | aliases))


def capacity_type(purchase: config.Purchase) -> CapacityType:
    """Return the value of `karpenter.sh/capacity-type` of nodes bought by ``purchase``."""
    return _CAPACITY_TYPES[purchase.option]


def plan_reservation(purchase: config.Purchase) -> ReservationPlan | None:
    """Return the reservation behind ``purchase``, None without one."""
    if not isinstance(purchase, config.Odcr | config.CapacityBlock):
        return None
    return ReservationPlan(
        id=purchase.reservation,
        tags=purchase.reservation_tags or {},
        resource_group=purchase.resource_group,
        spill=isinstance(purchase, config.Odcr) and purchase.spill == "on-demand",
    )


def plan_window(pool: config.Pool) -> WindowPlan | None:
    """Return the window of a pool's Capacity Block or training plan, None without one."""
    purchase = pool.purchase
    if isinstance(purchase, config.TrainingPlan):
        return training_plan_window(purchase.starts, purchase.ends)
    if not isinstance(purchase, config.CapacityBlock):
        return None
    return block_window(pool.instance_types, purchase.starts, purchase.ends)


def fee_per_node_hour(pool: config.Pool) -> float | None:
    """Return a fee spread over all nodes and the whole window, used or not; None without one."""
    purchase = pool.purchase
    if not isinstance(purchase, config.CapacityBlock | config.TrainingPlan) or not purchase.fee:
        return None
    hours = (purchase.ends - purchase.starts) / timedelta(hours=1)
    return sum(fee.usd for fee in purchase.fee) / (hours * pool.nodes.highest * pool.shards)


def block_window(instance_types: Iterable[str], starts: datetime, ends: datetime) -> WindowPlan:
    """Return the usable window of a Capacity Block of one of ``instance_types``.

    Args:
        instance_types: EC2 names.
        starts: Start of the block, in UTC.
        ends: Its end.
    """
    specs = [catalog.lookup(name) for name in instance_types]
    # A type that comes in no UltraServer leaves the cell empty or blank.
    ultraserver = any(spec.knows("ultraserver") and spec.ultraserver for spec in specs)
    reclaimed = ends - capacity_blocks.reclaimed_before_end(ultraserver=ultraserver)
    return WindowPlan(
        starts=starts,
        usable_until=reclaimed - capacity_blocks.DRAINED_BEFORE_RECLAIM,
        reclaimed_from=reclaimed,
        ends=ends,
    )


def training_plan_window(starts: datetime, ends: datetime) -> WindowPlan:
    """Return the usable window of a training plan for HyperPod.

    Args:
        starts: Start of the plan, in UTC.
        ends: Its end.
    """
    stops = ends - timedelta(minutes=training_plans.RECLAIMED_EARLY_MINUTES)
    return WindowPlan(starts=starts, usable_until=stops, reclaimed_from=stops, ends=ends)


def sized_by(pool: config.Pool) -> SizedBy:
    """Return what changes the number of a pool's nodes after its deployment."""
    if pool.facts.is_fixed:
        return "file"
    is_node_pool = pool.is_node_pool
    if isinstance(pool.purchase, config.CapacityBlock) and not (
        is_node_pool and pool.nodes.static is None
    ):
        return "calendar"
    if pool.nodes.lowest == pool.nodes.highest or isinstance(pool.purchase, config.Odcr):
        # An ODCR is paid for whether its nodes run or not.
        return "provisioner" if is_node_pool and pool.nodes.static is None else "file"
    return "provisioner" if is_node_pool else "cluster-autoscaler"


def initial_nodes(pool: config.Pool) -> int:
    """Return the number of nodes with which a pool is made."""
    if pool.facts.is_fixed:
        return pool.nodes.highest
    if isinstance(pool.purchase, config.CapacityBlock):
        return 0
    if isinstance(pool.purchase, config.Odcr) and pool.is_node_group:
        return pool.nodes.highest
    return pool.nodes.lowest


def fallback_nodes(pool: config.Pool) -> int:
    """Return how many nodes of a Spot pool may be On-Demand instead.

    Karpenter holds a limit for each NodePool and none for both together. Each with the whole limit
    would launch twice the nodes that the file allows, that the subnets hold and that the user
    expects to pay. With halves a Spot shortage leaves half of the pool, and at most half of it ever
    costs On-Demand prices.
    """
    purchase = pool.purchase
    if not isinstance(purchase, config.Spot) or purchase.fallback == "none":
        return 0
    return purchase.fallback_max or pool.nodes.highest // 2
