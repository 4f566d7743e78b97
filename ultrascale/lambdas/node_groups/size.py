"""Size of a managed node group, which a deployment must not change."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_eks.type_defs import NodegroupTypeDef

    from ..events import NodeGroupProperties

# A group that is being created or deleted does not count: a rolled-back update left it behind.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
STANDING = frozenset({"ACTIVE", "UPDATING", "DEGRADED"})
"""States of a node group that has nodes and is not being created or deleted."""


def desired_size(
    eks: "EKSClient", autoscaling: "AutoScalingClient", properties: "NodeGroupProperties"
) -> int:
    """Return the current size of the pool's group, within its new bounds.

    The Auto Scaling group has the current size; EKS's own figure lags for a while. Two standing
    groups mean that one replaces the other: the larger counts, as jobs run on its nodes.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        properties: `ClusterName`, `Labels` that tell the pool's group from others (an empty value
            stands for a label that it lacks), `MinSize`, `MaxSize` and `InitialSize`, the size of a
            new group.

    Raises:
        ClientError: EKS or Auto Scaling refused: the size is not known.
        LookupError: A group has lost its Auto Scaling group.
    """
    sizes = [size_of(autoscaling, group) for group in standing_groups(eks, properties)]
    if not sizes:
        return int(properties["InitialSize"])
    return min(max(*sizes, int(properties["MinSize"])), int(properties["MaxSize"]))


def standing_groups(
    eks: "EKSClient", properties: "NodeGroupProperties"
) -> "Iterator[NodegroupTypeDef]":
    """Yield the node groups of a pool in a state of `STANDING`.

    Args:
        eks: EKS client.
        properties: `ClusterName`, and `Labels` as for `desired_size`.

    Raises:
        ClientError: EKS refused.
    """
    for group in _groups(eks, properties["ClusterName"]):
        if group["status"] in STANDING and _is_of_pool(group, properties["Labels"]):
            yield group


def _groups(eks: "EKSClient", cluster: str) -> "Iterator[NodegroupTypeDef]":
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=cluster):
        for name in page["nodegroups"]:
            group = describe(eks, cluster=cluster, name=name)
            if group is not None:
                yield group


def describe(eks: "EKSClient", *, cluster: str, name: str) -> "NodegroupTypeDef | None":
    """Return a node group; None if it does not exist.

    Args:
        eks: EKS client.
        cluster: Name of the cluster.
        name: Name of the group.

    Raises:
        ClientError: EKS refused for another reason.
    """
    try:
        return eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise


def _is_of_pool(group: "NodegroupTypeDef", labels: Mapping[str, str]) -> bool:
    present = group.get("labels", {})
    return all(present.get(key, "") == value for key, value in labels.items())


def size_of(autoscaling: "AutoScalingClient", group: "NodegroupTypeDef") -> int:
    """Return the desired size of a node group, read from its Auto Scaling group.

    Args:
        autoscaling: Auto Scaling client.
        group: The node group, as EKS describes it.

    Raises:
        ClientError: Auto Scaling refused.
        LookupError: The group has lost its Auto Scaling group.
    """
    names = auto_scaling_groups(group)
    answer = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)
    sizes = [target["DesiredCapacity"] for target in answer["AutoScalingGroups"]]
    if len(sizes) < len(names):
        raise LookupError(f"node group {group['nodegroupName']} has lost its Auto Scaling group")
    return sum(sizes)


def auto_scaling_groups(group: "NodegroupTypeDef") -> list[str]:
    """Return the names of the Auto Scaling groups behind a standing node group; EKS makes only one.

    Raises:
        LookupError: The group has none.
    """
    names = [target["name"] for target in group.get("resources", {}).get("autoScalingGroups", ())]
    if not names:
        raise LookupError(f"node group {group['nodegroupName']} has no Auto Scaling group")
    return names
