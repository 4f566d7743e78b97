"""Nodes of a self-managed group, renewed by its Auto Scaling group."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ultrascale.documents import text
from ultrascale.errors import ClusterError
from ultrascale.jobs.cluster import Cluster
from ultrascale.jobs.fields import Object, name
from ultrascale.jobs.kinds import NODE
from ultrascale.operate.fleet import Old, missing, still_there
from ultrascale.operate.groups import Group
from ultrascale.operate.nodes import nodes_of
from ultrascale.plan.model import PoolPlan

# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_ON_ITS_WAY_OUT = ("Terminat", "Detach")


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

    @property
    def pause_seconds(self) -> float:
        """Not at all: the group keeps its desired capacity."""
        return 0

    def old(self) -> Sequence[Old]:
        """Return the instances of another launch template than the group's, or of its versions.

        Raises:
            ClusterError: No instance of the group is a node of this cluster, which the kubeconfig
                does not name in full: it may be another, and nothing would be drained. Or the
                group names its version by `$Latest`.
        """
        group = self.group.describe()
        template = _template(group)
        if template[1].startswith("$"):
            raise ClusterError(
                f"{self.group.name}: launches from version {template[1]} of its template, unlike "
                "what was deployed, and no instance says that it is that; set it to the number of "
                "that version by `aws autoscaling update-auto-scaling-group`"
            )
        instances = [each for each in group["Instances"] if not _is_going(each)]
        nodes = self._node_names({each["InstanceId"] for each in instances})
        joined = [each for each in instances if each["InstanceId"] in nodes]
        if instances and not joined and self.cluster.arn is None:
            raise ClusterError(
                f"{self.group.name}: none of its {len(instances)} instances is a node of the "
                f"cluster {self.cluster.name or 'of this pod'}, so that none would be drained; "
                "name the right one by --context, or scale the pool to 0 and up again"
            )
        return [
            Old(id=each["InstanceId"], node=nodes.get(each["InstanceId"], ""))
            for each in instances
            # One that somebody attached has none.
            if "LaunchTemplate" not in each or _launched_from(each["LaunchTemplate"]) != template
        ]

    def end(self, old: Old) -> None:
        """End its instance: the group launches its successor."""
        there = {each["InstanceId"] for each in self.group.instances() if not _is_going(each)}
        if old.id not in there:
            return
        self.group.account.ask(
            self.group.account.client("autoscaling").terminate_instance_in_auto_scaling_group,
            InstanceId=old.id,
            ShouldDecrementDesiredCapacity=False,
        )

    def waiting_for_end(self, ended: Sequence[Old]) -> str:
        """Return which instances are still there; or nothing."""
        there = {each["InstanceId"] for each in self.group.instances()}
        return still_there([each.id for each in ended if each.id in there], "instance")

    def waiting_for_rest(self, old: Sequence[Old], *, broken: int = 0) -> str:
        """Return what is missing until all but ``old`` are new and take work; or nothing."""
        group = self.group.describe()
        there = {each["InstanceId"] for each in group["Instances"]}
        rest = {each.id for each in old} & there
        nodes = nodes_of(self.cluster, self.pool)
        names = {name(each) for each in nodes if _instance(each) in rest}
        due = group["DesiredCapacity"] - len(rest)
        return missing(nodes, names, due, self.pool, self.group.name, broken=broken)

    def trouble(self) -> str:
        """Return what Auto Scaling says of its newest failure; or nothing."""
        return self.group.trouble()

    def _node_names(self, instances: Set[str]) -> Mapping[str, str]:
        """Return the node of each instance that is one.

        An instance without a node ends without being drained, and an older template may have given
        a node other labels: then all nodes of the cluster are looked at.
        """
        nodes = {_instance(each): name(each) for each in nodes_of(self.cluster, self.pool)}
        if instances <= set(nodes):
            return nodes
        every = self.cluster.items(NODE.path())
        return {id: name(each) for each in every if (id := _instance(each)) in instances}


def _template(group: Mapping[str, Any]) -> tuple[str, str]:
    """Return the launch template that the group launches from, and its version."""
    if "LaunchTemplate" in group:
        return _launched_from(group["LaunchTemplate"])
    template = group["MixedInstancesPolicy"]["LaunchTemplate"]
    return _launched_from(template["LaunchTemplateSpecification"])


def _launched_from(template: Mapping[str, str]) -> tuple[str, str]:
    return template["LaunchTemplateId"], template["Version"]


def _is_going(instance: Mapping[str, Any]) -> bool:
    return instance["LifecycleState"].startswith(_ON_ITS_WAY_OUT)


def _instance(node: Object) -> str:
    """Return the EC2 instance of a node, the end of its provider id."""
    return text(node, "spec", "providerID").rpartition("/")[2]
