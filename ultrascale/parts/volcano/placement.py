"""Placement of gangs by AWS's network topology: settings, and the time of a gang.

Volcano tries a gang in every group of the network that has room for it. The time grows with the
pods, with the groups and with the nodes of the fleet; so the size of fleet and gang bounds it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ultrascale import config
from ultrascale.catalog import network_layers
from ultrascale.parts.volcano import facts
from ultrascale.parts.volcano.model import NodeScoringPlan, VolcanoScale
from ultrascale.parts.volcano.scale import scale_of
from ultrascale.plan import names
from ultrascale.plan.model import (
    GangPlacement,
    PlacementPlan,
    PoolPlan,
)
from ultrascale.plan.network.layers import (
    groups_of,
    known_nodes,
    pools_with_layers,
    smallest_tier,
    topology_layers,
)

MOST_SECONDS = 90
"""Longest time of placing a gang by topology; above it the job does not ask for it.

The longest measured time with these settings is 78 seconds. Other jobs wait meanwhile.
"""

# Its score looks at every node for each pod. It applies by default as soon as a Service selects the
# pods, as Volcano's for a gang does: measured, half of the time of a gang for the same nodes.
_NEVER_SCORED = ("podtopologyspread",)
# `nodeaffinity` stays: a job of one pod has the order of its tiers there.
_NOT_SCORED_IN_LARGE_FLEETS = ("podaffinity", "tainttoleration", "imagelocality")
_LARGE_FLEET_NODES = 5_000
# A stated share keeps Volcano from its own, which is half of a group of 500.
_PERCENT = 1
# Sizes that the table shows where no template has one.
_EXAMPLES = (8, 64, 500)


class _Placement(PlacementPlan):
    source: ClassVar[str] = facts.MEASURED_ON
    most_nodes: ClassVar[int] = facts.MOST_NODES

    @property
    def beyond(self) -> str:
        return facts.too_large(self.nodes)


def plan_node_scoring(
    cluster: config.Cluster, pools: Sequence[PoolPlan], scale: VolcanoScale
) -> NodeScoringPlan:
    """Return how the scheduler looks for a pod's node."""
    if not cluster.scheduling.topology_aware:
        return NodeScoringPlan(
            percent=scale.nodes_scored_percent, least=None, left_out=_NEVER_SCORED
        )
    large = known_nodes(pools) > _LARGE_FLEET_NODES
    return NodeScoringPlan(
        percent=_PERCENT,
        least=scale.topology_candidates,
        left_out=(*_NEVER_SCORED, *(_NOT_SCORED_IN_LARGE_FLEETS if large else ())),
    )


def plan_placement(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> PlacementPlan | None:
    """Return the times of placing gangs by topology; None without such gangs."""
    if not cluster.scheduling.topology_aware:
        return None
    sizes, nodes = _sizes_of_gangs(cluster, pools), known_nodes(pools)
    if not sizes:
        largest = max((_nodes_of(pools, pool.pool) for pool in pools_with_layers(pools)), default=0)
        sizes = {(pods, largest): ["for comparison"] for pods in _EXAMPLES if pods <= largest}
    scale = scale_of(cluster)
    return _Placement(
        nodes=nodes,
        candidates=_scored_nodes(scale, network_layers.NEXT_GROUP_NODES),
        gangs=tuple(
            _gang(", ".join(names), pods, among=among, nodes=nodes, scale=scale)
            for (pods, among), names in sorted(sizes.items())
        ),
    )


def _sizes_of_gangs(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> dict[tuple[int, int], list[str]]:
    """Return the templates with gangs, by a gang's pods and the nodes that it is tried on."""
    sizes: dict[tuple[int, int], list[str]] = {}
    for name, job in cluster.jobs.items():
        if not isinstance(job, config.TrainingJob) or job.topology == "any":
            continue
        roles = job.roles.values()
        gang = sum(role.nodes for role in roles) or job.nodes
        named = {role.pool or job.pool for role in roles} or {job.pool}
        if gang > 1:
            own = [pool for pool in pools if None in named or pool.pool in named]
            sizes.setdefault((gang, _tried_nodes(pools, own, job)), []).append(name)
    return sizes


def plan_gang(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    among: Sequence[PoolPlan],
    job: config.TrainingJob,
    *,
    tier: int | None = None,
) -> GangPlacement:
    """Return a gang's demand on the scheduler.

    Args:
        cluster: The cluster.
        pools: All of its pools.
        among: Possible pools of the gang.
        job: The gang, a pod for each of its nodes.
        tier: Tier of groups, one of which is to hold it, 1 the lowest; None: the lowest that does.
    """
    scale = scale_of(cluster)
    within = _tried_nodes(pools, among, job)
    return _gang("", job.nodes, among=within, nodes=known_nodes(pools), scale=scale, tier=tier)


def _tried_nodes(
    pools: Sequence[PoolPlan], among: Sequence[PoolPlan], job: config.TrainingJob
) -> int:
    """Return the nodes on which a job is tried: those of the group that it names, if it does."""
    group = _nodes_of_group(job.node_selector, topology_layers(pools))
    every = known_nodes(among)
    return every if group is None else min(every, group)


def _nodes_of_group(selector: Mapping[str, str], layers: int) -> int | None:
    """Return the nodes of the group that a job names; the others are passed over at one look."""
    named = [
        layer for layer in range(1, layers + 1) if names.network_layer_label(layer) in selector
    ]
    tier = layers - max(named, default=0)
    sizes = (network_layers.SMALLEST_GROUP_NODES, network_layers.NEXT_GROUP_NODES)
    return sizes[tier] if tier < len(sizes) else None


def _nodes_of(pools: Sequence[PoolPlan], name: str) -> int:
    return sum(pool.max_nodes for pool in pools if pool.pool == name)


def _gang(
    name: str, pods: int, *, among: int, nodes: int, scale: VolcanoScale, tier: int | None = None
) -> GangPlacement:
    tier = tier or smallest_tier(pods, among)
    size = dict(groups_of(among)).get(tier, among)
    groups = max(1, math.ceil(among / size))
    cost = facts.placement_seconds(
        nodes=nodes, candidates=_scored_nodes(scale, min(size, max(among, 1)))
    )
    seconds = facts.START_SECONDS + pods * (facts.SECONDS_A_POD + groups * cost)
    return GangPlacement(
        gang=name,
        pods=pods,
        tier=tier,
        groups=groups,
        placements=pods * groups,
        seconds=seconds,
        formula=(
            f"{facts.START_SECONDS:g} s + {pods:,} pods x ({facts.SECONDS_A_POD:g} s + "
            f"{groups:,} groups of {size:,} nodes x {cost * 1_000:.1f} ms)"
        ),
        measured=_nearest(pods, nodes),
        aware=pods <= facts.MOST_GANG and nodes <= facts.MOST_NODES and seconds <= MOST_SECONDS,
    )


def _scored_nodes(scale: VolcanoScale, nodes: int) -> int:
    """Return how many of a group's nodes are scored for a pod.

    Source:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/util/scheduler_helper.go
    """
    return min(nodes, max(scale.topology_candidates, nodes * _PERCENT // 100))


def _nearest(pods: int, nodes: int) -> str:
    """Return the measured figure that is nearest above a gang and its fleet."""
    above = [run for run in facts.MEASURED if run.gang >= pods and run.nodes >= nodes]
    own = [run for run in above if not run.spread_scored] or above
    if not own:
        return "none so large"
    near = min(own, key=lambda run: (run.nodes, run.gang, run.full_percent, run.seconds))
    return (
        f"{near.seconds:g} s for {near.gang} on {near.nodes:,} nodes, "
        f"{near.candidates} scored for each pod"
    )
