"""The NVIDIA device plugin."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale_k8s._pods import (
    DEVICE_PLUGIN_SOCKETS,
    device_plugin,
    environment,
    host_mounts,
    resources,
    unprivileged_container,
)

_NAME = "nvidia-device-plugin"
_HOST_PATHS = {"device-plugin": DEVICE_PLUGIN_SOCKETS}
# Source: https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#configuration-option-details
_SETTINGS = {
    # MOFED would give every verbs device, EFA's too, to every container with a GPU, and NCCL would
    # pick the wrong ones. The EFA device plugin gives those devices. Source:
    # https://github.com/NVIDIA/k8s-device-plugin/issues/1692
    "MOFED_ENABLED": "false",
    # Gives /dev/gdrdrv with the GPUs: GPU-initiated communication of NCCL over EFA opens it, and a
    # container cannot request it by itself. On nodes without the device, nothing is given. Source:
    # https://github.com/awslabs/awsome-distributed-ai/pull/1241
    "GDRCOPY_ENABLED": "true",
    # The plugin runs only where the plan says there are GPUs. If it finds none, it must restart
    # until it does: otherwise it would wait forever, on a node that is paid for and offers no GPU.
    "FAIL_ON_INIT_ERROR": "true",
    # The NVIDIA runtime, the default runtime of EKS's NVIDIA AMIs, reads a container's devices from
    # its environment. So pods need no runtimeClassName. Source:
    # https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/containerd/runtime_config_nvidia.go
    "DEVICE_LIST_STRATEGY": "envvar",
}


def nvidia_device_plugin_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that offers `nvidia.com/gpu`.

    Source: https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0/deployments
    """
    container: JsonObject = {
        "env": environment(_SETTINGS),
        # Root, since the kubelet's socket directory belongs to root, and no more rights: AWS tests
        # its NVIDIA AMIs so. The plugin calls no API of the cluster. Source:
        # https://github.com/aws/aws-k8s-tester/blob/main/test/manifests/assets/nvidia-device-plugin.yaml
        "securityContext": unprivileged_container(),
        "resources": resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
        "volumeMounts": host_mounts(_HOST_PATHS),
    }
    return [device_plugin(_NAME, plan, container=container, host_paths=_HOST_PATHS)]
