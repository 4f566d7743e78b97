"""The size that a managed node group is deployed with, so that a deploy changes none."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_eks.type_defs import NodegroupTypeDef

    from ..events import NodeGroupProperties

# A group that is on its way in or out is none that the deploy continues: it is what an update that
# was rolled back left behind.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
STANDING = frozenset({"ACTIVE", "UPDATING", "DEGRADED"})
"""States of a group that has nodes and keeps them."""


def desired_size(
    eks: "EKSClient", autoscaling: "AutoScalingClient", properties: "NodeGroupProperties"
) -> int:
    """Return the size of the pool's group as it stands, within the bounds that it gets.

    The Auto Scaling group knows it: EKS is behind for a while after a scaler changed it. Where
    several groups stand, one is being replaced by another; the larger one counts, as its nodes are
    what jobs run on.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        properties: `ClusterName`, `Labels` that tell the pool's group from others (an empty one is
            a label that it does not have), `MinSize`, `MaxSize` and `InitialSize`, the size where
            there is no group yet.

    Raises:
        ClientError: EKS or Auto Scaling refused: the size is not known.
        LookupError: A group stands without its Auto Scaling group.
    """
    sizes = [size_of(autoscaling, group) for group in standing_groups(eks, properties)]
    if not sizes:
        return int(properties["InitialSize"])
    return min(max(*sizes, int(properties["MinSize"])), int(properties["MaxSize"]))


def standing_groups(
    eks: "EKSClient", properties: "NodeGroupProperties"
) -> "Iterator[NodegroupTypeDef]":
    """Yield the groups of a pool that have nodes and keep them.

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
    """Return a node group, None where there is none (any more).

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
    found = group.get("labels", {})
    return all(found.get(key, "") == value for key, value in labels.items())


def size_of(autoscaling: "AutoScalingClient", group: "NodegroupTypeDef") -> int:
    """Return how many nodes a group is to have, as its Auto Scaling group knows it.

    Args:
        autoscaling: Auto Scaling client.
        group: The node group, as EKS describes it.

    Raises:
        ClientError: Auto Scaling refused.
        LookupError: The group stands without its Auto Scaling group.
    """
    names = auto_scaling_groups(group)
    answer = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)
    sizes = [each["DesiredCapacity"] for each in answer["AutoScalingGroups"]]
    if len(sizes) < len(names):
        raise LookupError(f"node group {group['nodegroupName']} has lost its Auto Scaling group")
    return sum(sizes)


def auto_scaling_groups(group: "NodegroupTypeDef") -> list[str]:
    """Return the names of the Auto Scaling groups behind a node group that stands; EKS makes one.

    Raises:
        LookupError: It has none.
    """
    names = [each["name"] for each in group.get("resources", {}).get("autoScalingGroups", ())]
    if not names:
        raise LookupError(f"node group {group['nodegroupName']} has no Auto Scaling group")
    return names
