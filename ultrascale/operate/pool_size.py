"""Rules for setting a pool's size by hand, and for renewing its nodes.

`PoolPlan.sized_by` names the program or person that sets the size of a pool; see
docs/decisions/0004.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from ultrascale import config
from ultrascale.account import Account
from ultrascale.catalog.prices import catalog_prices
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, InterruptedWorkError, QuestionError
from ultrascale.frozen import Frozen
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.node_groups import Group, find_group
from ultrascale.operate.node_pools import NodePool, changed_meanwhile, nodes_of, waiting_for_nodes
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


# --- Change of a pool's size: of its node group or its static NodePool ----------------------------


_LOOK_SECONDS = 15


class Target(Protocol):
    """The node group or NodePool that holds the nodes of a pool."""

    def size(self) -> int:
        """Return the number of nodes that the target is set to."""
        ...

    def most(self) -> int | None:
        """Return the deployed maximum number of nodes; None without a maximum."""
        ...

    def is_set_to(self, nodes: int) -> bool:
        """Return whether the target is already set to ``nodes`` nodes."""
        ...

    def set(self, nodes: int, *, was: int) -> None:
        """Set the number of nodes, unless it is no longer ``was``."""
        ...

    def waiting_for(self, nodes: int) -> str:
        """Return why not exactly ``nodes`` nodes run yet; empty once they do."""
        ...

    def trouble(self) -> str:
        """Return why nodes do not start or end; empty if no reason is known."""
        ...


class GroupTarget(Frozen):
    """A node group as the target of a change."""

    group: Group  # The group
    pool: PoolPlan  # The pool of the cluster file
    cluster: Cluster | None  # API server where its nodes are watched; None where only EC2 is

    def size(self) -> int:
        """Return the desired number of instances."""
        return self.group.describe()["DesiredCapacity"]

    def most(self) -> int | None:
        """Return the maximum number of instances."""
        return self.group.describe()["MaxSize"]

    def is_set_to(self, nodes: int) -> bool:
        """Return whether the desired number and the minimum already match ``nodes``."""
        return self.group.is_set_to(nodes, minimum=min(nodes, self.pool.min_nodes))

    def set(self, nodes: int, *, was: int) -> None:
        """Set the number of nodes, and lower or restore the group's minimum with it.

        Raises:
            ClusterError: Somebody else has changed the size since it was read. After a scaler has
                    enlarged the group, the change would end the nodes that it launched.
            UnansweredError: AWS refuses.
        """
        if (now := self.size()) != was:
            raise changed_meanwhile(self.group.name, was, now)
        self.group.set_size(nodes, minimum=min(nodes, self.pool.min_nodes))

    def waiting_for(self, nodes: int) -> str:
        """Return why ``nodes`` instances do not take work yet; empty once they do."""
        waiting = self.group.waiting_for(nodes)
        if waiting or self.cluster is None:
            return waiting
        existing = nodes_of(self.cluster, self.pool)
        return waiting_for_nodes(existing, nodes, self.pool, self.group.name)

    def trouble(self) -> str:
        """Return the newest failure that Auto Scaling reports; empty without one."""
        return self.group.trouble()


class NodePoolTarget(Frozen):
    """A static NodePool as the target of a change."""

    node_pool: NodePool  # The NodePool

    def size(self) -> int:
        """Return the number of nodes that the NodePool is set to."""
        return self.node_pool.replicas()

    def most(self) -> int | None:
        """Return the NodePool's limit of nodes; None without a limit."""
        return self.node_pool.limit()

    def is_set_to(self, nodes: int) -> bool:
        """Return whether the NodePool is already set to ``nodes`` nodes."""
        return self.size() == nodes

    def set(self, nodes: int, *, was: int) -> None:
        """Set the number of nodes, unless it is no longer ``was``."""
        self.node_pool.set_replicas(nodes, was=was)

    def waiting_for(self, nodes: int) -> str:
        """Return why ``nodes`` nodes do not take work yet; empty once they do."""
        return self.node_pool.waiting_for(nodes)

    def trouble(self) -> str:
        """Return why NodeClaims do not become nodes; empty if no reason is known."""
        return self.node_pool.trouble()


class Scaling(Frozen):
    """A change of a pool's size that was sent."""

    change: SizeChange  # The change of size
    target: Target  # The node group or NodePool of the pool
    before: int  # Number of nodes that it was set to
    is_done: bool  # Whether it already had the wanted size, and was left alone
    # Whether `wait` waits until the nodes take work; otherwise only until EC2 runs them.
    watches_nodes: bool
    clock: Clock  # The clock

    def wait(self, *, minutes: float, say: Callable[[str], None]) -> None:
        """Wait until exactly the wanted nodes run.

        Raises:
            ClusterError: The nodes do not run in time. The message holds the cause that AWS or
                    Kubernetes states.
            InterruptedWorkError: The user stopped the wait.
        """
        pool, nodes = self.change.pool.name, self.change.nodes
        try:
            wait(
                self.clock,
                lambda: self.target.waiting_for(nodes),
                minutes=minutes,
                every=_LOOK_SECONDS,
                say=say,
                stuck=self.target.trouble,
            )
        except KeyboardInterrupt:
            raise InterruptedWorkError(
                f"{pool} stays set to {nodes} nodes; the same command waits again"
            ) from None


def scale(
    plan: ClusterPlan,
    pool: str,
    nodes: int,
    *,
    account: Callable[[Cluster | None], Account],
    cluster: Callable[[], Cluster],
    watches_nodes: bool = False,
    review: Callable[[Scaling], None] = lambda _: None,
    clock: Clock | None = None,
) -> Scaling:
    """Set the size of a pool.

    Args:
        plan: The cluster.
        pool: Name of a pool, of a shard or of a NodePool.
        nodes: Number of nodes.
        account: Connects to the AWS account of a node group; takes the API server where the nodes
            are watched, or None.
        cluster: Connects to the API server.
        watches_nodes: Whether the nodes of a node group are watched in Kubernetes too. AWS
            credentials are enough for a node group, whose API server may be out of reach.
        review: Is called before the change; an error that it raises prevents the change.
        clock: The clock; by default this machine's.

    Raises:
        QuestionError: There is no such pool, its size is not set by hand, or ``nodes`` is no
            allowed size.
        AccountError: AWS does not answer.
        ClusterError: There is no such node group or NodePool, it is too small, somebody else
            changed it meanwhile, or the API server cannot be reached.
    """
    clock = clock or Clock()
    change = plan_size(plan, pool, nodes, clock.now())
    target = _target(
        plan.name, change, account=account, cluster=cluster, watches_nodes=watches_nodes
    )
    before, most = target.size(), target.most()
    if most is not None and nodes > most:
        raise ClusterError(
            f"{pool}: at most {most} nodes as it is deployed, got {nodes}; deploy the file first"
        )
    scaling = Scaling(
        change=change,
        target=target,
        before=before,
        is_done=target.is_set_to(nodes),
        watches_nodes=watches_nodes or change.node_pool is not None,
        clock=clock,
    )
    review(scaling)
    if not scaling.is_done:
        target.set(nodes, was=before)
    return scaling


def _target(
    name: str,
    change: SizeChange,
    *,
    account: Callable[[Cluster | None], Account],
    cluster: Callable[[], Cluster],
    watches_nodes: bool,
) -> Target:
    """Return the node group or NodePool whose size the change sets."""
    pool = change.pool
    if change.node_pool is not None:
        node_pool = NodePool(cluster=cluster(), name=change.node_pool.name, pool=pool)
        return NodePoolTarget(node_pool=node_pool)
    api = cluster() if watches_nodes else None
    return GroupTarget(group=find_group(account(api), name, pool), pool=pool, cluster=api)
