"""Function of the block calendar, called by CloudFormation and by a schedule."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from ..cloudformation import respond, rolls_back
from ..kubernetes import JSON_PATCH, MERGE_PATCH, KubernetesApi, KubernetesError, api_of
from ..node_groups.size import describe, size_of
from .decision import Phase, ReservationLostError
from .entry import Deploy, Entry, Target, keep
from .reservation import find, find_on_demand
from .scheduled_end import ScheduledEnd, read

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_eks import EKSClient

    from ..events import CalendarProperties, CalendarTarget, Request
    from ..kubernetes_objects import Event, Object, Reference


# --- Retries of a deployment: new permissions need seconds, and the schedule runs beside it -------


# Services learn of a new role and its policies only after some seconds.
# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
_NOT_KNOWN_YET = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "InvalidClientTokenId",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
# The schedule sets the same size at the same moment: the next attempt finds the size set.
_OVERTAKEN = frozenset({"ResourceInUseException", "ScalingActivityInProgress"})
_OVERTAKEN_STATUS = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_ATTEMPTS = 7
_SECONDS_BETWEEN = 5


def until_settled(run: Callable[[], str], sleep: Callable[[float], None] = time.sleep) -> str:
    """Return the result of ``run``, and retry transient errors for half a minute.

    Args:
        run: A repeatable operation.
        sleep: Waits, in seconds.

    Raises:
        Exception: The operation failed for another reason, or for too long.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return run()
        except (ClientError, KubernetesError) as error:
            if not _passes(error):
                raise
            print(f"tried again: {error}")
        sleep(_SECONDS_BETWEEN)
    return run()


def _passes(error: ClientError | KubernetesError) -> bool:
    if isinstance(error, KubernetesError):
        return error.status in _OVERTAKEN_STATUS
    return error.response["Error"]["Code"] in _NOT_KNOWN_YET | _OVERTAKEN


# --- Guard of a running block: a deployment must not put the next block in its place --------------


_NEEDS_ITS_END = (Phase.OPEN, Phase.DRAINING)


class RunningBlockError(Exception):
    """Error: a deployment would leave the nodes of a running block without a drain."""


def breaks_off(before: Entry, after: Entry, *, now: datetime) -> bool:
    """Return whether ``after`` replaces a running block, and is not running itself.

    A corrected window or an extended block keeps its id. Tags may find another block in another
    window.
    """
    same = before.reservation == after.reservation and after.reservation.id is not None
    return (
        not same
        and before.window.phase(now) in _NEEDS_ITS_END
        and after.window.phase(now) is not Phase.OPEN
    )


def let_pass(before: Entry, *, size: Callable[[], int], rolls_back: Callable[[], bool]) -> None:
    """Raise an error if nodes run on the block of ``before``, except in a rollback.

    Args:
        before: The previous entry.
        size: Returns the desired size of the pool.
        rolls_back: Returns whether the stack rolls back: a stopped rollback leaves a stack that
            nobody can deploy.

    Raises:
        RunningBlockError: Nodes run; the message says what to do.
        Exception: Any error of an API.
    """
    nodes = size()
    if nodes == 0 or rolls_back():
        return
    ends = f"{before.window.ends:%Y-%m-%d %H:%M}Z"
    raise RunningBlockError(
        f"{nodes} nodes run on the Capacity Block that the file no longer names, and nobody would "
        f"drain them before it ends at {ends}. Add a second pool for the next block, or deploy "
        f"this change after {ends}; a pool at 0 nodes may change its block at any time"
    )


# --- Node groups whose size the calendar sets in AWS ----------------------------------------------
# They do not wait for an active reservation: until then, Auto Scaling repeats its launches.
#
# Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedNodeGroup:
    """A managed node group: EKS drains it by itself 40 minutes before a block ends."""

    eks: "EKSClient"  # EKS client
    autoscaling: "AutoScalingClient"  # Auto Scaling client
    cluster: str  # Name of the cluster
    name: str  # Name of the group
    emptied_by_eks: bool = True  # Whether EKS drains its nodes before a block ends
    # Whether the calendar sets its size whenever it has no nodes in the window
    filled_again: bool = False

    def size(self) -> int:
        """Return the desired size of the Auto Scaling group behind the node group.

        Raises:
            LookupError: There is no such group.
        """
        group = describe(self.eks, cluster=self.cluster, name=self.name)
        if group is None:
            raise LookupError(f"there is no node group {self.name}")
        return size_of(self.autoscaling, group)

    def scheduled_end(self) -> ScheduledEnd:
        """Return EKS's scheduled action on the Auto Scaling group behind the node group.

        Raises:
            LookupError: There is no such group.
        """
        group = describe(self.eks, cluster=self.cluster, name=self.name)
        if group is None:
            raise LookupError(f"there is no node group {self.name}")
        behind = group.get("resources", {}).get("autoScalingGroups", [])
        return read(self.autoscaling, [each["name"] for each in behind if "name" in each])

    def set_size(self, size: int, *, was: int) -> None:
        """Set the desired size of the node group."""
        self.eks.update_nodegroup_config(
            clusterName=self.cluster, nodegroupName=self.name, scalingConfig={"desiredSize": size}
        )

    def drain(self, message: str) -> None:
        """Do nothing: EKS drains the nodes of a node group that shrinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoScalingGroup:
    """The Auto Scaling group of a self-managed pool."""

    autoscaling: "AutoScalingClient"  # Auto Scaling client
    name: str  # Name of the group
    emptied_by_eks: bool = False  # Whether EKS drains its nodes before a block ends
    # Whether the calendar sets its size whenever it has no nodes in the window
    filled_again: bool = False

    def size(self) -> int:
        """Return the desired size of the group.

        Raises:
            LookupError: There is no such group.
        """
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])
        if not answer["AutoScalingGroups"]:
            raise LookupError(f"there is no Auto Scaling group {self.name}")
        return answer["AutoScalingGroups"][0]["DesiredCapacity"]

    def set_size(self, size: int, *, was: int) -> None:
        """Set the desired size of the group."""
        self.autoscaling.set_desired_capacity(
            AutoScalingGroupName=self.name, DesiredCapacity=size, HonorCooldown=False
        )

    def drain(self, message: str) -> None:
        """Do nothing: a lifecycle hook makes the Node Termination Handler drain the nodes."""


# --- Static NodePools of Karpenter or EKS Auto Mode, whose size the calendar sets -----------------


# Karpenter and Auto Mode set this label on every node, with its NodePool's name.
_NODE_POOL_LABEL = "karpenter.sh/nodepool"
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_GIVEN = "ultrascale.dev/calendar-replicas"
_ESCAPED = _GIVEN.replace("/", "~1")
_COMPONENT = "ultrascale-block-calendar"
_REASON = "CapacityBlockEnds"
# Namespace of the events of objects without a namespace.
_NODE_EVENTS = "default"
# Refusals of an event: an earlier run has sent it, or the namespace is gone or terminating, for
# which the API server answers `Forbidden`.
_NOBODY_TO_WARN = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)
_OVER = frozenset({"Succeeded", "Failed"})
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticNodePool:
    """A static NodePool as the target of a change."""

    api: KubernetesApi  # API server of its cluster
    name: str  # Its name
    emptied_by_eks: bool = False  # Whether EKS drains its nodes before a block ends
    # Whether the calendar sets its size whenever it has no nodes in the window
    filled_again: bool = True

    @property
    def _path(self) -> str:
        return f"/apis/karpenter.sh/v1/nodepools/{self.name}"

    def size(self) -> int:
        """Return the desired number of nodes."""
        return self.api.get(self._path)["spec"]["replicas"]

    def given(self) -> int | None:
        """Return the size that the calendar gave it last; None where it gave none."""
        text = self.api.get(self._path)["metadata"].get("annotations", {}).get(_GIVEN)
        return int(text) if text is not None and text.isdigit() else None

    def running(self) -> int:
        """Return the number of nodes that have an instance and are not ending.

        Karpenter counts nodes in the NodePool's status. If it counts fewer than desired, some
        NodeClaims may have an instance and no node yet, and are counted one by one.
        """
        node_pool = self.api.get(self._path)
        nodes = node_pool.get("status", {}).get("nodes", 0)
        if nodes >= node_pool["spec"]["replicas"]:
            return nodes
        claims = self.api.stream(_CLAIMS, labelSelector=f"{_NODE_POOL_LABEL}={self.name}")
        return sum(1 for claim in claims if _keeps_an_instance(claim))

    def set_size(self, size: int, *, was: int) -> None:
        """Set the number of nodes, unless somebody has changed it since ``was`` was read.

        An annotation records the size: a later size that differs is somebody else's.
        """
        annotations = self.api.get(self._path)["metadata"].get("annotations")
        own: list[Mapping[str, object]] = [
            {"op": "add", "path": "/metadata/annotations", "value": {_GIVEN: str(size)}}
        ]
        if annotations:
            own = [{"op": "add", "path": f"/metadata/annotations/{_ESCAPED}", "value": str(size)}]
        patch = [
            {"op": "test", "path": "/spec/replicas", "value": was},
            {"op": "replace", "path": "/spec/replicas", "value": size},
            *own,
        ]
        self.api.patch(self._path, patch, kind=JSON_PATCH)

    def drain(self, message: str) -> None:
        """Cordon the nodes, and warn about each node and pod by an Event.

        A node or pod that is deleted meanwhile needs no warning.
        """
        nodes = [*self.api.list("/api/v1/nodes", labelSelector=f"{_NODE_POOL_LABEL}={self.name}")]
        for node in nodes:
            self._cordon(node)
        for node in nodes:
            self._warn(node, "Node", message)
            selector = f"spec.nodeName={node['metadata']['name']}"
            for pod in self.api.list("/api/v1/pods", fieldSelector=selector):
                if _is_work(pod):
                    self._warn(pod, "Pod", message)

    def _cordon(self, node: "Object") -> None:
        if node["spec"].get("unschedulable"):
            return
        try:
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            self.api.patch(path, {"spec": {"unschedulable": True}}, kind=MERGE_PATCH)
        except KubernetesError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def _warn(self, subject: "Object", kind: str, message: str) -> None:
        event = _event(subject, kind, message)
        try:
            self.api.create(f"/api/v1/namespaces/{event['metadata']['namespace']}/events", event)
        except KubernetesError as error:
            if error.status not in _NOBODY_TO_WARN:
                raise
            print(f"no warning: {error}")


def _keeps_an_instance(claim: "Object") -> bool:
    """Return whether a NodeClaim has an instance, and is not being deleted."""
    launched = bool(claim.get("status", {}).get("providerID"))
    return launched and "deletionTimestamp" not in claim["metadata"]


def _is_work(pod: "Object") -> bool:
    """Return whether a pod still runs, and belongs to a job instead of the node itself."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    return not owners & {"DaemonSet", "Node"} and pod["status"].get("phase") not in _OVER


def _event(subject: "Object", kind: str, message: str) -> "Event":
    """Return the Event that warns about ``subject``; its name prevents a second Event.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
    """
    metadata = subject["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    namespace = metadata.get("namespace", _NODE_EVENTS)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about: Reference = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
    if "namespace" in metadata:
        about["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name[:_LONGEST_NAME].rstrip('-.')}.{uid}",
            "namespace": namespace,
        },
        "involvedObject": about,
        "type": "Warning",
        "reason": _REASON,
        "message": message,
        "source": {"component": _COMPONENT},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


# --- Calls of CloudFormation and of the schedule --------------------------------------------------


_NODE_POOL = "NodePool"


def clock() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def on_event(
    event: "Request[CalendarProperties] | CalendarProperties", _context: object = None
) -> None:
    """Carry out the calendar for one pool.

    Args:
        event: A request of CloudFormation, or the properties of such a request from a schedule.

    Raises:
        Exception: Any error, so that the alarm sees it; CloudFormation has its answer.
    """
    if "RequestType" in event:
        _deploy(event)
    # The schedule calls every minute, for weeks before the start as well.
    elif Entry.parse(event).has_work(clock()):
        print(_keep_pool(event, deploy=None))


def _deploy(event: "Request[CalendarProperties]") -> None:
    properties = event["ResourceProperties"]
    physical_id = f"block-calendar-{properties['Pool']}"
    if event["RequestType"] == "Delete":
        respond(event, status="SUCCESS", physical_id=event["PhysicalResourceId"])
        return
    try:
        print(until_settled(lambda: _keep_by_deployment(event)))
    except ReservationLostError as error:
        # No deployment can change that, and a failed one could not be rolled back. The schedule
        # meets the same error, and raises the alarm.
        print(f"pool {properties['Pool']}: {error}")
    except Exception as error:
        # The NodePools of a cluster share a stack, and an error of one would roll back all of them.
        # The schedule meets the same error within a minute, and raises the alarm.
        shared = properties["Target"]["Kind"] == _NODE_POOL
        reason = f"pool {properties['Pool']}: {type(error).__name__}: {error}"
        status = "SUCCESS" if shared else "FAILED"
        respond(event, status=status, physical_id=physical_id, reason=reason)
        raise
    respond(event, status="SUCCESS", physical_id=physical_id)


def _keep_by_deployment(event: "Request[CalendarProperties]") -> str:
    _protect(event)
    before = event.get("OldResourceProperties")
    deploy = Deploy(size_before=int(before["Size"]) if before else None)
    return _keep_pool(event["ResourceProperties"], deploy=deploy)


def _protect(event: "Request[CalendarProperties]") -> None:
    """Raise an error if the calendar must not leave the previous block yet."""
    properties, before = event["ResourceProperties"], event.get("OldResourceProperties")
    if before is None:
        return
    old, new = Entry.parse(before), Entry.parse(properties)
    if not breaks_off(old, new, now=clock()):
        return
    if properties["Target"]["Kind"] == _NODE_POOL:
        # The stack is shared: see the answer to CloudFormation.
        print(
            f"pool {old.pool}: its block of until now runs until {old.window.ends:%Y-%m-%d %H:%M}Z,"
            " and the calendar no longer drains its nodes before that"
        )
        return
    let_pass(
        old,
        size=_target(properties["Target"]).size,
        rolls_back=lambda: rolls_back(boto3.client("cloudformation"), event["StackId"]),
    )


def _keep_pool(properties: "CalendarProperties", *, deploy: Deploy | None) -> str:
    entry = Entry.parse(properties)
    return keep(
        entry,
        now=clock(),
        deploy=deploy,
        block=lambda: (find if entry.is_dated else find_on_demand)(
            boto3.client("ec2"), entry.reservation
        ),
        target=_target(properties["Target"]),
    )


def _target(target: "CalendarTarget") -> Target:
    name = target["Name"]
    match target["Kind"]:
        case "ManagedNodeGroup":
            return ManagedNodeGroup(
                eks=boto3.client("eks"),
                autoscaling=boto3.client("autoscaling"),
                cluster=target["Cluster"],
                name=name,
            )
        case "AutoScalingGroup":
            return AutoScalingGroup(autoscaling=boto3.client("autoscaling"), name=name)
        case "NodePool":
            return StaticNodePool(api=api_of(target["Cluster"]), name=name)
        case kind:
            raise ValueError(f"the calendar knows no target of kind {kind}")
