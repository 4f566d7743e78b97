"""Rules for setting a pool's size by hand, and for renewing its nodes.

`PoolPlan.sized_by` names the program or person that sets the size of a pool; see
docs/decisions/0004.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ultrascale import config
from ultrascale.catalog.price_list import catalog_prices
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan, NodePoolPlan, NodesPlan, PoolPlan, WindowPlan
from ultrascale.plan.needs.pools import PAID_BEFORE, on_demand_price
from ultrascale.plan.pools.disruption import is_kept
from ultrascale.plan.pools.node_groups import is_guarded

# The block calendar fills a node group of 0 nodes for this long after the block's start.
_FILLED = timedelta(hours=1)


class SizeChange(Frozen):
    """A change of a pool's size by hand."""

    pool: PoolPlan  # The pool, or the shard
    node_pool: NodePoolPlan | None  # Its NodePool; None for a node group
    nodes: int  # Wanted number of nodes
    # On-Demand price of a node, in US dollars an hour; None where unknown.
    usd_per_node_hour: float | None
    price: str  # Source of the price, or the reason why it is unknown
    paid_anyway: bool  # Whether the nodes cost the same while they do not run
    spills: bool  # Whether nodes beyond the reservation run at the On-Demand price
    later: str  # Effect of the next deploy, and of the programs that size the pool

    @property
    def lowers_minimum(self) -> bool:
        """Return whether the node group's minimum has to be lowered."""
        return self.nodes < self.pool.min_nodes


def find_pool(nodes: NodesPlan, all_pools: Sequence[PoolPlan], name: str) -> PoolPlan:
    """Return the pool or shard called ``name``, or whose NodePool is called ``name``.

    Raises:
        QuestionError: There is no such pool, or it has several shards.
    """
    pools = {pool.name: pool for pool in all_pools}
    if name in pools:
        return pools[name]
    for each in nodes.node_pools:
        if each.name == name:
            return next(p for p in pools.values() if (p.pool, p.shard) == (each.pool, each.shard))
    shards = [pool.name for pool in all_pools if pool.pool == name]
    if shards:
        wrong = f"POOL: {name} has {len(shards)} shards, each with a size of its own"
        raise QuestionError([f"{wrong}; write one of {', '.join(shards)}"])
    raise QuestionError([f"POOL: no pool {name!r} in the file; {config.near(name, pools)}"])


def plan_size(plan: ClusterPlan, name: str, nodes: int, at: datetime) -> SizeChange:
    """Return the change of a pool to ``nodes`` nodes, judged at the time ``at``.

    Raises:
        QuestionError: There is no such pool, its size is not set by hand, or ``nodes`` is no
            allowed size.
    """
    pool = find_pool(plan.nodes, plan.all_pools, name)
    node_pool = next(iter(_node_pools(plan.nodes, pool)), None)
    if wrong := _refusal(pool, nodes, at):
        raise QuestionError([f"{name}: {wrong}"])
    price = on_demand_price(pool, plan.region, catalog_prices())
    return SizeChange(
        pool=pool,
        node_pool=node_pool,
        nodes=nodes,
        usd_per_node_hour=price.value,
        price=price.words,
        paid_anyway=pool.purchase in PAID_BEFORE or pool.purchase == "odcr",
        spills=pool.reservation is not None and pool.reservation.spill,
        later=_later_effect(pool),
    )


def _node_pools(nodes: NodesPlan, pool: PoolPlan) -> tuple[NodePoolPlan, ...]:
    return tuple(
        each for each in nodes.node_pools if (each.pool, each.shard) == (pool.pool, pool.shard)
    )


class Renewal(Frozen):
    """A pool whose nodes are renewed by hand."""

    pool: PoolPlan  # The pool, or the shard
    node_pools: tuple[NodePoolPlan, ...]  # Its NodePools; none for a self-managed group
    until: datetime | None  # Time after which no further node may end; None without an end


def plan_renewal(
    nodes: NodesPlan, pools: Sequence[PoolPlan], name: str, *, at: datetime, until: datetime | None
) -> Renewal:
    """Return the renewal of a pool's nodes, begun at the time ``at``.

    Raises:
        QuestionError: There is no such pool, something else renews its nodes, or there is
            no time for a renewal.
    """
    pool = find_pool(nodes, pools, name)
    why = _other_renewal(pool) or _closed_reason(pool, at)
    wrong = [f"{name}: {why}"] if why else []
    if until is not None and until <= at:
        wrong.append(f"--until: {_utc_text(until)} is over; write a time to come")
    if wrong:
        raise QuestionError(wrong)
    if pool.window is not None:
        until = min(until or pool.window.usable_until, pool.window.usable_until)
    return Renewal(pool=pool, node_pools=_node_pools(nodes, pool), until=until)


def _other_renewal(pool: PoolPlan) -> str:
    """Return the program that renews the nodes of ``pool`` by itself; empty if none does."""
    if pool.facts.renewed_by:
        return pool.facts.renewed_by
    if pool.is_managed:
        if is_guarded(pool):
            return (
                "EKS renews a managed group, and would break off the jobs of this one: scale it to "
                "0 between jobs, deploy, and scale it up again"
            )
        return "EKS renews the nodes of a managed group with the deploy that changes them"
    if pool.is_node_pool and not is_kept(pool):
        return (
            "its nodes come and go with their pods, and new ones are launched as the file has it; "
            "end an idle one by `kubectl delete nodeclaim NAME`"
        )
    return ""


def _closed_reason(pool: PoolPlan, at: datetime) -> str:
    window = pool.window
    if window is None or window.starts <= at < window.usable_until:
        return ""
    return (
        f"its capacity is of use from {_utc_text(window.starts)} to "
        f"{_utc_text(window.usable_until)}, and new nodes are launched from the current "
        "template anyway"
    )


def _refusal(pool: PoolPlan, nodes: int, at: datetime) -> str:
    """Return why ``pool`` cannot have ``nodes`` nodes, with a remedy; empty if it can."""
    if pool.facts.resized_by:
        return pool.facts.resized_by
    if pool.is_node_pool and not pool.static:
        return (
            f"its NodePools launch nodes for pods that wait, up to {pool.max_nodes}; submit pods, "
            "or write another nodes.max into the file and deploy"
        )
    if nodes > pool.max_nodes:
        return f"at most {pool.max_nodes} nodes, got {nodes}; raise it in the file and deploy first"
    least = 0 if pool.is_node_pool else pool.min_nodes
    if 0 < nodes < least or (nodes == 0 and pool.role == "system" and least):
        return f"at least {pool.min_nodes} nodes, got {nodes}; lower nodes.min and deploy first"
    if pool.sized_by == "calendar" and pool.window is not None:
        return _outside_window(pool, pool.window, nodes, at)
    if nodes == 0 and _follows_reservation(pool):
        return (
            "its calendar fills a NodePool of 0 within a minute with what its reservation takes; "
            "write 1 or more"
        )
    return ""


def _follows_reservation(pool: PoolPlan) -> bool:
    """Return whether the calendar sizes a static NodePool, for any purchase option."""
    return pool.is_node_pool and pool.static and pool.reservation is not None


def _outside_window(pool: PoolPlan, window: WindowPlan, nodes: int, at: datetime) -> str:
    """Return why the block calendar would undo the size, or EC2 would refuse it."""
    block = f"its Capacity Block runs from {_utc_text(window.starts)} to {_utc_text(window.ends)}"
    if nodes and at < window.starts:
        return f"{block}; the calendar gives it {pool.max_nodes} nodes at the start"
    if nodes and at >= window.usable_until:
        return f"{block}, and its nodes are drained since {_utc_text(window.usable_until)}"
    if nodes or not window.starts <= at < window.usable_until:
        return ""
    if pool.static:
        return (
            f"{block}, in which the calendar fills a NodePool of 0 within a minute; write 1 or more"
        )
    if at < window.starts + _FILLED:
        later = _utc_text(window.starts + _FILLED)
        return f"{block}, in whose first hour the calendar fills it again; set 0 from {later} on"
    return ""


def _later_effect(pool: PoolPlan) -> str:
    match pool.sized_by:
        case "cluster-autoscaler":
            return (
                "a deploy keeps it; the Cluster Autoscaler goes on adding nodes for pods that wait "
                "and taking idle ones away"
            )
        case "calendar" if pool.static:
            return (
                "a deploy keeps it, unless the file's count changes; at the end of the block the "
                "calendar sets 0"
            )
        case _ if _follows_reservation(pool):
            return "a deploy keeps it, unless the file's count changes"
        case "calendar":
            return (
                f"a deploy keeps it, but a 0 becomes {pool.max_nodes}; at the end of the block it "
                "is set to 0"
            )
        case _:
            kind = "NodePool" if pool.is_node_pool else "group"
            return (
                f"a deploy that changes the {kind} sets it to {pool.initial_nodes} again; write "
                "the count into the file to keep it"
            )


def _utc_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"
