"""Node groups whose size the calendar sets through AWS.

They do not wait for the reservation to become active: Auto Scaling goes on launching until it is,
and no later run would make up for the one at a deploy.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedNodeGroup:
    """A managed node group. EKS scales it in by itself before the block ends.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html

    Attributes:
        eks: EKS client.
        cluster: Name of the cluster.
        name: Name of the group.
        scales_in: Whether the calendar takes its nodes away: never.
        waits: Whether it gets its nodes only once the reservation is active.
    """

    eks: Any
    cluster: str
    name: str
    scales_in: bool = False
    waits: bool = False

    def size(self) -> int:
        """Return the nodes that it is set to."""
        group = self.eks.describe_nodegroup(clusterName=self.cluster, nodegroupName=self.name)
        return group["nodegroup"]["scalingConfig"]["desiredSize"]

    def set_size(self, size: int, *, was: int) -> None:
        """Set its nodes."""
        self.eks.update_nodegroup_config(
            clusterName=self.cluster, nodegroupName=self.name, scalingConfig={"desiredSize": size}
        )

    def drain(self, message: str) -> None:
        """Leave the nodes to EKS, which drains them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoScalingGroup:
    """The Auto Scaling group of a self-managed pool.

    Attributes:
        autoscaling: Auto Scaling client.
        name: Name of the group.
        scales_in: Whether the calendar takes its nodes away.
        waits: Whether it gets its nodes only once the reservation is active.
    """

    autoscaling: Any
    name: str
    scales_in: bool = True
    waits: bool = False

    def size(self) -> int:
        """Return the instances that it is set to.

        Raises:
            LookupError: There is no such group.
        """
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])
        if not answer["AutoScalingGroups"]:
            raise LookupError(f"there is no Auto Scaling group {self.name}")
        return answer["AutoScalingGroups"][0]["DesiredCapacity"]

    def set_size(self, size: int, *, was: int) -> None:
        """Set its instances."""
        self.autoscaling.set_desired_capacity(
            AutoScalingGroupName=self.name, DesiredCapacity=size, HonorCooldown=False
        )

    def drain(self, message: str) -> None:
        """Leave the nodes to the Node Termination Handler: the group's lifecycle hook calls it."""
