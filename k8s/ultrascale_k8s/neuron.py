"""The Neuron device plugin."""

import cdk8s
import cdk8s_plus_27 as kplus
from constructs import Construct

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._platform_chart import define_object, define_objects
from ultrascale_k8s._pods import (
    DEVICE_PLUGIN_SOCKETS,
    device_plugin,
    environment,
    host_mounts,
    resources,
    unprivileged_container,
)
from ultrascale_k8s._rbac import account_binding, role, rule
from ultrascale_k8s.objects import labels

_NAME = "neuron-device-plugin"
_HOST_PATHS = {
    "device-plugin": DEVICE_PLUGIN_SOCKETS,
    "infa-map": "/run",
    # File with logical_nc_config: the number of physical cores in a logical core.
    "aws-config": "/opt/aws",
}
# Rights that AWS's Helm chart grants the plugin. `nodes/proxy` reaches every API of a kubelet:
# remove it once the plugin is known to work without it.
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
        define_objects(self, [role(_NAME, _RULES), account_binding(_NAME, _NAME)])
        plugin = device_plugin(
            _NAME, plan, container=_container(), host_paths=_HOST_PATHS, service_account=_NAME
        )
        define_object(self, "DaemonSet", plugin)


def _container() -> JsonObject:
    # The plugin looks for this file first. EKS nodes do not have it, so the plugin uses its service
    # account: https://github.com/aws-neuron/aws-neuron-sdk/issues/794
    values = {"KUBECONFIG": "/etc/kubernetes/kubelet.conf"}
    return {
        "env": [*environment(values), *environment({}, fields={"NODE_NAME": "spec.nodeName"})],
        # Runs as root, since the kubelet's socket directory belongs to root.
        "securityContext": unprivileged_container(),
        "resources": resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
        "volumeMounts": host_mounts(_HOST_PATHS, read_only=("aws-config",)),
    }
