"""End and replacement of nodes that were launched from an older template.

Nothing here launches a node: Karpenter or the Auto Scaling group launches a successor once an old
node has gone, so that there are never more nodes than the reservation holds.
"""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Protocol

from ultrascale.cluster_api.objects import NODE, NODE_CLAIM, Object, condition, name
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import text
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen
from ultrascale.operate.node_groups import Group
from ultrascale.operate.node_pools import NodePool, nodes_of, unfit
from ultrascale.plan.model import PoolPlan

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.type_defs import (
        AutoScalingGroupTypeDef,
        InstanceTypeDef,
        LaunchTemplateSpecificationTypeDef,
    )


class Old(Frozen):
    """A node that was launched from an older template."""

    id: str  # Its NodeClaim, or its EC2 instance
    node: str  # Its name in Kubernetes; empty where it has not joined


class Fleet(Protocol):
    """Nodes of a pool, with the ways to end and replace them."""

    @property
    def pause_seconds(self) -> float:
        """Return the seconds until it is certain whether an ended node gets a successor."""
        ...

    def old(self) -> Sequence[Old]:
        """Return the nodes on an older template, the oldest first."""
        ...

    def end(self, old: Old) -> None:
        """End a drained node, unless it is already gone or going."""
        ...

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Name the ended nodes that still exist; empty without any."""
        ...

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return why nodes other than ``old`` do not all take work; empty once all do.

        Args:
            old: Nodes that are not renewed yet.
            broken: Number of other nodes that may be missing or take no work.
        """
        ...

    def trouble(self) -> str:
        """Return why a successor does not start; empty if no reason is known."""
        ...


def remaining(there: Sequence[str], kind: str) -> str:
    """Name the resources of ``there``; empty without any."""
    if not there:
        return ""
    more = f" and {len(there) - 1} more" if len(there) > 1 else ""
    return f"{kind} {there[0]}{more} to be gone"


def missing_nodes(
    nodes: Sequence[Object], old: Set[str], due: int, pool: PoolPlan, about: str, *, broken: int
) -> str:
    """Return why fewer than ``due`` minus ``broken`` new nodes take work; empty once they do.

    A run that was stopped may have cordoned old nodes.
    """
    fresh = [node for node in nodes if name(node) not in old]
    reasons = [f"{name(node)} is {why}" for node in fresh if (why := unfit(node, pool))]
    ready = len(fresh) - len(reasons)
    if len(fresh) <= due and due - ready <= broken:
        return ""
    why = f": {reasons[0]}" if reasons else ""
    return f"{about}: {ready} of {due} new nodes ready{why}"


# Longer than Karpenter gathers waiting pods before it launches nodes for them.
_PODS_SEEN_SECONDS = 60


class NodePoolFleet(Frozen):
    """The nodes of a pool of Karpenter or EKS Auto Mode.

    Karpenter documents that deleting a NodeClaim ends its instance; EKS Auto Mode has
    the same API, and AWS does not document the effect.
    """

    node_pools: Sequence[NodePool]  # Its NodePools

    @property
    def pause_seconds(self) -> float:
        """Return the seconds that Karpenter needs to see waiting pods; 0 for a static NodePool."""
        return 0 if self._static else _PODS_SEEN_SECONDS

    @property
    def _static(self) -> bool:
        return self.node_pools[0].pool.static

    @property
    def _cluster(self) -> Cluster:
        return self.node_pools[0].cluster

    def old(self) -> Sequence[Old]:
        """Return the nodes that Karpenter marks as drifted, the oldest first.

        A drifted NodeClaim stays drifted until it is deleted, whatever the budgets are.

        Source: https://karpenter.sh/docs/concepts/disruption/#drift
        """
        return [
            Old(id=name(claim), node=text(claim, "status", "nodeName"))
            for claim in self._claims()
            if condition(claim, "Drifted")
        ]

    def end(self, old: Old) -> None:
        """Delete the node's NodeClaim: Karpenter ends the instance, then launches a successor."""
        claim = self._cluster.find(NODE_CLAIM.path(name=old.id))
        if claim is not None:
            self._cluster.delete(NODE_CLAIM, "", claim)

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Name the ended NodeClaims that still exist; empty without any."""
        there = {name(claim) for claim in self._claims()}
        return remaining([old.id for old in ended if old.id in there], "NodeClaim")

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return why nodes other than ``old`` do not all take work; empty once all do.

        A static NodePool keeps its count. Other NodePools have as many nodes as their pods need, a
        number that is not known here: only the existing nodes have to take work.
        """
        olds = {node.id for node in old}
        claims = self._claims()
        rest = [claim for claim in claims if name(claim) in olds]
        fresh = [claim for claim in claims if name(claim) not in olds]
        nodes = [node for node_pool in self.node_pools for node in node_pool.nodes()]
        first = self.node_pools[0]
        if self._static:
            names = {text(claim, "status", "nodeName") for claim in rest}
            due = first.replicas() - len(rest)
            return missing_nodes(nodes, names, due, first.pool, first.name, broken=broken)
        return _unready_claims(fresh, nodes, first, broken)

    def trouble(self) -> str:
        """Return why NodeClaims do not become nodes; empty if no reason is known."""
        troubles = (node_pool.trouble() for node_pool in self.node_pools)
        return "; ".join(trouble for trouble in troubles if trouble)

    def _claims(self) -> Sequence[Object]:
        return [claim for node_pool in self.node_pools for claim in node_pool.claims()]


def _unready_claims(
    claims: Sequence[Object], nodes: Sequence[Object], node_pool: NodePool, broken: int
) -> str:
    """Name the NodeClaims that are being deleted, or whose nodes take no work."""
    known = {name(node): node for node in nodes}
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


# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_ON_ITS_WAY_OUT = ("Terminat", "Detach")


class GroupFleet(Frozen):
    """The nodes of a self-managed Auto Scaling group."""

    group: Group  # The Auto Scaling group
    cluster: Cluster  # API server of its cluster
    pool: PoolPlan  # The pool of the cluster file

    @property
    def pause_seconds(self) -> float:
        """Return 0: the group keeps its desired capacity."""
        return 0

    def old(self) -> Sequence[Old]:
        """Return the instances whose launch template, or its version, is not the group's.

        Raises:
            ClusterError: No instance of the group is a node of the cluster, and the kubeconfig
                names
                    the cluster without ARN: it may be another cluster, and nothing would be
                        drained.
                    Or the group names its version by `$Latest`.
        """
        group = self.group.describe()
        template = _template(group)
        if template[1].startswith("$"):
            raise ClusterError(
                f"{self.group.name}: launches from version {template[1]} of its template, unlike "
                "what was deployed, and no instance says that it is that; set it to the number of "
                "that version by `aws autoscaling update-auto-scaling-group`"
            )
        instances = [instance for instance in group["Instances"] if not _is_going(instance)]
        nodes = self._node_names({instance["InstanceId"] for instance in instances})
        joined = [instance for instance in instances if instance["InstanceId"] in nodes]
        if instances and not joined and self.cluster.arn is None:
            raise ClusterError(
                f"{self.group.name}: none of its {len(instances)} instances is a node of the "
                f"cluster {self.cluster.name or 'of this pod'}, so that none would be drained; "
                "name the right one by --context, or scale the pool to 0 and up again"
            )
        return [
            Old(id=instance["InstanceId"], node=nodes.get(instance["InstanceId"], ""))
            for instance in instances
            # An instance that a user attached has no template.
            if "LaunchTemplate" not in instance
            or _launched_from(instance["LaunchTemplate"]) != template
        ]

    def end(self, old: Old) -> None:
        """End the node's instance: the group launches a successor."""
        there = {
            instance["InstanceId"] for instance in self.group.instances() if not _is_going(instance)
        }
        if old.id not in there:
            return
        self.group.account.ask(
            self.group.account.client("autoscaling").terminate_instance_in_auto_scaling_group,
            InstanceId=old.id,
            ShouldDecrementDesiredCapacity=False,
        )

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Name the ended instances that still exist; empty without any."""
        there = {instance["InstanceId"] for instance in self.group.instances()}
        return remaining([old.id for old in ended if old.id in there], "instance")

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return why nodes other than ``old`` do not all take work; empty once all do."""
        group = self.group.describe()
        there = {instance["InstanceId"] for instance in group["Instances"]}
        rest = {node.id for node in old} & there
        nodes = nodes_of(self.cluster, self.pool)
        names = {name(node) for node in nodes if _instance(node) in rest}
        due = group["DesiredCapacity"] - len(rest)
        return missing_nodes(nodes, names, due, self.pool, self.group.name, broken=broken)

    def trouble(self) -> str:
        """Return the newest failure that Auto Scaling reports; empty without one."""
        return self.group.trouble()

    def _node_names(self, instances: Set[str]) -> Mapping[str, str]:
        """Return the name of each instance's node.

        An instance whose node is unknown would end undrained. An older template may have given its
        node other labels, so all nodes of the cluster are searched if any is missing.
        """
        nodes = {_instance(node): name(node) for node in nodes_of(self.cluster, self.pool)}
        if instances <= set(nodes):
            return nodes
        every = self.cluster.items(NODE.path())
        return {id: name(node) for node in every if (id := _instance(node)) in instances}


def _template(group: "AutoScalingGroupTypeDef") -> tuple[str, str]:
    """Return the launch template from which the group launches, and its version."""
    if "LaunchTemplate" in group:
        return _launched_from(group["LaunchTemplate"])
    template = group["MixedInstancesPolicy"]["LaunchTemplate"]
    return _launched_from(template["LaunchTemplateSpecification"])


def _launched_from(template: "LaunchTemplateSpecificationTypeDef") -> tuple[str, str]:
    return template["LaunchTemplateId"], template["Version"]


def _is_going(instance: "InstanceTypeDef") -> bool:
    return instance["LifecycleState"].startswith(_ON_ITS_WAY_OUT)


def _instance(node: Object) -> str:
    """Return the id of a node's EC2 instance, which ends the provider id."""
    return text(node, "spec", "providerID").rpartition("/")[2]
