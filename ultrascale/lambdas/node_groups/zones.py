"""Zone rebalancing of Auto Scaling groups, suspended so that nodes stay where they are."""

from typing import TYPE_CHECKING

from .size import auto_scaling_groups, describe

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_eks import EKSClient

    from ..events import NodeGroupProperties


def suspend_rebalancing(
    eks: "EKSClient", autoscaling: "AutoScalingClient", properties: "NodeGroupProperties"
) -> None:
    """Keep Auto Scaling from ending nodes in one zone to start others in another.

    A launch still goes to the zone with the fewest nodes.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        properties: `AutoScalingGroupName`; or `ClusterName` and `NodegroupName` where EKS made the
            Auto Scaling group.

    Raises:
        ClientError: EKS or Auto Scaling refused.
        LookupError: There is no such node group, or it has no Auto Scaling group.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
    """
    for name in _targets(eks, properties):
        autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["AZRebalance"])


def name_of(properties: "NodeGroupProperties") -> str:
    """Return the name of the group."""
    return properties.get("AutoScalingGroupName") or properties["NodegroupName"]


def _targets(eks: "EKSClient", properties: "NodeGroupProperties") -> list[str]:
    if "AutoScalingGroupName" in properties:
        return [properties["AutoScalingGroupName"]]
    cluster, name = properties["ClusterName"], properties["NodegroupName"]
    group = describe(eks, cluster=cluster, name=name)
    if group is None:
        raise LookupError(f"there is no node group {name} in cluster {cluster}")
    return auto_scaling_groups(group)
