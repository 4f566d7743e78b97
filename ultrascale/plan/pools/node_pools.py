"""NodePools of Karpenter and EKS Auto Mode: size, requirements, weight.

Source: https://karpenter.sh/docs/concepts/nodepools/
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import auto_mode, eks, regions
from ultrascale.config.pools import FALLBACK_SUFFIX
from ultrascale.plan import names
from ultrascale.plan.model import (
    CalendarPlan,
    CapacityType,
    NetworkPlan,
    NodeClassPlan,
    NodePoolPlan,
    PoolPlan,
    Requirement,
    Taint,
)
from ultrascale.plan.pools.disruption import expire_after, plan_disruption, termination_grace_period
from ultrascale.plan.pools.node_classes import node_class_kind, plan_node_class
from ultrascale.plan.pools.repair import repair_budgets, repair_by_karpenter
from ultrascale.plan.volumes import mounts_buckets

# Higher is tried first: capacity that is paid for already, and the dearest last. The system pool
# comes behind them all: pods without any demand must not fill it.
_RESERVED_WEIGHT = 100
_WEIGHTS: Mapping[CapacityType, int] = {"reserved": _RESERVED_WEIGHT, "spot": 50, "on-demand": 10}
_SYSTEM_WEIGHT = 1

# Source: https://karpenter.sh/docs/concepts/scheduling/#well-known-labels
_ZONE_ID_LABEL = "topology.k8s.aws/zone-id"
# The label of a reservation's type, and its values.
# Sources:
#     https://karpenter.sh/docs/concepts/scheduling/#well-known-labels
#     https://docs.aws.amazon.com/eks/latest/userguide/auto-odcr.html
_RESERVATION_TYPE_LABEL = "karpenter.k8s.aws/capacity-reservation-type"
_AUTO_MODE_RESERVATION_TYPE_LABEL = "eks.amazonaws.com/capacity-reservation-type"
_RESERVATION_TYPES: Mapping[str, str] = {"odcr": "default", "capacity-block": "capacity-block"}

# A pod's mount before the driver fails and is tried again later, while the rest of its gang waits.
# The driver removes the taint once it is ready; its DaemonSet tolerates all taints by default.
# Source:
# https://github.com/kubernetes-sigs/aws-fsx-csi-driver/blob/master/docs/install.md#configure-node-startup-taint
# Source:
# https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/docs/CONFIGURATION.md#configure-node-startup-taint
_LUSTRE_NOT_READY = Taint(key="fsx.csi.aws.com/agent-not-ready", value="", effect="NoExecute")
_BUCKETS_NOT_READY = Taint(key="s3.csi.aws.com/agent-not-ready", value="", effect="NoExecute")


def plan_node_classes(
    cluster: config.Cluster,
    network: NetworkPlan,
    pools: Sequence[PoolPlan],
    *,
    named_by_id: bool,
) -> tuple[NodeClassPlan, ...]:
    """Return the node class of each pool that Karpenter or EKS Auto Mode launches.

    Args:
        cluster: The cluster file.
        network: VPC.
        pools: Every pool of it.
        named_by_id: Whether Karpenter's nodes are named by their instance ids.
    """
    return tuple(
        plan_node_class(cluster, network, pool, named_by_id=named_by_id)
        for pool in _pools_of_node_pools(pools)
    )


def plan_node_pools(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> tuple[NodePoolPlan, ...]:
    """Return the NodePools of each pool that Karpenter or EKS Auto Mode launches.

    A pool that falls back has two: of Spot, and of On-Demand at a lower weight. One NodePool of
    both capacity types would fall back as well, but our labels could not tell its Spot nodes from
    the others.
    """
    drivers = (
        *((_LUSTRE_NOT_READY,) if cluster.storage.lustre else ()),
        *((_BUCKETS_NOT_READY,) if mounts_buckets(cluster) else ()),
    )
    return tuple(
        replace(node_pool, budgets=repair_budgets(node_pool.budgets, _repair(cluster, pool)))
        for pool in _pools_of_node_pools(pools)
        for node_pool in _node_pools(pool, drivers=drivers)
    )


def foreign_node_pool(pool: PoolPlan, *, repair: config.Repair | None) -> NodePoolPlan:
    """Return the NodePool of ``pool``, which has no fallback, for another owner's Karpenter.

    No program may remove our startup taints there, and NodeOverlays may be switched off: nodes
    would be paid for and stay empty. The zones are those of the subnets, which CloudFormation alone
    may know.

    Args:
        pool: The pool.
        repair: Repair of a broken node; None where Karpenter knows no repair.
    """
    (planned,) = _node_pools(pool, drivers=())
    return replace(
        planned,
        unseen_resources={},
        requirements=tuple(
            requirement
            for requirement in planned.requirements
            if requirement.key not in (names.ZONE_LABEL, _ZONE_ID_LABEL)
        ),
        budgets=repair_budgets(planned.budgets, repair),
    )


def _repair(cluster: config.Cluster, pool: PoolPlan) -> config.Repair | None:
    if cluster.karpenter is None or not pool.is_karpenter:
        return None
    return repair_by_karpenter(cluster.karpenter.version, cluster.pool(pool.pool))


def unseen_resources(pool: PoolPlan) -> Mapping[str, str]:
    """Return the resources of a ``pool``'s node that Karpenter does not know, or counts otherwise.

    It knows of no huge pages: for a pod that asks for some, as EFA jobs usually do, it would never
    launch a node, nor wait for one that a static pool is starting. Once it knows them it takes them
    off a node's memory, as the kubelet does.

    It counts Neuron's physical cores. The device plugin offers logical ones, each two physical ones
    on trn2: for a pod that asks for more than there are, it would launch one node after the other.

    Sources:
        https://github.com/aws/karpenter-provider-aws/issues/3315
        https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/instancetype/types.go
        https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/cloudprovider/types.go
    """
    if not pool.is_karpenter:
        return {}
    # The accelerated images alone set the pages aside.
    has_pages = pool.efa_interfaces and pool.accelerator is not None
    pages = {names.HUGE_PAGES: f"{eks.HUGE_PAGES_MIB}Mi"} if has_pages else {}
    return {**pages, **_logical_cores(pool)}


def _logical_cores(pool: PoolPlan) -> Mapping[str, str]:
    accelerators = [spec.accelerator for spec in pool.specs]
    neuron = [
        accelerator
        for accelerator in accelerators
        if accelerator is not None
        and accelerator.kind == "neuron"
        and accelerator.knows("neuron_cores_logical")
    ]
    if all(
        accelerator.neuron_cores_logical == accelerator.neuron_cores_physical
        for accelerator in neuron
    ):
        return {}
    # Of unlike types the fewest: a pod that asks for more waits, and none is launched in vain.
    return {names.NEURON_CORE: str(min(accelerator.neuron_cores_logical for accelerator in neuron))}


def _pools_of_node_pools(pools: Sequence[PoolPlan]) -> tuple[PoolPlan, ...]:
    return tuple(pool for pool in pools if pool.is_node_pool)


def _node_pools(pool: PoolPlan, *, drivers: tuple[Taint, ...]) -> tuple[NodePoolPlan, ...]:
    if not pool.fallback_nodes:
        return (_node_pool(pool, nodes=pool.max_nodes, drivers=drivers),)
    spot_nodes = pool.max_nodes - pool.fallback_nodes
    spot = _node_pool(pool, nodes=spot_nodes, drivers=drivers)
    fallback = replace(
        spot,
        name=f"{pool.name}{FALLBACK_SUFFIX}",
        weight=_WEIGHTS["on-demand"],
        max_nodes=pool.fallback_nodes,
        max_vcpus=_max_vcpus(pool, pool.fallback_nodes),
        requirements=_requirements(pool, "on-demand"),
        labels={**spot.labels, names.CAPACITY_LABEL: "on-demand"},
    )
    return (spot, fallback)


def _max_vcpus(pool: PoolPlan, nodes: int) -> int:
    """Return the vCPUs of ``nodes`` of the largest type of ``pool``.

    Some releases of Karpenter hold a limit of nodes only against the nodes that are there: one
    batch of pending pods, such as a large job, launches past it. They count vCPUs as they plan.

    Source: https://github.com/kubernetes-sigs/karpenter/issues/2915
    """
    return nodes * max(spec.vcpus for spec in pool.specs)


def _node_pool(pool: PoolPlan, *, nodes: int, drivers: tuple[Taint, ...]) -> NodePoolPlan:
    disruption = plan_disruption(pool)
    return NodePoolPlan(
        name=_name(pool),
        pool=pool.pool,
        shard=pool.shard,
        node_class=pool.name,
        node_class_kind=node_class_kind(pool),
        weight=None if pool.static else _weight(pool),
        replicas=pool.initial_nodes if pool.static else None,
        # A static pool has no room for the successor of a drifted node: nothing drifts there.
        max_nodes=nodes,
        max_vcpus=None if pool.static else _max_vcpus(pool, nodes),
        requirements=_requirements(pool, pool.capacity_type),
        labels={
            # Karpenter sets it from the requirement, which a label of ours would only repeat.
            key: value
            for key, value in pool.labels.items()
            if key != names.CAPACITY_TYPE_LABEL
        },
        taints=pool.taints,
        startup_taints=_startup_taints(pool, drivers),
        unseen_resources=unseen_resources(pool),
        expire_after=expire_after(pool),
        termination_grace_period=termination_grace_period(pool),
        consolidation_policy=disruption.consolidation_policy,
        consolidate_after=disruption.consolidate_after,
        budgets=disruption.budgets,
        calendar=_calendar(pool),
    )


def _calendar(pool: PoolPlan) -> CalendarPlan | None:
    if not pool.static or pool.reservation is None:
        return None
    window = pool.window if pool.sized_by == "calendar" else None
    return CalendarPlan(window=window, reservation=pool.reservation)


def _name(pool: PoolPlan) -> str:
    """Return a name unlike EKS's own: switching those off would delete the NodePool."""
    taken = pool.is_auto_mode and pool.name in auto_mode.BUILT_IN_NODE_POOLS
    return f"{pool.name}-nodes" if taken else pool.name


def _startup_taints(pool: PoolPlan, drivers: tuple[Taint, ...]) -> tuple[Taint, ...]:
    # EKS Auto Mode's nodes get no taint that one of its own DaemonSets might not tolerate.
    return drivers if pool.accelerator is not None and pool.is_karpenter else ()


def _weight(pool: PoolPlan) -> int:
    if pool.role == "system":
        return _SYSTEM_WEIGHT
    return _RESERVED_WEIGHT if pool.role == "reserved" else _WEIGHTS[pool.capacity_type]


def _requirements(pool: PoolPlan, capacity_type: CapacityType) -> tuple[Requirement, ...]:
    """Return the requirements on nodes of one capacity type: Karpenter does not mix them."""
    zone_ids = regions.is_zone_id(pool.zones[0])
    requirements = [
        Requirement(key=names.CAPACITY_TYPE_LABEL, values=(capacity_type,)),
        Requirement(key=names.INSTANCE_TYPE_LABEL, values=pool.instance_types),
        Requirement(key=_ZONE_ID_LABEL if zone_ids else names.ZONE_LABEL, values=pool.zones),
    ]
    if capacity_type == "reserved":
        # A Capacity Block and other reservations never share a launch.
        key = _AUTO_MODE_RESERVATION_TYPE_LABEL if pool.is_auto_mode else _RESERVATION_TYPE_LABEL
        requirements.append(Requirement(key=key, values=(_RESERVATION_TYPES[pool.purchase],)))
    return tuple(requirements)
