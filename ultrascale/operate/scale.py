"""A pool's size, set by whoever it belongs to, and waited for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.node_groups import Group, find_group
from ultrascale.operate.node_pools import NodePool, changed_meanwhile, nodes_of, waiting_for_nodes
from ultrascale.operate.pool_size import SizeChange
from ultrascale.plan.model import ClusterPlan, PoolPlan

_LOOK_SECONDS = 15


class Target(Protocol):
    """What has the nodes of a pool."""

    def size(self) -> int:
        """Return the nodes that it is set to."""
        ...

    def most(self) -> int | None:
        """Return the most nodes that it may have as it is deployed; None where nothing says."""
        ...

    def is_set_to(self, nodes: int) -> bool:
        """Return whether nothing about it has to change for ``nodes`` nodes."""
        ...

    def set(self, nodes: int, *, was: int) -> None:
        """Set its nodes, unless somebody changed them since they were read."""
        ...

    def waiting_for(self, nodes: int) -> str:
        """Return what is missing until ``nodes`` run; or nothing."""
        ...

    def trouble(self) -> str:
        """Return why nodes do not come or go; or nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTarget:
    """A node group.

    Attributes:
        group: The group.
        pool: What the file gives it.
        cluster: Where its instances become nodes; None where nobody looks there.
    """

    group: Group
    pool: PoolPlan
    cluster: Cluster | None

    def size(self) -> int:
        """Return the instances that it is set to."""
        return self.group.describe()["DesiredCapacity"]

    def most(self) -> int | None:
        """Return its maximum."""
        return self.group.describe()["MaxSize"]

    def is_set_to(self, nodes: int) -> bool:
        """Return whether it has that desired capacity, and the minimum that goes with it."""
        return self.group.is_set_to(nodes, minimum=min(nodes, self.pool.min_nodes))

    def set(self, nodes: int, *, was: int) -> None:
        """Set its nodes; the minimum gives way to a smaller size, and comes back with a larger.

        Raises:
            ClusterError: Somebody else set its nodes since they were read: a scaler that has made
                it larger would lose what it launched.
            UnansweredError: AWS refuses.
        """
        if (now := self.size()) != was:
            raise changed_meanwhile(self.group.name, was, now)
        self.group.set_size(nodes, minimum=min(nodes, self.pool.min_nodes))

    def waiting_for(self, nodes: int) -> str:
        """Return what is missing until ``nodes`` instances are in service, and take work."""
        waiting = self.group.waiting_for(nodes)
        if waiting or self.cluster is None:
            return waiting
        found = nodes_of(self.cluster, self.pool)
        return waiting_for_nodes(found, nodes, self.pool, self.group.name)

    def trouble(self) -> str:
        """Return what Auto Scaling says of its newest failure; or nothing."""
        return self.group.trouble()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolTarget:
    """A static NodePool.

    Attributes:
        node_pool: The NodePool.
    """

    node_pool: NodePool

    def size(self) -> int:
        """Return the nodes that it is set to."""
        return self.node_pool.replicas()

    def most(self) -> int | None:
        """Return its limit of nodes; None without one."""
        return self.node_pool.limit()

    def is_set_to(self, nodes: int) -> bool:
        """Return whether it keeps that count."""
        return self.size() == nodes

    def set(self, nodes: int, *, was: int) -> None:
        """Set its nodes, unless somebody changed them since they were read."""
        self.node_pool.set_replicas(nodes, was=was)

    def waiting_for(self, nodes: int) -> str:
        """Return what is missing until ``nodes`` nodes take work; or nothing."""
        return self.node_pool.waiting_for(nodes)

    def trouble(self) -> str:
        """Return why NodeClaims do not become nodes; or nothing."""
        return self.node_pool.trouble()


def target(
    plan: ClusterPlan,
    change: SizeChange,
    *,
    account: Callable[[Cluster | None], Account],
    cluster: Callable[[], Cluster],
    looks: bool,
) -> Target:
    """Return what has the nodes of the pool that is to change.

    Args:
        plan: The cluster.
        change: The change.
        account: Connects to the account of a node group, and of the cluster that is looked at.
        cluster: Connects to the cluster, which a NodePool is in.
        looks: Whether the nodes of a node group are looked at there as well.

    Raises:
        AccountError: AWS does not answer.
        ClusterError: The group does not stand, or the cluster does not answer.
    """
    pool = change.pool
    if change.node_pool is not None:
        found = NodePool(cluster=cluster(), name=change.node_pool.name, pool=pool)
        return NodePoolTarget(node_pool=found)
    seen = cluster() if looks else None
    return GroupTarget(group=find_group(account(seen), plan, pool), pool=pool, cluster=seen)


def settle(
    found: Target, nodes: int, *, minutes: float, clock: Clock, say: Callable[[str], None]
) -> None:
    """Return once ``nodes`` nodes run, and no others.

    Raises:
        ClusterError: They do not in time; it says what AWS or Kubernetes tells of the cause.
    """
    wait(
        clock,
        lambda: found.waiting_for(nodes),
        minutes=minutes,
        every=_LOOK_SECONDS,
        say=say,
        stuck=found.trouble,
    )
