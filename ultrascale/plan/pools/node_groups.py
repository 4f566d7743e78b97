"""Node groups of pools: their subnets, and possible ends of their nodes."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ultrascale.catalog import eks
from ultrascale.plan.model import (
    ClusterAutoscalerPlan,
    NetworkPlan,
    NodeGroupPlan,
    PoolPlan,
    SparedVerdict,
    SubnetPlan,
)
from ultrascale.plan.network.demand import ZoneDemand, first_that_hold, is_enough, single_addresses
from ultrascale.plan.network.vpc import node_subnet_kind, subnets_of

# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
_SPOT_NOTICE_SECONDS = 120
# As long as the pods of a NodePool's node have. Only a lower size takes such an instance.
_UNHURRIED_SECONDS = 3600
# Healthy GPUs get it as well; where they are broken, another reason follows.
_LOST_DCGM = SparedVerdict(
    condition=eks.ACCELERATOR_CONDITION,
    reason=eks.LOST_DCGM,
    minutes=eks.NODE_REPAIR_MINUTES,
)


def plan_node_groups(
    network: NetworkPlan,
    pools: Sequence[PoolPlan],
    autoscaler: ClusterAutoscalerPlan | None,
    *,
    repaired: Collection[str],
) -> tuple[NodeGroupPlan, ...]:
    """Return the node group of each pool that has one.

    Args:
        network: VPC.
        pools: All pools of the cluster, in the order of the file.
        autoscaler: The Cluster Autoscaler, if there is one.
        repaired: Pools, by name in the file, whose broken nodes EKS replaces.
    """
    tags: Mapping[str, Mapping[str, str]] = autoscaler.group_tags if autoscaler is not None else {}
    return tuple(
        plan_node_group(
            pool,
            subnets=_subnets(network, pool, earlier=pools[:number]),
            autoscaler_tags=tags.get(pool.name, {}),
            repaired=pool.pool in repaired,
        )
        for number, pool in enumerate(pools)
        if pool.is_node_group
    )


def plan_node_group(
    pool: PoolPlan,
    *,
    subnets: tuple[SubnetPlan, ...],
    autoscaler_tags: Mapping[str, str],
    repaired: bool,
) -> NodeGroupPlan:
    """Return the node group of a pool.

    Args:
        pool: The pool.
        subnets: Its subnets.
        autoscaler_tags: Tags for the Cluster Autoscaler; empty where it does not scale the pool.
        repaired: Whether EKS may replace broken nodes.
    """
    return NodeGroupPlan(
        pool=pool,
        subnets=subnets,
        guarded=is_guarded(pool),
        repaired=repaired,
        spared=_LOST_DCGM if repaired and pool.accelerator is not None else None,
        kept_in_zones=is_kept_in_its_zones(pool),
        drain_seconds=drain_seconds(pool),
        # The add-on has a role of its own.
        carries_cni_rights=False,
        autoscaler_tags=autoscaler_tags,
    )


def _subnets(
    network: NetworkPlan, pool: PoolPlan, *, earlier: Sequence[PoolPlan]
) -> tuple[SubnetPlan, ...]:
    if network.existing is not None:
        return subnets_of(network, pool)
    kind = node_subnet_kind(network, pool)
    subnets = [subnet for subnet in network.of_kind(kind) if subnet.zone in pool.zones]
    beside = [other for other in earlier if node_subnet_kind(network, other) == kind]
    return group_subnets(pool, subnets, earlier=beside)


def drain_seconds(plan: PoolPlan) -> int:
    """Return the longest drain of an ending self-managed instance, in seconds.

    No longer than the instance lives: EC2 takes Spot Instances and those of a Capacity Block while
    they drain.
    """
    if plan.window is not None:
        return int((plan.window.reclaimed_from - plan.window.usable_until).total_seconds())
    return _SPOT_NOTICE_SECONDS if plan.capacity_type == "spot" else _UNHURRIED_SECONDS


def is_guarded(plan: PoolPlan) -> bool:
    """Return whether a deploy must leave the running nodes of a managed node group alone.

    EKS replaces them one by one whenever their launch template changes. A job over all of them,
    which is what nodes with EFA interfaces are for, would be broken off at the first, and reserved
    capacity has no place for a second set. A Capacity Block's group it updates at a size of 0 only.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """
    if plan.role == "system":
        return False
    return "reserved" in {plan.capacity_type, plan.role} or plan.efa_interfaces > 0


def group_subnets(
    plan: PoolPlan, subnets: Sequence[SubnetPlan], *, earlier: Iterable[PoolPlan]
) -> tuple[SubnetPlan, ...]:
    """Return the subnets of a node group: of a managed one in each zone the first that hold it.

    CloudFormation replaces a managed group for other subnets, with every node: one more pod range
    must not do that. The subnets also hold the groups before it in the file that cannot move, so
    that one more group moves none: managed groups, and HyperPod's; each at its maximum in every
    zone, where all of it may come when another has no capacity. An Auto Scaling group of ours takes
    further subnets in place, and has them all.

    Source:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-nodegroup.html

    Args:
        plan: The pool.
        subnets: Subnets of its kind in its zones, in the order in which ranges were added.
        earlier: Pools before it in the file with nodes in subnets of that kind.
    """
    if plan.window is not None:
        return (block_subnet(plan, subnets),)
    if not plan.is_managed:
        return tuple(subnets)
    fixed = [plan, *(other for other in earlier if other.facts.keeps_subnets)]
    demands: dict[str, ZoneDemand] = {}
    for zone in plan.zones:
        there = [pool for pool in fixed if zone in pool.zones]
        demands[zone] = ZoneDemand(
            sum(pool.max_nodes for pool in there),
            sum(pool.max_nodes * _addresses(pool) for pool in there),
        )
    chosen = first_that_hold(subnets, demands)
    return tuple(subnet for subnet in subnets if subnet in chosen)


def _addresses(plan: PoolPlan) -> int:
    return single_addresses(plan)


def block_subnet(plan: PoolPlan, subnets: Sequence[SubnetPlan]) -> SubnetPlan:
    """Return the subnet of a Capacity Block's node group, as EKS takes but one.

    It is the first that holds the pool at its maximum, not the largest: one more pod range must not
    make another the pool's, which takes another group. Where none does, it is the largest.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html

    Args:
        plan: The pool.
        subnets: Subnets of its zone, at least one, in the order in which ranges were added.
    """
    demand = ZoneDemand(plan.max_nodes, plan.max_nodes)
    roomy = (subnet for subnet in subnets if is_enough([subnet], demand))
    return next(roomy, None) or max(subnets, key=lambda subnet: subnet.cidr.num_addresses)


def is_kept_in_its_zones(plan: PoolPlan) -> bool:
    """Return whether EC2 Auto Scaling must not move nodes from one zone to another.

    It would, to balance zones, without regard to jobs; under EKS as well, which offers no setting
    for it. Protection from scale-in is no remedy: it keeps the nodes of a deleted stack, and a
    lowered maximum from being reached. EKS counts on rebalancing where an update launches nodes
    before it ends others; pools that stay in their zones end a node first, and its successor goes
    to the zone with the fewest.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    Source: https://github.com/aws/containers-roadmap/issues/1453
    """
    # A Capacity Block is in one zone.
    return plan.replace_before_launch and len(plan.zones) > 1
