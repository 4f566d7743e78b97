"""Tags of the Auto Scaling group that EKS creates for a managed node group."""

from typing import TYPE_CHECKING

from .size import STANDING, auto_scaling_groups, describe

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import TagTypeDef
    from mypy_boto3_eks import EKSClient

    from ..events import NodeGroupProperties


def set_tags(
    eks: "EKSClient",
    autoscaling: "AutoScalingClient",
    properties: "NodeGroupProperties",
    *,
    before: "NodeGroupProperties | None",
) -> None:
    """Set the tags, and delete those that were set ``before`` and are gone.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        properties: `ClusterName`, `NodegroupName` and `Tags`.
        before: The previous properties; None for a new resource.

    Raises:
        ClientError: EKS or Auto Scaling refused.
        LookupError: There is no such node group, or it has no Auto Scaling group.
    """
    cluster, name = properties["ClusterName"], properties["NodegroupName"]
    group = describe(eks, cluster=cluster, name=name)
    if group is None:
        raise LookupError(f"there is no node group {name} in cluster {cluster}")
    tags = properties["Tags"]
    # The tags of a replaced group are deleted with its own resource.
    same_group = before is not None and before["NodegroupName"] == name
    gone = sorted(set(before["Tags"]) - set(tags)) if before and same_group else []
    for target in auto_scaling_groups(group):
        if gone:
            autoscaling.delete_tags(Tags=[_tag(target, key) for key in gone])
        autoscaling.create_or_update_tags(
            Tags=[
                {**_tag(target, key), "Value": value, "PropagateAtLaunch": False}
                for key, value in tags.items()
            ]
        )


def remove_tags(
    eks: "EKSClient", autoscaling: "AutoScalingClient", properties: "NodeGroupProperties"
) -> None:
    """Delete the tags, so that the Cluster Autoscaler leaves the group alone.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        properties: `ClusterName`, `NodegroupName` and `Tags`.

    Raises:
        ClientError: EKS or Auto Scaling refused.
    """
    cluster, name = properties["ClusterName"], properties["NodegroupName"]
    group = describe(eks, cluster=cluster, name=name)
    if group is None or group["status"] not in STANDING:
        return
    for target in auto_scaling_groups(group):
        autoscaling.delete_tags(Tags=[_tag(target, key) for key in properties["Tags"]])


def _tag(group: str, key: str) -> "TagTypeDef":
    return {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": key}
