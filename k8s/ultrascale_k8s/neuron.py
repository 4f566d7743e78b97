"""The Neuron device plugin and, on request, the scheduler for parts of a node."""

import cdk8s
import cdk8s_plus_27 as kplus
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    DEVICE_PLUGIN_SOCKETS,
    device_plugin_daemon_set,
    host_mounts,
    labels,
    metadata,
    resources,
)
from ultrascale_k8s._rbac import bind_cluster_role, rule

_NAME = "neuron-device-plugin"
_HOST_PATHS = {
    "device-plugin": DEVICE_PLUGIN_SOCKETS,
    "infa-map": "/run",
    # Holds logical_nc_config: how many physical cores make one logical core.
    "aws-config": "/opt/aws",
}
# What AWS's Helm chart grants the plugin. `nodes/proxy` reaches every API of a kubelet: take it
# out once the plugin is known to work without.
# Source: https://github.com/aws-neuron/neuron-helm-charts/tree/main/charts/neuron-helm-chart
_RULES = (
    rule("nodes", verbs=("get", "list", "watch")),
    rule("nodes/status", verbs=("patch", "update")),
    rule("nodes/proxy", verbs=("get", "list")),
    rule("pods", verbs=("get", "list", "watch", "patch", "update")),
    rule("events", verbs=("create", "patch")),
)


class NeuronDevicePluginChart(cdk8s.Chart):
    """Defines the DaemonSet that offers `aws.amazon.com/neuron` and `aws.amazon.com/neuroncore`.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
    """

    def __init__(self, scope: Construct, id: str, *, plan: DevicePluginPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kplus.ServiceAccount(
            self,
            "ServiceAccount",
            metadata=cdk8s.ApiObjectMetadata(
                name=_NAME, namespace=SYSTEM_NAMESPACE, labels=labels(_NAME)
            ),
        )
        kube.KubeClusterRole(self, "ClusterRole", metadata=metadata(_NAME), rules=list(_RULES))
        bind_cluster_role(self, "Binding", name=_NAME, role=_NAME, account=_NAME)
        kube.KubeDaemonSet(
            self,
            "DaemonSet",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=device_plugin_daemon_set(
                _NAME,
                plan,
                container=_container(plan.image),
                host_paths=_HOST_PATHS,
                service_account=_NAME,
            ),
        )


def _container(image: str) -> kube.Container:
    node_name = kube.EnvVarSource(field_ref=kube.ObjectFieldSelector(field_path="spec.nodeName"))
    return kube.Container(
        name=_NAME,
        image=image,
        env=[
            # The plugin looks for this file first. EKS nodes have none, and it falls back to its
            # service account: https://github.com/aws-neuron/aws-neuron-sdk/issues/794
            kube.EnvVar(name="KUBECONFIG", value="/etc/kubernetes/kubelet.conf"),
            kube.EnvVar(name="NODE_NAME", value_from=node_name),
        ],
        # Root, since the kubelet's socket directory belongs to root.
        security_context=kube.SecurityContext(
            allow_privilege_escalation=False, capabilities=kube.Capabilities(drop=["ALL"])
        ),
        resources=resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
        volume_mounts=host_mounts(_HOST_PATHS, read_only=("aws-config",)),
    )
