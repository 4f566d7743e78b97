"""Guard of running nodes: a deployment must not end reserved nodes, or nodes of one job."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..cloudformation import rolls_back
from .size import size_of, standing_groups

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef, FilterTypeDef
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_eks.type_defs import NodegroupTypeDef

    from ..events import NodeGroupProperties


class RunningNodesError(Exception):
    """A deployment would end running nodes."""


def let_pass(
    eks: "EKSClient",
    autoscaling: "AutoScalingClient",
    cloudformation: "CloudFormationClient",
    properties: "NodeGroupProperties",
    *,
    before: "NodeGroupProperties",
    stack: str,
) -> None:
    """Raise where the launch settings of a pool must not change.

    They may change where the pool neither was nor will be guarded, where none of its nodes runs,
    and in a rollback: a stopped rollback leaves a stack that nobody can deploy.

    Args:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        cloudformation: CloudFormation client.
        properties: `ClusterName`, `Labels` that tell the pool's group from others, `Guarded`,
            the plan's `SizedBy`, and `LaunchedFrom`, which changes whenever the nodes would be
            replaced.
        before: The previous properties.
        stack: Id of the stack.

    Raises:
        ClientError: EKS, Auto Scaling or CloudFormation refused: the running nodes are not known.
        LookupError: A group has lost its Auto Scaling group.
        RunningNodesError: Nodes run; the message says what to do.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """
    guarded = "true" in {before["Guarded"], properties["Guarded"]}
    if not guarded or before["LaunchedFrom"] == properties["LaunchedFrom"]:
        return
    if rolls_back(cloudformation, stack):
        return
    for group in standing_groups(eks, before):
        nodes = size_of(autoscaling, group)
        if nodes > 0:
            raise RunningNodesError(_advice(before, group, nodes))
    # A change within a self-managed group affects only new nodes.
    if not _leaves_self_management(before, properties):
        return
    for group in _self_managed_groups(autoscaling, before):
        if group["DesiredCapacity"] > 0:
            raise RunningNodesError(_advice_of_ours(before, group))


def _leaves_self_management(before: "NodeGroupProperties", after: "NodeGroupProperties") -> bool:
    earlier, later = (properties["LaunchedFrom"]["Provisioner"] for properties in (before, after))
    return earlier == "self-managed" and earlier != later


def _self_managed_groups(
    autoscaling: "AutoScalingClient", pool: "NodeGroupProperties"
) -> "Iterator[AutoScalingGroupTypeDef]":
    """Yield a pool's Auto Scaling groups that EKS does not manage: they have its labels as tags."""
    wanted = {f"kubernetes.io/cluster/{pool['ClusterName']}": "owned", **pool["Labels"]}
    filters: list[FilterTypeDef] = [
        {"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items() if value
    ]
    pages = autoscaling.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    for page in pages:
        yield from page["AutoScalingGroups"]


def _advice_of_ours(pool: "NodeGroupProperties", group: "AutoScalingGroupTypeDef") -> str:
    name, nodes = group["AutoScalingGroupName"], group["DesiredCapacity"]
    return (
        f"{name} runs {nodes} nodes, and this change would end every one. {_first(pool)} scale it "
        f"to 0: aws autoscaling update-auto-scaling-group --auto-scaling-group-name {name} "
        "--min-size 0 --desired-capacity 0; deploy once its nodes are gone"
    )


def _first(pool: "NodeGroupProperties") -> str:
    if pool["SizedBy"] == "cluster-autoscaler":
        return "Suspend its jobs first (they scale it up), then"
    return "When their jobs are done,"


def _advice(pool: "NodeGroupProperties", group: "NodegroupTypeDef", nodes: int) -> str:
    """Return the steps to take instead, within the 500 characters that CloudFormation shows."""
    name, least = group["nodegroupName"], group["scalingConfig"]["minSize"]
    return (
        f"{name} runs {nodes} nodes, and this change would end every one. "
        f"{_first(pool)} scale it to 0: aws eks update-nodegroup-config "
        f"--cluster-name {pool['ClusterName']} --nodegroup-name {name} "
        "--scaling-config minSize=0,desiredSize=0; deploy once its nodes are gone; "
        f"then scale it up likewise, with minSize={least},desiredSize={nodes}"
    )
