"""Change of a pool's size: of its node group or its static NodePool."""

from collections.abc import Callable
from typing import Protocol

from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, InterruptedWorkError
from ultrascale.frozen import Frozen
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.node_groups import Group, find_group
from ultrascale.operate.node_pools import NodePool, changed_meanwhile, nodes_of, waiting_for_nodes
from ultrascale.operate.pool_size import SizeChange, plan_size
from ultrascale.plan.model import ClusterPlan, PoolPlan

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
