"""Node groups whose size the calendar sets in AWS.

They do not wait for the reservation to become active: Auto Scaling goes on launching until it is.

Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..node_groups.size import describe, size_of
from .scheduled_end import ScheduledEnd, read

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_eks import EKSClient


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedNodeGroup:
    """A managed node group, which EKS drains by itself 40 minutes before a block ends.

    Attributes:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        cluster: Name of the cluster.
        name: Name of the group.
        emptied_by_eks: Whether EKS drains its nodes before a block ends.
        filled_again: Whether the calendar sets its size whenever it has no nodes in the window.
    """

    eks: "EKSClient"
    autoscaling: "AutoScalingClient"
    cluster: str
    name: str
    emptied_by_eks: bool = True
    filled_again: bool = False

    def size(self) -> int:
        """Return the desired size of the Auto Scaling group behind it.

        Raises:
            LookupError: There is no such group.
        """
        group = describe(self.eks, cluster=self.cluster, name=self.name)
        if group is None:
            raise LookupError(f"there is no node group {self.name}")
        return size_of(self.autoscaling, group)

    def scheduled_end(self) -> ScheduledEnd:
        """Return EKS's scheduled action on the Auto Scaling group behind it.

        Raises:
            LookupError: There is no such group.
        """
        group = describe(self.eks, cluster=self.cluster, name=self.name)
        if group is None:
            raise LookupError(f"there is no node group {self.name}")
        behind = group.get("resources", {}).get("autoScalingGroups", [])
        return read(self.autoscaling, [each["name"] for each in behind if "name" in each])

    def set_size(self, size: int, *, was: int) -> None:
        """Set its desired size."""
        self.eks.update_nodegroup_config(
            clusterName=self.cluster, nodegroupName=self.name, scalingConfig={"desiredSize": size}
        )

    def drain(self, message: str) -> None:
        """Leave the nodes to EKS, which drains those of a group that shrinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoScalingGroup:
    """The Auto Scaling group of a self-managed pool.

    Attributes:
        autoscaling: Auto Scaling client.
        name: Name of the group.
        emptied_by_eks: Whether EKS drains its nodes before a block ends.
        filled_again: Whether the calendar sets its size whenever it has no nodes in the window.
    """

    autoscaling: "AutoScalingClient"
    name: str
    emptied_by_eks: bool = False
    filled_again: bool = False

    def size(self) -> int:
        """Return its desired size.

        Raises:
            LookupError: There is no such group.
        """
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])
        if not answer["AutoScalingGroups"]:
            raise LookupError(f"there is no Auto Scaling group {self.name}")
        return answer["AutoScalingGroups"][0]["DesiredCapacity"]

    def set_size(self, size: int, *, was: int) -> None:
        """Set its desired size."""
        self.autoscaling.set_desired_capacity(
            AutoScalingGroupName=self.name, DesiredCapacity=size, HonorCooldown=False
        )

    def drain(self, message: str) -> None:
        """Leave the nodes to the Node Termination Handler: the group's lifecycle hook calls it."""
