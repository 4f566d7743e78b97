"""Nodes that somebody has to renew: who is on an older template, how one ends, who follows.

Nothing here launches a node: the static NodePool, or the Auto Scaling group, brings a successor
once an old one has gone, so that there are never more than the reservation holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ultrascale.jobs.cluster import Cluster
from ultrascale.jobs.fields import Object, condition, name, text
from ultrascale.jobs.kinds import NODE
from ultrascale.operate.groups import Group
from ultrascale.operate.nodes import NODE_CLAIM, StaticNodePool, unfit
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.names import POOL_LABEL, SHARD_LABEL

# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_ON_ITS_WAY_OUT = ("Terminat", "Detach")


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """A node that is launched from an older template.

    Attributes:
        id: Its NodeClaim, or its EC2 instance.
        node: Its name in Kubernetes; empty where it has not joined.
    """

    id: str
    node: str


class Fleet(Protocol):
    """The nodes of one pool."""

    def old(self) -> Sequence[Old]:
        """Return the nodes on an older template, the oldest first."""
        ...

    def end(self, old: Old) -> None:
        """End a node that is drained."""
        ...

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which of them are still there; or nothing."""
        ...

    def waiting_for_rest(self, old: Sequence[Old]) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing."""
        ...

    def trouble(self) -> str:
        """Return why a successor does not come; or nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolFleet:
    """The nodes of a static NodePool.

    Attributes:
        node_pool: The NodePool.
    """

    node_pool: StaticNodePool

    def old(self) -> Sequence[Old]:
        """Return the nodes that Karpenter finds drifted, the oldest first.

        A drifted NodeClaim stays drifted whatever the budgets are, until it goes.

        Source: https://karpenter.sh/docs/concepts/disruption/#drift
        """
        return [
            Old(id=name(each), node=text(each, "status", "nodeName"))
            for each in self.node_pool.claims()
            if condition(each, "Drifted")
        ]

    def end(self, old: Old) -> None:
        """Delete its NodeClaim: Karpenter ends the instance, then launches its successor."""
        cluster = self.node_pool.cluster
        found = cluster.find(NODE_CLAIM.path(name=old.id))
        if found is not None:
            cluster.delete(NODE_CLAIM, "", found)

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which NodeClaims are still there; or nothing."""
        there = {name(each) for each in self.node_pool.claims()}
        return _still([each.id for each in ended if each.id in there], "NodeClaim")

    def waiting_for_rest(self, old: Sequence[Old]) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing."""
        pool = self.node_pool
        return _missing(pool.nodes(), old, pool.replicas(), pool.pool, pool.name)

    def trouble(self) -> str:
        """Return why NodeClaims do not become nodes; or nothing."""
        return self.node_pool.trouble()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFleet:
    """The nodes of a self-managed group.

    Attributes:
        group: The Auto Scaling group.
        cluster: API server of its cluster.
        pool: What its nodes have.
    """

    group: Group
    cluster: Cluster
    pool: PoolPlan

    def old(self) -> Sequence[Old]:
        """Return the instances of another version of the launch template than the group's."""
        group = self.group.describe()
        version = _version(group)
        # Of all nodes: an older template may have given them other labels, and an instance without
        # a node ends without being drained.
        nodes = {_instance(each): name(each) for each in self.cluster.items(NODE.path(), {})}
        return [
            Old(id=each["InstanceId"], node=nodes.get(each["InstanceId"], ""))
            for each in group["Instances"]
            if each["LaunchTemplate"]["Version"] != version
            and not each["LifecycleState"].startswith(_ON_ITS_WAY_OUT)
        ]

    def end(self, old: Old) -> None:
        """End its instance: the group launches its successor."""
        self.group.account.ask(
            "autoscaling:TerminateInstanceInAutoScalingGroup",
            InstanceId=old.id,
            ShouldDecrementDesiredCapacity=False,
        )

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which instances are still there; or nothing."""
        there = {each["InstanceId"] for each in self.group.instances()}
        return _still([each.id for each in ended if each.id in there], "instance")

    def waiting_for_rest(self, old: Sequence[Old]) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing."""
        wanted = self.group.describe()["DesiredCapacity"]
        return _missing(self._nodes(), old, wanted, self.pool, self.group.name)

    def trouble(self) -> str:
        """Return what Auto Scaling says of its newest failure; or nothing."""
        return self.group.last_failure()

    def _nodes(self) -> Sequence[Object]:
        labels = {
            key: self.pool.labels[key]
            for key in (POOL_LABEL, SHARD_LABEL)
            if key in self.pool.labels
        }
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return [*self.cluster.items(NODE.path(), {"labelSelector": selector})]


def _version(group: Mapping[str, Any]) -> str:
    """Return the version of the launch template that the group launches from."""
    if "LaunchTemplate" in group:
        return group["LaunchTemplate"]["Version"]
    template = group["MixedInstancesPolicy"]["LaunchTemplate"]
    return template["LaunchTemplateSpecification"]["Version"]


def _instance(node: Object) -> str:
    """Return the EC2 instance of a node, the end of its provider id."""
    return text(node, "spec", "providerID").rpartition("/")[2]


def _still(there: Sequence[str], kind: str) -> str:
    if not there:
        return ""
    more = f" and {len(there) - 1} more" if len(there) > 1 else ""
    return f"{kind} {there[0]}{more} to be gone"


def _missing(
    nodes: Sequence[Object], old: Sequence[Old], wanted: int, pool: PoolPlan, about: str
) -> str:
    """Return what is missing until there are ``wanted`` nodes that take work, the old among them.

    Old ones may be cordoned: by a run that was broken off.
    """
    olds = {each.node for each in old}
    fresh = [each for each in nodes if name(each) not in olds]
    reasons = [f"{name(each)} is {why}" for each in fresh if (why := unfit(each, pool))]
    due = wanted - len(old)
    if len(fresh) == due and not reasons:
        return ""
    why = f": {reasons[0]}" if reasons else ""
    return f"{about}: {len(fresh) - len(reasons)} of {due} new nodes ready{why}"
