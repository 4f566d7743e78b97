"""Static NodePools of Karpenter or EKS Auto Mode, whose size the calendar sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..kubernetes import JSON_PATCH, MERGE_PATCH, KubernetesApi, KubernetesError

if TYPE_CHECKING:
    from ..kubernetes_objects import Event, Object, Reference

# Karpenter and Auto Mode label every node with it.
_NODE_POOL_LABEL = "karpenter.sh/nodepool"
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_GIVEN = "ultrascale.dev/calendar-replicas"
_ESCAPED = _GIVEN.replace("/", "~1")
_COMPONENT = "ultrascale-block-calendar"
_REASON = "CapacityBlockEnds"
# Namespace of the events of objects without a namespace.
_NODE_EVENTS = "default"
# An earlier run has warned, or the namespace is gone or terminating, which answers `Forbidden`.
_NOBODY_TO_WARN = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)
_OVER = frozenset({"Succeeded", "Failed"})
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticNodePool:
    """A static NodePool.

    Attributes:
        api: API server of its cluster.
        name: Its name.
        emptied_by_eks: Whether EKS drains its nodes before a block ends.
        filled_again: Whether the calendar sets its size whenever it has no nodes in the window.
    """

    api: KubernetesApi
    name: str
    emptied_by_eks: bool = False
    filled_again: bool = True

    @property
    def _path(self) -> str:
        return f"/apis/karpenter.sh/v1/nodepools/{self.name}"

    def size(self) -> int:
        """Return its desired number of nodes."""
        return self.api.get(self._path)["spec"]["replicas"]

    def given(self) -> int | None:
        """Return the size that the calendar gave it last; None where it gave none."""
        text = self.api.get(self._path)["metadata"].get("annotations", {}).get(_GIVEN)
        return int(text) if text is not None and text.isdigit() else None

    def running(self) -> int:
        """Return its nodes that have an instance and keep it.

        Karpenter counts them in the NodePool's status. Where it counts fewer than it is asked for,
        some may have an instance and no node yet.
        """
        node_pool = self.api.get(self._path)
        nodes = node_pool.get("status", {}).get("nodes", 0)
        if nodes >= node_pool["spec"]["replicas"]:
            return nodes
        claims = self.api.stream(_CLAIMS, labelSelector=f"{_NODE_POOL_LABEL}={self.name}")
        return sum(1 for claim in claims if _keeps_an_instance(claim))

    def set_size(self, size: int, *, was: int) -> None:
        """Set its number of nodes, unless somebody changed it since it was read.

        An annotation keeps the size, which distinguishes it from a later size by somebody else.
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
        """Cordon its nodes, and warn about each node and pod by an Event.

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
    """Return whether a NodeClaim has an instance, and is not on its way out."""
    launched = bool(claim.get("status", {}).get("providerID"))
    return launched and "deletionTimestamp" not in claim["metadata"]


def _is_work(pod: "Object") -> bool:
    """Return whether a pod still runs and is no part of its node."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    return not owners & {"DaemonSet", "Node"} and pod["status"].get("phase") not in _OVER


def _event(subject: "Object", kind: str, message: str) -> "Event":
    """Return the Event that warns about ``subject``; its name keeps it unique.

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
