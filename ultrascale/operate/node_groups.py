"""EKS node groups and Auto Scaling groups: names, sizes and failures.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.errors import ClusterError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef, InstanceTypeDef

# States of a group that has nodes and keeps them.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
_STANDING = frozenset({"ACTIVE", "UPDATING", "DEGRADED"})
_GONE = "ResourceNotFoundException"
_IN_SERVICE = "InService"


class Group(Frozen):
    """A managed node group, or an Auto Scaling group of ours."""

    account: Account  # Account that it is in
    cluster: str  # Name of the cluster
    # Name of the managed node group; None for an Auto Scaling group of our own.
    scaled_by_eks: str | None
    auto_scaling: str  # Name of the Auto Scaling group; of a managed group, the one behind it
    updating: bool = False  # Whether EKS is updating it, and takes no other update

    @property
    def name(self) -> str:
        """Name of the group in AWS."""
        return self.scaled_by_eks or self.auto_scaling

    def is_set_to(self, nodes: int, *, minimum: int) -> bool:
        """Return whether the group has this desired capacity and this minimum."""
        group = self.describe()
        return (group["DesiredCapacity"], group["MinSize"]) == (nodes, minimum)

    def describe(self) -> "AutoScalingGroupTypeDef":
        """Return the Auto Scaling group: EKS's own figures lag after a scaler's change.

        Raises:
            ClusterError: The Auto Scaling group is gone.
            UnansweredError: AWS does not answer.
        """
        groups = self.account.ask_all(
            self.account.client("autoscaling").describe_auto_scaling_groups,
            lambda page: page["AutoScalingGroups"],
            AutoScalingGroupNames=[self.auto_scaling],
        )
        if not groups:
            raise ClusterError(f"the Auto Scaling group {self.auto_scaling} is gone")
        return groups[0]

    def set_size(self, nodes: int, *, minimum: int) -> None:
        """Set the desired number of nodes and the minimum.

        Raises:
            UnansweredError: AWS refuses.
        """
        if self.scaled_by_eks is None:
            self.account.ask(
                self.account.client("autoscaling").update_auto_scaling_group,
                AutoScalingGroupName=self.auto_scaling,
                MinSize=minimum,
                DesiredCapacity=nodes,
            )
            return
        self.account.ask(
            self.account.client("eks").update_nodegroup_config,
            clusterName=self.cluster,
            nodegroupName=self.scaled_by_eks,
            scalingConfig={"minSize": minimum, "desiredSize": nodes},
        )

    def instances(self) -> "Sequence[InstanceTypeDef]":
        """Return the group's instances, including those that start or end."""
        return self.describe()["Instances"]

    def waiting_for(self, nodes: int) -> str:
        """Return why ``nodes`` instances are not all in service yet; empty once they are."""
        group = self.describe()
        if group["DesiredCapacity"] != nodes:
            return f"{self.name}: set to {group['DesiredCapacity']}, not to {nodes}"
        states = [instance["LifecycleState"] for instance in group["Instances"]]
        running = states.count(_IN_SERVICE)
        if running == nodes == len(states):
            return ""
        moving = f", {len(states) - running} on their way" if len(states) > running else ""
        return f"{self.name}: {running} of {nodes} in service{moving}"

    def trouble(self) -> str:
        """Return the failure of the newest scaling activity, and the issues that EKS reports.

        Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Issue.html
        """
        try:
            return "; ".join((*self._failed_activities(), *self._issues()))
        except UnansweredError as error:
            # The reason to wait is shown even without instances.
            return f"why is not known: {error}"

    def _failed_activities(self) -> Iterator[str]:
        # The newest activity is the first.
        activities = self.account.ask(
            self.account.client("autoscaling").describe_scaling_activities,
            AutoScalingGroupName=self.auto_scaling,
            MaxRecords=1,
        )["Activities"]
        if activities and activities[0]["StatusCode"] == "Failed":
            yield f"Auto Scaling says: {activities[0]['StatusMessage']}"

    def _issues(self) -> Iterator[str]:
        if self.scaled_by_eks is None:
            return
        answer = self.account.ask(
            self.account.client("eks").describe_nodegroup,
            clusterName=self.cluster,
            nodegroupName=self.scaled_by_eks,
        )
        for issue in answer["nodegroup"].get("health", {}).get("issues", ()):
            yield f"EKS says: {issue['code']}: {issue['message']}"


def standing_groups(account: Account, cluster: str, pool: PoolPlan) -> Sequence[Group]:
    """Return the node groups of ``pool`` that keep their nodes; there are two during a replacement.

    Raises:
        UnansweredError: AWS does not answer.
    """
    return [*(_managed_groups if pool.is_managed else _self_managed_groups)(account, cluster, pool)]


def find_group(account: Account, cluster: str, pool: PoolPlan) -> Group:
    """Return the only node group of ``pool`` in ``cluster``, which may be changed.

    Raises:
        ClusterError: There is no group, or EKS replaces or updates it now.
        UnansweredError: AWS does not answer.
    """
    groups = standing_groups(account, cluster, pool)
    if not groups:
        stack = names.stack(cluster, pool.name)
        raise ClusterError(
            f"{pool.name}: no node group stands; deploy it: "
            f"cdk deploy --exclusively {stack} -c cluster=FILE"
        )
    if len(groups) > 1:
        listed = ", ".join(group.name for group in groups)
        raise ClusterError(f"{pool.name}: {listed} stand side by side; wait until one has gone")
    if groups[0].updating:
        raise ClusterError(f"{pool.name}: EKS updates {groups[0].name}; wait until that is done")
    return groups[0]


def _managed_groups(account: Account, cluster: str, pool: PoolPlan) -> Iterator[Group]:
    for name in account.ask_all(
        account.client("eks").list_nodegroups,
        lambda page: page["nodegroups"],
        clusterName=cluster,
    ):
        try:
            answer = account.ask(
                account.client("eks").describe_nodegroup, clusterName=cluster, nodegroupName=name
            )
        except UnansweredError as error:
            if error.code == _GONE:
                continue
            raise
        group = answer["nodegroup"]
        if group["status"] not in _STANDING or not _matches_pool(pool, group.get("labels", {})):
            continue
        auto_scaling = [behind["name"] for behind in group["resources"]["autoScalingGroups"]]
        yield Group(
            account=account,
            cluster=cluster,
            scaled_by_eks=name,
            auto_scaling=auto_scaling[0],
            updating=group["status"] == "UPDATING",
        )


def _self_managed_groups(account: Account, cluster: str, pool: PoolPlan) -> Iterator[Group]:
    wanted = {f"kubernetes.io/cluster/{cluster}": "owned", **_labels(pool)}
    groups = account.ask_all(
        account.client("autoscaling").describe_auto_scaling_groups,
        lambda page: page["AutoScalingGroups"],
        Filters=[
            {"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items() if value
        ],
    )
    for group in groups:
        name = group["AutoScalingGroupName"]
        yield Group(account=account, cluster=cluster, scaled_by_eks=None, auto_scaling=name)


def _labels(pool: PoolPlan) -> Mapping[str, str]:
    """Return the labels that identify a pool's group; an empty value stands for no label."""
    return {key: pool.labels.get(key, "") for key in (names.POOL_LABEL, names.SHARD_LABEL)}


def _matches_pool(pool: PoolPlan, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key, "") == value for key, value in _labels(pool).items())
