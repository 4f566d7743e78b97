"""Shares of Kueue's queues in the fleet, in nodes."""

from collections.abc import Iterator, Mapping

from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    FlavorPlan,
    FlavorShares,
    KueuePlan,
    QueueNeeds,
    QueueShare,
)
from ultrascale.plan.needs.tables import Content, Row, number_at
from ultrascale.plan.queueing import queued_pools, quota_of


def plan_queue_needs(plan: ClusterPlan) -> QueueNeeds | None:
    """Return who is guaranteed which nodes of a cluster; None without Kueue."""
    kueue = plan.kueue
    if kueue is None:
        return None
    flavors = tuple(_shares(kueue, flavor) for flavor in kueue.flavors)
    queued = {flavor.pool for flavor in flavors}
    return QueueNeeds(
        flavors=flavors,
        nodes=sum(flavor.nodes for flavor in flavors),
        unqueued={
            name: pool.nodes
            for name, pool in queued_pools(plan.pools).items()
            if name not in queued
        },
    )


def _shares(kueue: KueuePlan, flavor: FlavorPlan) -> FlavorShares:
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
        shares=tuple(_of_queues(kueue, flavor)),
        shared=shared // flavor.per_node,
    )


def _of_queues(kueue: KueuePlan, flavor: FlavorPlan) -> Iterator[QueueShare]:
    for queue in kueue.queues:
        if (quota := quota_of(queue, flavor)) is not None:
            yield QueueShare(
                queue=queue.name,
                tried=queue.pools.index(flavor.pool) + 1,
                guaranteed=quota.own // flavor.per_node,
                most=quota.most // flavor.per_node,
            )


def queue_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield who is guaranteed which nodes, and who may borrow them; nothing without Kueue."""
    if needs.queues is None:
        return
    for index, flavor in enumerate(needs.queues.flavors):
        at = f"queues.flavors.{index}"
        nodes = f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool
        own: Mapping[str, Content] = {"nodes": nodes, "resource": flavor.resource}
        for place in range(len(flavor.shares)):
            yield Row(f"{at}.shares.{place}", own)
        shared, whole = (
            number_at(f"{at}.{key}", count)
            for key, count in (("shared", flavor.shared), ("nodes", flavor.nodes))
        )
        yield Row("", {**own, "queue": "shared", "guaranteed": shared, "sum": whole})
    whole = number_at("queues.nodes", needs.queues.nodes)
    yield Row("", {"nodes": "all pools in queues", "sum": whole})
    for pool, count in needs.queues.unqueued.items():
        whole = number_at(f"queues.unqueued.{pool}", count)
        yield Row("", {"nodes": pool, "queue": "none", "sum": whole})
