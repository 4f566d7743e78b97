"""Shares of Kueue's queues in the fleet, in nodes."""

from collections.abc import Iterator

from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    FlavorPlan,
    FlavorShares,
    KueuePlan,
    QueueNeeds,
    QueueShare,
)
from ultrascale.plan.needs.tables import Row, Table, columns, number_at, row
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


def queues_table(needs: ClusterNeeds) -> Table:
    """Return who is guaranteed which nodes, and who may borrow them; no rows without Kueue."""
    rows = [*_rows(needs.queues)] if needs.queues is not None else []
    return Table(
        caption="Nodes that queues are guaranteed, and the most that they may use with what others "
        "leave idle.",
        columns=(
            *columns("words", "nodes of pool", "counted in", "queue"),
            *columns("number", "tried as", "guaranteed", "at most", "sum"),
        ),
        rows=tuple(rows),
    )


def _rows(needs: QueueNeeds) -> Iterator[Row]:
    for index, flavor in enumerate(needs.flavors):
        at = f"queues.flavors.{index}"
        nodes = f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool
        for place, share in enumerate(flavor.shares):
            own = f"{at}.shares.{place}"
            yield row(
                nodes,
                flavor.resource,
                share.queue,
                number_at(f"{own}.tried", share.tried),
                number_at(f"{own}.guaranteed", share.guaranteed),
                number_at(f"{own}.most", share.most),
                "",
            )
        shared, whole = (
            number_at(f"{at}.shared", flavor.shared),
            number_at(f"{at}.nodes", flavor.nodes),
        )
        yield row(nodes, flavor.resource, "shared", "", shared, "", whole)
    yield row("all pools in queues", *[""] * 5, number_at("queues.nodes", needs.nodes))
    for pool, count in needs.unqueued.items():
        yield row(pool, "", "none", "", "", "", number_at(f"queues.unqueued.{pool}", count))
