"""Shares of Kueue's queues in the fleet, in nodes."""

from collections.abc import Iterator, Sequence

from ultrascale.parts.kueue.model import Plan
from ultrascale.parts.kueue.plan import queued_pools
from ultrascale.plan.model import FlavorPlan, FlavorShares, PoolPlan, QueueNeeds, QueueShare


def queue_needs(kueue: Plan, pools: Sequence[PoolPlan]) -> QueueNeeds:
    """Return the guaranteed nodes of queues among the nodes of ``pools``."""
    flavors = tuple(_shares(kueue, flavor) for flavor in kueue.flavors)
    queued = {flavor.pool for flavor in flavors}
    return QueueNeeds(
        flavors=flavors,
        nodes=sum(flavor.nodes for flavor in flavors),
        unqueued={
            name: pool.nodes for name, pool in queued_pools(pools).items() if name not in queued
        },
    )


def _shares(kueue: Plan, flavor: FlavorPlan) -> FlavorShares:
    (shared,) = (
        quota.nominal
        for group in kueue.cohort.groups
        for quota in group.quotas
        if quota.flavor == flavor.name
    )
    return FlavorShares(
        pool=flavor.pool,
        by_topology=flavor.topology is not None,
        resource=flavor.resource,
        nodes=flavor.nodes,
        quantity=flavor.quantity,
        shares=tuple(_queue_shares(kueue, flavor)),
        shared=shared // flavor.per_node,
    )


def _queue_shares(kueue: Plan, flavor: FlavorPlan) -> Iterator[QueueShare]:
    for queue in kueue.queues:
        if (quota := queue.quota_of(flavor)) is not None:
            yield QueueShare(
                queue=queue.name,
                tried=queue.pools.index(flavor.pool) + 1,
                guaranteed=quota.own // flavor.per_node,
                most=quota.most // flavor.per_node,
            )
