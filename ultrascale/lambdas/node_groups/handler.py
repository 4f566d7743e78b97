"""Function of the custom resources of node groups."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from ..cloudformation import Send, put, respond, rolls_back
from .size import STANDING, auto_scaling_groups, describe, desired_size, size_of, standing_groups

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef, FilterTypeDef, TagTypeDef
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_eks.type_defs import NodegroupTypeDef

    from ..events import NodeGroupProperties, Request


# --- Tags of the Auto Scaling group that EKS creates for a managed node group ---------------------


def set_tags(
    eks: "EKSClient",
    autoscaling: "AutoScalingClient",
    properties: "NodeGroupProperties",
    *,
    before: "NodeGroupProperties | None",
) -> None:
    """Set the group's tags, and delete the tags of ``before`` that ``properties`` no longer has.

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


# --- Zone rebalancing of Auto Scaling groups, suspended so that nodes stay where they are ---------


def suspend_rebalancing(
    eks: "EKSClient", autoscaling: "AutoScalingClient", properties: "NodeGroupProperties"
) -> None:
    """Keep Auto Scaling from ending nodes in one zone to start others in another.

    A new node still goes to the zone with the fewest nodes.

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
    """Return the name of the node group or Auto Scaling group."""
    return properties.get("AutoScalingGroupName") or properties["NodegroupName"]


def _targets(eks: "EKSClient", properties: "NodeGroupProperties") -> list[str]:
    if "AutoScalingGroupName" in properties:
        return [properties["AutoScalingGroupName"]]
    cluster, name = properties["ClusterName"], properties["NodegroupName"]
    group = describe(eks, cluster=cluster, name=name)
    if group is None:
        raise LookupError(f"there is no node group {name} in cluster {cluster}")
    return auto_scaling_groups(group)


# --- Guard of running nodes: a deployment must not end reserved nodes, or nodes of one job --------


class RunningNodesError(Exception):
    """Error: a deployment would end running nodes."""


def let_pass(
    eks: "EKSClient",
    autoscaling: "AutoScalingClient",
    cloudformation: "CloudFormationClient",
    properties: "NodeGroupProperties",
    *,
    before: "NodeGroupProperties",
    stack: str,
) -> None:
    """Raise an error if the launch settings of a pool must not change.

    The settings may change if the pool neither was nor will be guarded, if no node of it runs,
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
            raise RunningNodesError(_self_managed_advice(before, group))


def _leaves_self_management(before: "NodeGroupProperties", after: "NodeGroupProperties") -> bool:
    earlier, later = (properties["LaunchedFrom"]["Provisioner"] for properties in (before, after))
    return earlier == "self-managed" and earlier != later


def _self_managed_groups(
    autoscaling: "AutoScalingClient", pool: "NodeGroupProperties"
) -> "Iterator[AutoScalingGroupTypeDef]":
    """Yield a pool's self-managed Auto Scaling groups, which carry the pool's labels as tags."""
    wanted = {f"kubernetes.io/cluster/{pool['ClusterName']}": "owned", **pool["Labels"]}
    filters: list[FilterTypeDef] = [
        {"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items() if value
    ]
    pages = autoscaling.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    for page in pages:
        yield from page["AutoScalingGroups"]


def _self_managed_advice(pool: "NodeGroupProperties", group: "AutoScalingGroupTypeDef") -> str:
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


Answer = tuple[str, Mapping[str, str | int]]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of the AWS services."""

    eks: "EKSClient"  # EKS client
    autoscaling: "AutoScalingClient"  # Auto Scaling client
    cloudformation: "CloudFormationClient"  # CloudFormation client


def on_event(event: "Request[NodeGroupProperties]", context: object) -> None:
    """Answer a request of CloudFormation."""
    clients = Clients(
        eks=boto3.client("eks"),
        autoscaling=boto3.client("autoscaling"),
        cloudformation=boto3.client("cloudformation"),
    )
    answer(event, clients=clients)


def answer(event: "Request[NodeGroupProperties]", *, clients: Clients, send: Send = put) -> None:
    """Carry out a request of CloudFormation, and report the outcome.

    Args:
        event: The request.
        clients: Clients of the services.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
    """
    try:
        physical_id, data = _ACTIONS[event["ResourceType"]](event, clients)
    # Any error must be answered: without an answer the deployment hangs, and nobody learns the
    # reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=_same_id(event), reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=physical_id, data=data, send=send)


def _same_id(event: "Request[NodeGroupProperties]") -> str:
    """Return the id of a resource whose id never changes."""
    return event.get("PhysicalResourceId", event["LogicalResourceId"])


def _answer_size(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    if event["RequestType"] == "Delete":
        return _same_id(event), {}
    size = desired_size(clients.eks, clients.autoscaling, event["ResourceProperties"])
    return _same_id(event), {"DesiredSize": size}


def _answer_tags(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    properties = event["ResourceProperties"]
    if event["RequestType"] == "Delete":
        remove_tags(clients.eks, clients.autoscaling, properties)
        return _same_id(event), {}
    before = event.get("OldResourceProperties")
    set_tags(clients.eks, clients.autoscaling, properties, before=before)
    # Another group gives another id, so that CloudFormation deletes the old tags.
    return properties["NodegroupName"], {}


def _guard(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    if event["RequestType"] == "Update":
        let_pass(
            clients.eks,
            clients.autoscaling,
            clients.cloudformation,
            event["ResourceProperties"],
            before=event["OldResourceProperties"],
            stack=event["StackId"],
        )
    return _same_id(event), {}


def _zones(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    properties = event["ResourceProperties"]
    # Nothing is resumed: the group is deleted as well, or may stay suspended.
    if event["RequestType"] == "Delete":
        return _same_id(event), {}
    suspend_rebalancing(clients.eks, clients.autoscaling, properties)
    return name_of(properties), {}


_ACTIONS: "Mapping[str, Callable[[Request[NodeGroupProperties], Clients], Answer]]" = {
    "Custom::NodeGroupSize": _answer_size,
    "Custom::AutoScalingGroupTags": _answer_tags,
    "Custom::NodeGroupGuard": _guard,
    "Custom::SuspendedZoneRebalancing": _zones,
}
