"""Placement and hardening of the pods of the platform's own charts, and their controllers.

A selector is immutable: it selects by the label of the name, never by a construct's address.
"""

from collections.abc import Iterable, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import DevicePluginPlan, ResourcesPlan
from ultrascale.plan.names import (
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ROLE_LABEL,
    SYSTEM_NAMESPACE,
    SYSTEM_ROLE,
    ZONE_LABEL,
)
from ultrascale_k8s.objects import NAME_LABEL, labels, manifest

SYSTEM_CLUSTER_CRITICAL = "system-cluster-critical"
SYSTEM_NODE_CRITICAL = "system-node-critical"

# Nodes of EKS Auto Mode have the device plugins built in, and HyperPod's nodes get them from its
# Helm chart; a second plugin would fight over the devices. Affinity knows no prefixes, so a label
# selects HyperPod's nodes, not the `ml.` of their instance types.
# Sources:
#     https://docs.aws.amazon.com/eks/latest/userguide/auto-accelerated.html
#     https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/values.yaml
_NOT_OURS = (
    ("eks.amazonaws.com/compute-type", "NotIn", ("auto",)),
    ("sagemaker.amazonaws.com/compute-type", "NotIn", ("hyperpod",)),
)
# Folder in which device plugins register with the kubelet.
# Source: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
DEVICE_PLUGIN_SOCKETS = "/var/lib/kubelet/device-plugins"
CRITICAL_ADDONS_TAINT = "CriticalAddonsOnly"
# Old ReplicaSets to keep, by default ten. The API server stores each.
REVISIONS = 3


def selector(name: str) -> JsonObject:
    """Return the selector of the pods of the component ``name``. It is immutable once applied."""
    return {"matchLabels": {NAME_LABEL: name}}


def resources(*, cpu: str, memory: str, memory_limit: str) -> JsonObject:
    """Return requests and a memory limit, without a CPU limit, which would only slow a controller.

    Args:
        cpu: CPU request, in Kubernetes' notation.
        memory: Memory request.
        memory_limit: Memory beyond which the container is killed.
    """
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory_limit}}


def planned_resources(plan: ResourcesPlan) -> JsonObject:
    """Return the requests and the limit of ``plan``."""
    return resources(cpu=plan.cpu, memory=plan.memory, memory_limit=plan.memory_limit)


def restricted_pod(user: int) -> JsonObject:
    """Return the pod part of the `restricted` Pod Security Standard, running as ``user``.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        # Kubernetes would otherwise change the mode of every file at each start, and the private
        # data directory would become readable by the group.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def unprivileged_container(**fields: Json) -> JsonObject:
    """Return the security context of a container without capabilities, and with ``fields``."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **fields}


def restricted_container() -> JsonObject:
    """Return the container part of the `restricted` standard, with a read-only root file system."""
    return unprivileged_container(readOnlyRootFilesystem=True)


def tolerations(keys: Iterable[str] = ()) -> list[Json]:
    """Tolerate the taints ``keys``, whatever their value and effect, and `CriticalAddonsOnly`."""
    wanted = dict.fromkeys((CRITICAL_ADDONS_TAINT, *keys))
    return [{"key": key, "operator": "Exists"} for key in wanted]


def system_pod(
    containers: Sequence[Json], *, account: str, user: int | None, **fields: Json
) -> JsonObject:
    """Return a pod of a controller on the system pool, which full nodes do not evict.

    Args:
        containers: Its containers.
        account: Service account whose token it gets.
        user: User that it runs as, by the `restricted` standard; None: the image's user.
        fields: Its other fields.
    """
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "priorityClassName": SYSTEM_CLUSTER_CRITICAL,
        "affinity": system_affinity(),
        "tolerations": tolerations(),
        "securityContext": None if user is None else restricted_pod(user),
        "containers": containers,
        **fields,
    }


def system_affinity() -> JsonObject:
    """Require the system pool: accelerated nodes come and go, and cost too much for controllers."""
    return _node_affinity([(ROLE_LABEL, "In", (SYSTEM_ROLE,))])


def keep_apart(name: str) -> list[Json]:
    """Keep the replicas of ``name`` on nodes of their own, and in zones of their own if possible.

    The failure of a zone must not keep a replica from starting elsewhere.
    """
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": otherwise,
            "labelSelector": selector(name),
        }
        for key, otherwise in ((HOSTNAME_LABEL, "DoNotSchedule"), (ZONE_LABEL, "ScheduleAnyway"))
    ]


def own_kubelet_affinity() -> JsonObject:
    """Require nodes whose kubelets we configure: not EKS Auto Mode's, not HyperPod's."""
    return _node_affinity(_NOT_OURS)


def _device_plugin_affinity(plan: DevicePluginPlan) -> JsonObject:
    """Require the plan's instance types, if it names any, and nodes without their own plugin."""
    types = [(INSTANCE_TYPE_LABEL, "In", plan.instance_types)] if plan.instance_types else []
    return _node_affinity([*types, *_NOT_OURS])


def _node_affinity(terms: Sequence[tuple[str, str, Sequence[str]]]) -> JsonObject:
    expressions: list[Json] = [
        {"key": key, "operator": operator, "values": list(values)}
        for key, operator, values in terms
    ]
    required: Json = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def host_mounts(paths: Mapping[str, str], *, read_only: Sequence[str] = ()) -> list[Json]:
    """Mount the node's directories ``paths``, by volume name, at the same paths."""
    return [
        {"name": name, "mountPath": path, "readOnly": True if name in read_only else None}
        for name, path in paths.items()
    ]


def environment(
    values: Mapping[str, str], *, fields: Mapping[str, str] | None = None
) -> list[Json]:
    """Return environment variables: those from ``fields`` of the pod first, then ``values``."""
    return [
        *(
            {"name": k, "valueFrom": {"fieldRef": {"fieldPath": v}}}
            for k, v in (fields or {}).items()
        ),
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def http_probe(path: str, port: int | str, **fields: Json) -> JsonObject:
    """Return a probe that asks ``path``, with ``fields`` of the probe such as its period."""
    return {"httpGet": {"path": path, "port": port}, **fields}


def scraped(port: int) -> Mapping[str, str]:
    """Return the annotations that make Prometheus scrape a pod."""
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}


def deployment(
    name: str,
    pod: JsonObject,
    *,
    namespace: str = SYSTEM_NAMESPACE,
    replicas: int,
    annotations: Mapping[str, str] | None = None,
    strategy: JsonObject | None = None,
) -> JsonObject:
    """Return the Deployment ``name``.

    Args:
        name: Its name, and value of the name label that its pods are selected by.
        pod: Specification of its pods.
        namespace: Its namespace.
        replicas: Number of its pods.
        annotations: Annotations of its pods.
        strategy: Its strategy; Kubernetes' own default unless given.
    """
    return manifest(
        "Deployment",
        name,
        namespace=namespace,
        spec={
            "replicas": replicas,
            "revisionHistoryLimit": REVISIONS,
            "selector": selector(name),
            "strategy": strategy,
            "template": _template(name, pod, annotations),
        },
    )


def daemon_set(
    name: str, pod: JsonObject, *, annotations: Mapping[str, str] | None = None
) -> JsonObject:
    """Return the DaemonSet ``name`` of `kube-system`, with ``annotations`` of its pods."""
    return manifest(
        "DaemonSet",
        name,
        namespace=SYSTEM_NAMESPACE,
        spec={
            "revisionHistoryLimit": REVISIONS,
            "selector": selector(name),
            # One node at a time, the default, would take days on ten thousand nodes.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": _template(name, pod, annotations),
        },
    )


def device_plugin(
    name: str,
    plan: DevicePluginPlan,
    *,
    container: JsonObject,
    host_paths: Mapping[str, str],
    extra_taints: Sequence[str] = (),
    service_account: str | None = None,
    host_network: bool = False,
    volumes: Sequence[Json] = (),
    annotations: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the DaemonSet of a device plugin, or of an exporter beside it.

    Args:
        name: Name of the DaemonSet, of its container, and value of the label of its pods.
        plan: Its nodes and its image.
        container: The program, without its name and image.
        host_paths: Directories of the node that it mounts, by volume name. A directory that appears
            only once a driver is loaded must not keep the pod from starting: the plugin says itself
            what it misses.
        extra_taints: Keys of taints that it tolerates beside the plan's.
        service_account: The account whose token it gets; without one it gets no token.
        host_network: Whether it shares the node's network.
        volumes: Volumes beside ``host_paths``.
        annotations: Annotations of its pods.
    """
    host_volumes = [
        {"name": volume, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        for volume, path in host_paths.items()
    ]
    pod: JsonObject = {
        "priorityClassName": SYSTEM_NODE_CRITICAL,
        "serviceAccountName": service_account,
        "automountServiceAccountToken": service_account is not None,
        "enableServiceLinks": False,
        "hostNetwork": host_network or None,
        "nodeSelector": dict(plan.node_selector) or None,
        "affinity": _device_plugin_affinity(plan),
        "tolerations": tolerations((*plan.taint_keys, *extra_taints)),
        "containers": [{"name": name, "image": plan.image, **container}],
        "volumes": [*host_volumes, *volumes],
    }
    return daemon_set(name, pod, annotations=annotations)


def _template(name: str, pod: JsonObject, annotations: Mapping[str, str] | None) -> Json:
    return {"metadata": {"labels": labels(name), "annotations": annotations}, "spec": pod}


def budget(name: str, namespace: str = SYSTEM_NAMESPACE) -> JsonObject:
    """Return the disruption budget of ``name``: one of its pods at a time may be evicted."""
    spec = {"maxUnavailable": 1, "selector": selector(name)}
    return manifest("PodDisruptionBudget", name, namespace=namespace, spec=spec)


def service(
    name: str,
    program: str,
    port: JsonObject,
    *,
    namespace: str = SYSTEM_NAMESPACE,
    annotations: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the Service ``name`` in front of ``port`` of the pods of ``program``."""
    return manifest(
        "Service",
        name,
        namespace=namespace,
        component=program,
        annotations=annotations,
        spec={"selector": {NAME_LABEL: program}, "ports": [port]},
    )
