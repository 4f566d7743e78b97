"""Pods of the platform's own charts: placement, hardening, and the controllers that make them.

A selector is immutable, so it selects by the label of the program's name, never by a construct's
address.
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
# Helm chart; a second plugin would fight over the devices. Affinity cannot match prefixes, so a
# label selects HyperPod's nodes, not the `ml.` of their instance types.
# Sources: https://docs.aws.amazon.com/eks/latest/userguide/auto-accelerated.html
# https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/values.yaml
_NOT_OURS = (
    ("eks.amazonaws.com/compute-type", "NotIn", ("auto",)),
    ("sagemaker.amazonaws.com/compute-type", "NotIn", ("hyperpod",)),
)
# Folder in which device plugins register with the kubelet.
# Source: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
DEVICE_PLUGIN_SOCKETS = "/var/lib/kubelet/device-plugins"
CRITICAL_ADDONS_TAINT = "CriticalAddonsOnly"
# Old ReplicaSets to keep; the default is ten, and the API server stores each of them.
REVISIONS = 3


def selector(name: str) -> JsonObject:
    """Return the selector of the pods of the component ``name``; it is immutable once applied."""
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
    """Return the requests and the limit that ``plan`` states."""
    return resources(cpu=plan.cpu, memory=plan.memory, memory_limit=plan.memory_limit)


def restricted_pod(user: int) -> JsonObject:
    """Return the pod's part of the `restricted` Pod Security Standard, running as ``user``.

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
    """Return the security context of a container without capabilities, with further ``fields``."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **fields}


def restricted_container() -> JsonObject:
    """Return the container part of the `restricted` standard, with a read-only root file system."""
    return unprivileged_container(readOnlyRootFilesystem=True)


def tolerations(keys: Iterable[str] = ()) -> list[Json]:
    """Return tolerations of `CriticalAddonsOnly` and of ``keys``, with any value and effect."""
    wanted = dict.fromkeys((CRITICAL_ADDONS_TAINT, *keys))
    return [{"key": key, "operator": "Exists"} for key in wanted]


def system_pod(
    containers: Sequence[Json], *, account: str, user: int | None, **fields: Json
) -> JsonObject:
    """Return a controller's pod on the system pool, whose priority saves it from eviction.

    Args:
        containers: The pod's containers.
        account: Service account whose token the pod gets.
        user: User that the pod runs as, by the `restricted` standard; None: the image's user.
        fields: Further fields of the pod.
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
    """Return the affinity to the system pool: accelerated nodes cost too much, and come and go."""
    return _node_affinity([(ROLE_LABEL, "In", (SYSTEM_ROLE,))])


def keep_apart(name: str) -> list[Json]:
    """Return the spread of replicas of ``name``: different nodes, and if possible different zones.

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
    """Return the affinity to nodes whose kubelets we configure: not of Auto Mode or HyperPod."""
    return _node_affinity(_NOT_OURS)


def _device_plugin_affinity(plan: DevicePluginPlan) -> JsonObject:
    """Return the affinity to the plan's instance types, and to nodes without built-in plugins."""
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
    """Return mounts of the node's directories ``paths``, by volume name, at the same paths."""
    return [
        {"name": name, "mountPath": path, "readOnly": True if name in read_only else None}
        for name, path in paths.items()
    ]


def environment(
    values: Mapping[str, str], *, fields: Mapping[str, str] | None = None
) -> list[Json]:
    """Return environment variables: first those from ``fields`` of the pod, then ``values``."""
    return [
        *(
            {"name": k, "valueFrom": {"fieldRef": {"fieldPath": v}}}
            for k, v in (fields or {}).items()
        ),
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def http_probe(path: str, port: int | str, **fields: Json) -> JsonObject:
    """Return an HTTP probe of ``path``, with further ``fields`` such as the period."""
    return {"httpGet": {"path": path, "port": port}, **fields}


def scraped(port: int) -> Mapping[str, str]:
    """Return the annotations by which Prometheus scrapes a pod."""
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
        name: Name of the Deployment; also the value of the label that selects its pods.
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
    """Return the DaemonSet ``name`` of `kube-system`, whose pods have ``annotations``."""
    return manifest(
        "DaemonSet",
        name,
        namespace=SYSTEM_NAMESPACE,
        spec={
            "revisionHistoryLimit": REVISIONS,
            "selector": selector(name),
            # Updating one node at a time, the default, would take days on ten thousand nodes.
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
        plan: The plugin's nodes and image.
        container: The program, without its name and image.
        host_paths: Directories of the node to mount, by volume name. A directory that appears only
            once a driver is loaded must not keep the pod from starting: the plugin itself reports
            what is missing.
        extra_taints: Keys of taints to tolerate beside the plan's taints.
        service_account: The account whose token the pod gets; without an account it gets no token.
        host_network: Whether the pod shares the node's network.
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
    """Return the disruption budget of ``name``: only one pod at a time may be evicted."""
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
    """Return the Service ``name`` for ``port`` of the pods of ``program``."""
    return manifest(
        "Service",
        name,
        namespace=namespace,
        component=program,
        annotations=annotations,
        spec={"selector": {NAME_LABEL: program}, "ports": [port]},
    )
