"""The EFA device plugin."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import EFA_INTERFACE
from ultrascale_k8s._pods import DEVICE_PLUGIN_SOCKETS, device_plugin, host_mounts, resources

_NAME = "aws-efa-k8s-device-plugin"
_HOST_PATHS = {
    "device-plugin": DEVICE_PLUGIN_SOCKETS,
    "infiniband": "/dev/infiniband",
    # Exists only on Neuron nodes, where the plugin reads the EFA nearest to each device.
    "neuron-tools": "/opt/aws/neuron",
}


def efa_device_plugin_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that offers `vpc.amazonaws.com/efa`.

    The plugin runs only on nodes whose labels show attached EFA interfaces: elsewhere it
    crash-loops.

    Source: https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin
    """
    container: JsonObject = {
        # The plugin opens the Neuron and GPU devices to pair each with its nearest EFA, which
        # needs a privileged container: https://github.com/aws/eks-charts/pull/1245
        "securityContext": {"privileged": True},
        "resources": resources(cpu="10m", memory="20Mi", memory_limit="128Mi"),
        "volumeMounts": host_mounts(_HOST_PATHS),
    }
    return [
        device_plugin(
            _NAME,
            plan,
            container=container,
            host_paths=_HOST_PATHS,
            extra_taints=(EFA_INTERFACE,),
            host_network=True,
        )
    ]
