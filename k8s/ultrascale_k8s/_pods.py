"""Labels, placement and hardening of the pods of the platform's own charts.

Pods are written with the typed classes of `cdk8s_plus_27.k8s`: the intent classes cannot say
seccomp profiles, topology spread, `NotIn` affinity or a selector without cdk8s' own label, and a
selector is immutable, so it must not hang on a construct's address.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from cdk8s_plus_27 import k8s as kube

from ultrascale.plan.model import DevicePluginPlan, ResourcesPlan
from ultrascale.plan.names import (
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ROLE_LABEL,
    SYSTEM_ROLE,
    ZONE_LABEL,
)

NAME_LABEL = "app.kubernetes.io/name"
SYSTEM_CLUSTER_CRITICAL = "system-cluster-critical"
SYSTEM_NODE_CRITICAL = "system-node-critical"

# Nodes of EKS Auto Mode have the device plugins built in, and those of HyperPod get them from its
# Helm chart; a second one would fight over the devices. Affinity knows no prefixes, so HyperPod's
# nodes are told by their label, not by the `ml.` of their instance types.
# Sources:
#     https://docs.aws.amazon.com/eks/latest/userguide/auto-accelerated.html
#     https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/values.yaml
_NOT_OURS = (
    ("eks.amazonaws.com/compute-type", "NotIn", ("auto",)),
    ("sagemaker.amazonaws.com/compute-type", "NotIn", ("hyperpod",)),
)
# Where device plugins register with the kubelet.
# Source: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
DEVICE_PLUGIN_SOCKETS = "/var/lib/kubelet/device-plugins"
_CRITICAL_ADDONS_TAINT = "CriticalAddonsOnly"
# Kubernetes' own default is ten. Each is an object that the API server keeps.
REVISIONS = 3


def labels(name: str) -> dict[str, str]:
    """Return the labels of everything that belongs to the component ``name``."""
    return {NAME_LABEL: name, "app.kubernetes.io/part-of": "ultrascale"}


def metadata(
    name: str, *, namespace: str | None = None, component: str | None = None
) -> kube.ObjectMeta:
    """Return the metadata of an object of ``component``, which is ``name`` unless given."""
    return kube.ObjectMeta(name=name, namespace=namespace, labels=labels(component or name))


def selector(name: str) -> kube.LabelSelector:
    """Return the selector of the pods of the component ``name``. It is immutable once applied."""
    return kube.LabelSelector(match_labels={NAME_LABEL: name})


def resources(*, cpu: str, memory: str, memory_limit: str) -> kube.ResourceRequirements:
    """Return requests and a memory limit, and no CPU limit: throttling a controller helps nobody.

    Args:
        cpu: CPU request, in Kubernetes' notation.
        memory: Memory request.
        memory_limit: Memory beyond which the container is killed.
    """
    return kube.ResourceRequirements(
        requests={"cpu": _quantity(cpu), "memory": _quantity(memory)},
        limits={"memory": _quantity(memory_limit)},
    )


@cache
def _quantity(text: str) -> kube.Quantity:
    return kube.Quantity.from_string(text)


def planned_resources(plan: ResourcesPlan) -> kube.ResourceRequirements:
    """Return the requests and the limit of ``plan``."""
    return resources(cpu=plan.cpu, memory=plan.memory, memory_limit=plan.memory_limit)


def restricted_pod(user: int) -> kube.PodSecurityContext:
    """Return the pod part of the `restricted` Pod Security Standard, running as ``user``.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    return kube.PodSecurityContext(
        run_as_non_root=True,
        run_as_user=user,
        run_as_group=user,
        fs_group=user,
        # Kubernetes would otherwise change the mode of every file at each start, and the private
        # data directory would become readable by the group.
        fs_group_change_policy="OnRootMismatch",
        seccomp_profile=kube.SeccompProfile(type="RuntimeDefault"),
    )


def restricted_container() -> kube.SecurityContext:
    """Return the container part of the `restricted` standard, with a read-only root file system."""
    return kube.SecurityContext(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=kube.Capabilities(drop=["ALL"]),
    )


def tolerations(keys: Iterable[str] = ()) -> list[kube.Toleration]:
    """Tolerate the taints ``keys``, whatever their value and effect, and `CriticalAddonsOnly`."""
    wanted = dict.fromkeys((_CRITICAL_ADDONS_TAINT, *keys))
    return [kube.Toleration(key=key, operator="Exists") for key in wanted]


def system_affinity() -> kube.Affinity:
    """Require the system pool: accelerated nodes come and go, and cost too much for controllers."""
    return _node_affinity([(ROLE_LABEL, "In", (SYSTEM_ROLE,))])


def keep_apart(name: str) -> list[kube.TopologySpreadConstraint]:
    """Keep the replicas of ``name`` on nodes of their own, and in zones of their own if possible.

    A zone that is down must not keep a replica from starting elsewhere.
    """
    return [
        kube.TopologySpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable=otherwise,
            label_selector=selector(name),
        )
        for key, otherwise in ((HOSTNAME_LABEL, "DoNotSchedule"), (ZONE_LABEL, "ScheduleAnyway"))
    ]


def own_kubelet_affinity() -> kube.Affinity:
    """Require nodes whose kubelets we configure: neither EKS Auto Mode's nor HyperPod's."""
    return _node_affinity([*_NOT_OURS])


def device_plugin_affinity(plan: DevicePluginPlan) -> kube.Affinity:
    """Require the plan's instance types, if it names any, and nodes that bring no plugin along."""
    types = [(INSTANCE_TYPE_LABEL, "In", plan.instance_types)] if plan.instance_types else []
    return _node_affinity([*types, *_NOT_OURS])


def _node_affinity(terms: Sequence[tuple[str, str, Sequence[str]]]) -> kube.Affinity:
    required = kube.NodeSelectorTerm(
        match_expressions=[
            kube.NodeSelectorRequirement(key=key, operator=operator, values=list(values))
            for key, operator, values in terms
        ]
    )
    selector = kube.NodeSelector(node_selector_terms=[required])
    return kube.Affinity(
        node_affinity=kube.NodeAffinity(
            required_during_scheduling_ignored_during_execution=selector
        )
    )


def host_volumes(paths: Mapping[str, str]) -> list[kube.Volume]:
    """Return a hostPath volume for each name and path; a missing directory is created.

    A directory that appears only once a driver is loaded must not keep the pod from starting: the
    plugin says itself what it misses.
    """
    return [
        kube.Volume(
            name=name,
            host_path=kube.HostPathVolumeSource(path=path, type="DirectoryOrCreate"),
        )
        for name, path in paths.items()
    ]


def host_mounts(
    paths: Mapping[str, str], *, read_only: Sequence[str] = ()
) -> list[kube.VolumeMount]:
    """Mount the volumes of `host_volumes(paths)` where the node has them."""
    return [
        kube.VolumeMount(name=name, mount_path=path, read_only=True if name in read_only else None)
        for name, path in paths.items()
    ]


def device_plugin_daemon_set(
    name: str,
    plan: DevicePluginPlan,
    *,
    container: kube.Container,
    host_paths: Mapping[str, str],
    extra_taints: Sequence[str] = (),
    service_account: str | None = None,
    host_network: bool = False,
    volumes: Sequence[kube.Volume] = (),
    annotations: Mapping[str, str] | None = None,
) -> kube.DaemonSetSpec:
    """Return the spec of the DaemonSet of a device plugin, or of an exporter beside it.

    Args:
        name: Value of the name label that its pods are selected by.
        plan: Where it runs.
        container: The program.
        host_paths: Directories of the node that it mounts, by volume name.
        extra_taints: Keys of taints that it tolerates beside the plan's.
        service_account: The account whose token it gets; without one it gets no token.
        host_network: Whether it shares the node's network.
        volumes: What it mounts beside ``host_paths``.
        annotations: Annotations of its pods.
    """
    pod = kube.PodSpec(
        priority_class_name=SYSTEM_NODE_CRITICAL,
        service_account_name=service_account,
        automount_service_account_token=service_account is not None,
        enable_service_links=False,
        host_network=host_network or None,
        node_selector=dict(plan.node_selector) or None,
        affinity=device_plugin_affinity(plan),
        tolerations=tolerations((*plan.taint_keys, *extra_taints)),
        containers=[container],
        volumes=[*host_volumes(host_paths), *volumes],
    )
    return kube.DaemonSetSpec(
        revision_history_limit=REVISIONS,
        selector=selector(name),
        update_strategy=_device_plugin_updates(),
        template=kube.PodTemplateSpec(
            metadata=kube.ObjectMeta(labels=labels(name), annotations=annotations), spec=pod
        ),
    )


def _device_plugin_updates() -> kube.DaemonSetUpdateStrategy:
    # The default, one node at a time, would take days on ten thousand nodes.
    tenth = kube.RollingUpdateDaemonSet(max_unavailable=kube.IntOrString.from_string("10%"))
    return kube.DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=tenth)
