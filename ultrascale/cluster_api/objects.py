"""Fields that every Kubernetes object has: name, labels, conditions."""

from typing import TypeAlias

from ultrascale.documents import JsonObject, objects, text
from ultrascale.frozen import Frozen

Object: TypeAlias = JsonObject
"""An object as the API server returns it."""


def name(manifest: Object) -> str:
    """Return the name of an object."""
    return text(manifest, "metadata", "name")


def uid(manifest: Object) -> str:
    """Return the UID of an object; a later object of the same name has another UID."""
    return text(manifest, "metadata", "uid")


def owned_by(manifest: Object, owner: Object) -> bool:
    """Return whether ``owner`` owns an object; an earlier owner of the same name does not count."""
    owners = objects(manifest, "metadata", "ownerReferences")
    return any(text(each, "uid") == uid(owner) for each in owners)


def label(manifest: Object, key: str) -> str:
    """Return the label ``key`` of an object; empty if it has none."""
    return text(manifest, "metadata", "labels", key)


def condition(manifest: Object, kind: str) -> Object:
    """Return the condition ``kind`` of an object if its status is True; else an empty object."""
    holding = [
        entry
        for entry in objects(manifest, "status", "conditions")
        if text(entry, "type") == kind and text(entry, "status") == "True"
    ]
    return holding[-1] if holding else {}


# --- Kinds of Kubernetes objects, and their paths on the API server -------------------------------


class Kind(Frozen, kw_only=False):
    """A kind of object."""

    api_version: str  # Group and version; for the core only the version
    kind: str  # Its name in a manifest
    plural: str  # Its name in a path
    namespaced: bool = True  # Whether its objects belong to a namespace

    @property
    def group_path(self) -> str:
        """API path that lists the kinds of the group."""
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}"

    @property
    def resource(self) -> str:
        """Name of the kind in Roles and in error messages."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of an object; without ``name``, the path of the list.

        Without ``namespace``, the list covers all namespaces.
        """
        parts = [self.group_path]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/".join(parts)


INDEXED_JOB = Kind("batch/v1", "Job", "jobs")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
LEADER_WORKER_SET = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
SERVICE = Kind("v1", "Service", "services")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
SCALED_OBJECT = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
HTTP_ROUTE = Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
SECURITY_POLICY = Kind("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", "securitypolicies")

POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
EVENT = Kind("v1", "Event", "events")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
QUEUE = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)
# Kueue 0.18 and 0.19 of task governance serve this version too, so each queue of the file and each
# team has an object of it.
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")

NODE_POOL = Kind("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False)
NODE_CLAIM = Kind("karpenter.sh/v1", "NodeClaim", "nodeclaims", namespaced=False)
