"""Nodes of a pool of Karpenter or EKS Auto Mode, renewed by their NodeClaims."""

from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale.documents import text
from ultrascale.jobs.cluster import Cluster
from ultrascale.jobs.fields import Object, condition, name
from ultrascale.operate.fleet import Old, missing, still_there
from ultrascale.operate.nodes import NODE_CLAIM, NodePool, unfit
from ultrascale.plan.model import PoolPlan

# Longer than Karpenter waits for more pods before it launches nodes for those that wait.
_PODS_SEEN_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolFleet:
    """The nodes of a pool of Karpenter or EKS Auto Mode.

    That deletion of a NodeClaim ends its instance is Karpenter's API; of EKS Auto Mode, which has
    the same, AWS does not say it in so many words.

    Attributes:
        node_pools: Its NodePools.
    """

    node_pools: Sequence[NodePool]

    @property
    def pause_seconds(self) -> float:
        """How long Karpenter may take to see that pods wait; a static NodePool needs none."""
        return 0 if self._static else _PODS_SEEN_SECONDS

    @property
    def _static(self) -> bool:
        return self.node_pools[0].pool.static

    @property
    def _cluster(self) -> Cluster:
        return self.node_pools[0].cluster

    def old(self) -> Sequence[Old]:
        """Return the nodes that Karpenter finds drifted, the oldest first.

        A drifted NodeClaim stays drifted whatever the budgets are, until it goes.

        Source: https://karpenter.sh/docs/concepts/disruption/#drift
        """
        return [
            Old(id=name(each), node=text(each, "status", "nodeName"))
            for each in self._claims()
            if condition(each, "Drifted")
        ]

    def end(self, old: Old) -> None:
        """Delete its NodeClaim: Karpenter ends the instance, then launches its successor."""
        found = self._cluster.find(NODE_CLAIM.path(name=old.id))
        if found is not None:
            self._cluster.delete(NODE_CLAIM, "", found)

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which NodeClaims are still there; or nothing."""
        there = {name(each) for each in self._claims()}
        return still_there([each.id for each in ended if each.id in there], "NodeClaim")

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing.

        A static NodePool keeps its count. Of others nobody knows how many nodes their pods need:
        those that there are have to take work.
        """
        olds = {each.id for each in old}
        claims = self._claims()
        rest = [each for each in claims if name(each) in olds]
        fresh = [each for each in claims if name(each) not in olds]
        nodes = [each for node_pool in self.node_pools for each in node_pool.nodes()]
        first = self.node_pools[0]
        if self._static:
            names = {text(each, "status", "nodeName") for each in rest}
            due = first.replicas() - len(rest)
            return missing(nodes, names, due, first.pool, first.name, broken=broken)
        return _unready(fresh, nodes, first, broken)

    def trouble(self) -> str:
        """Return why NodeClaims do not become nodes; or nothing."""
        found = (each.trouble() for each in self.node_pools)
        return "; ".join(each for each in found if each)

    def _claims(self) -> Sequence[Object]:
        return [each for node_pool in self.node_pools for each in node_pool.claims()]


def _unready(
    claims: Sequence[Object], nodes: Sequence[Object], node_pool: NodePool, broken: int
) -> str:
    """Return which NodeClaims are not there to stay, or have no node that takes work."""
    known = {name(each): each for each in nodes}
    reasons: list[str] = []
    for claim in claims:
        node = known.get(text(claim, "status", "nodeName"))
        if why := _going_or_unfit(claim, node, node_pool.pool):
            reasons.append(f"{name(claim)} is {why}")
    if len(reasons) <= broken:
        return ""
    ready = len(claims) - len(reasons)
    return f"{node_pool.name}: {ready} of {len(claims)} new nodes ready: {reasons[0]}"


def _going_or_unfit(claim: Object, node: Object | None, pool: PoolPlan) -> str:
    if text(claim, "metadata", "deletionTimestamp"):
        return "on its way out"
    return "not joined" if node is None else unfit(node, pool)
