"""The EFA device plugin."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import EFA_INTERFACE, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    DEVICE_PLUGIN_SOCKETS,
    device_plugin_daemon_set,
    host_mounts,
    metadata,
    resources,
)

_NAME = "aws-efa-k8s-device-plugin"
_HOST_PATHS = {
    "device-plugin": DEVICE_PLUGIN_SOCKETS,
    "infiniband": "/dev/infiniband",
    # Present on Neuron nodes only, where the plugin reads which EFA is near which device.
    "neuron-tools": "/opt/aws/neuron",
}


class EfaDevicePluginChart(cdk8s.Chart):
    """Defines the DaemonSet that offers `vpc.amazonaws.com/efa`.

    It runs only where the plan's node labels say that EFA interfaces are attached: on any other
    node it crash-loops.

    Source: https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin
    """

    def __init__(self, scope: Construct, id: str, *, plan: DevicePluginPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kube.KubeDaemonSet(
            self,
            "DaemonSet",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=device_plugin_daemon_set(
                _NAME,
                plan,
                container=_container(plan.image),
                host_paths=_HOST_PATHS,
                extra_taints=(EFA_INTERFACE,),
                host_network=True,
            ),
        )


def _container(image: str) -> kube.Container:
    return kube.Container(
        name=_NAME,
        image=image,
        # The plugin opens the Neuron and GPU devices to pair each with its nearest EFA, which
        # needs a privileged container: https://github.com/aws/eks-charts/pull/1245
        security_context=kube.SecurityContext(privileged=True),
        resources=resources(cpu="10m", memory="20Mi", memory_limit="128Mi"),
        volume_mounts=host_mounts(_HOST_PATHS),
    )
