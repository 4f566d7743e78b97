"""Device plugins of EFA and NVIDIA, and exporters of metrics: DCGM and the Neuron monitor."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import EFA_INTERFACE, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    DEVICE_PLUGIN_SOCKETS,
    device_plugin,
    environment,
    host_mounts,
    http_probe,
    resources,
    scraped,
    unprivileged_container,
)
from ultrascale_k8s.objects import config_map, name_of

# --- Neuron monitor: metrics of each Neuron device for Prometheus ---------------------------------


_NEURON_MONITOR = "neuron-monitor"
_MONITOR_PORT = 8000
_CONFIGURATION = "/opt/aws/neuron/bin/neuron-monitor.conf"


def neuron_monitor_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that exports the metrics of a node's Neuron devices to Prometheus.

    The DaemonSet has no Service: endpoints of thousands of nodes would be sent to every node.
    Prometheus finds the pods by their annotations.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-monitor.html
    """
    # An HTTP probe would make the exporter collect every metric for nothing.
    probe = {"tcpSocket": {"port": _MONITOR_PORT}}
    container: JsonObject = {
        "command": ["/opt/bin/entrypoint.sh"],
        "args": ["--port", str(_MONITOR_PORT), "--neuron-monitor-config", _CONFIGURATION],
        # Keeps Go's heap below the limit; the Python exporter beside it needs the rest.
        "env": environment({"GOMEMLIMIT": "160MiB"}),
        "ports": [{"name": "metrics", "containerPort": _MONITOR_PORT}],
        # The monitor reads every device of the node. Requesting the devices from the device plugin
        # would take them from jobs, and without a request only a privileged container may open
        # them.
        # Source: https://github.com/aws-neuron/aws-neuron-sdk/blob/master/src/k8/k8s-neuron-monitor-daemonset.yml
        "securityContext": {"privileged": True},
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": 24},
        "livenessProbe": {**probe, "periodSeconds": 30, "failureThreshold": 3},
        "resources": resources(cpu="50m", memory="128Mi", memory_limit="512Mi"),
    }
    return [
        device_plugin(
            _NEURON_MONITOR,
            plan,
            container=container,
            host_paths={},
            annotations=scraped(_MONITOR_PORT),
        )
    ]


# --- The EFA device plugin ------------------------------------------------------------------------


_EFA = "aws-efa-k8s-device-plugin"
_EFA_PATHS = {
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
        "volumeMounts": host_mounts(_EFA_PATHS),
    }
    return [
        device_plugin(
            _EFA,
            plan,
            container=container,
            host_paths=_EFA_PATHS,
            extra_taints=(EFA_INTERFACE,),
            host_network=True,
        )
    ]


# --- The NVIDIA device plugin ---------------------------------------------------------------------


_NVIDIA = "nvidia-device-plugin"
_NVIDIA_PATHS = {"device-plugin": DEVICE_PLUGIN_SOCKETS}
# Source: https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#configuration-option-details
_SETTINGS = {
    # MOFED would give every verbs device, EFA's too, to every container with a GPU, and NCCL would
    # pick the wrong ones. The EFA device plugin gives those devices.
    # Source: https://github.com/NVIDIA/k8s-device-plugin/issues/1692
    "MOFED_ENABLED": "false",
    # Gives /dev/gdrdrv with the GPUs: GPU-initiated communication of NCCL over EFA opens it, and a
    # container cannot request it by itself. On nodes without the device, nothing is given.
    # Source: https://github.com/awslabs/awsome-distributed-ai/pull/1241
    "GDRCOPY_ENABLED": "true",
    # The plugin runs only where the plan says there are GPUs. If it finds none, it must restart
    # until it does: otherwise it would wait forever, on a node that is paid for and offers no GPU.
    "FAIL_ON_INIT_ERROR": "true",
    # The NVIDIA runtime, the default runtime of EKS's NVIDIA AMIs, reads a container's devices from
    # its environment. So pods need no runtimeClassName.
    # Source: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/containerd/runtime_config_nvidia.go
    "DEVICE_LIST_STRATEGY": "envvar",
}


def nvidia_device_plugin_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that offers `nvidia.com/gpu`.

    Source: https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0/deployments
    """
    container: JsonObject = {
        "env": environment(_SETTINGS),
        # Root, since the kubelet's socket directory belongs to root, and no more rights: AWS tests
        # its NVIDIA AMIs so. The plugin calls no API of the cluster.
        # Source: https://github.com/aws/aws-k8s-tester/blob/main/test/manifests/assets/nvidia-device-plugin.yaml
        "securityContext": unprivileged_container(),
        "resources": resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
        "volumeMounts": host_mounts(_NVIDIA_PATHS),
    }
    return [device_plugin(_NVIDIA, plan, container=container, host_paths=_NVIDIA_PATHS)]


# --- DCGM exporter: metrics of each GPU for Prometheus --------------------------------------------


_DCGM = "dcgm-exporter"
_DCGM_PORT = 9400
_COUNTERS_DIRECTORY = "/etc/dcgm-counters"
_COUNTERS_FILE = "counters.csv"
# Folder of the kubelet's socket that tells which pods use which GPUs.
# Source: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/#monitoring-device-plugin-resources
_DCGM_PATHS = {"pod-resources": "/var/lib/kubelet/pod-resources"}
# A node must run one DCGM: of two, only one reads the profiling counters, and NVIDIA does not
# support a second (deadlocks in the driver). The EKS node monitoring agent needs its own DCGM:
# otherwise it declares the GPUs broken, and node repair replaces the node. Its `dcgm-server` runs
# DCGM on this port of each GPU node, without a Service, and the exporter uses it.
# Sources: https://github.com/NVIDIA/DCGM/issues/108
# https://github.com/aws/containers-roadmap/issues/2555
# https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/templates/dcgm-daemonset.yaml
_HOST_ENGINE_PORT = 5555

# DCGM field, Prometheus type, help text. The last four utilizations show a job's use of a GPU:
# DCGM_FI_DEV_GPU_UTIL is 100 while a single kernel waits for the network.
# Sources:
# https://raw.githubusercontent.com/NVIDIA/dcgm-exporter/4.6.0-4.8.3/etc/default-counters.csv
# https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
_COUNTERS = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock in MHz"),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock in MHz"),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature in degrees Celsius"),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature in degrees Celsius"),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in W"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since the driver loaded in mJ"),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Device memory in use in MiB"),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Device memory left in MiB"),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Last XID error"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe retries"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for lost data"),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for corrected errors"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a row could not be remapped"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic of all lanes"),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Share of time in which a kernel ran in percent"),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Share of time in which memory was copied in percent"),
    ("DCGM_FI_DRIVER_VERSION", "label", "Driver version"),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time in which the compute engine worked"),
    ("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of SM cycles with a warp"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles of the tensor cores"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles of the memory interface"),
)


def dcgm_exporter_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that exports the GPU metrics of a node and its pods to Prometheus.

    The DaemonSet has no Service: endpoints of thousands of nodes would be sent to every node.
    Prometheus finds the pods by their annotations.

    Source: https://github.com/NVIDIA/dcgm-exporter/tree/main/deployment
    """
    counters = config_map(
        _DCGM, namespace=SYSTEM_NAMESPACE, component=_DCGM, data={_COUNTERS_FILE: counters_csv()}
    )
    plugin = device_plugin(
        _DCGM,
        plan,
        container=_container(),
        host_paths=_DCGM_PATHS,
        volumes=[{"name": "counters", "configMap": {"name": name_of(counters)}}],
        annotations=scraped(_DCGM_PORT),
    )
    return [counters, plugin]


def counters_csv() -> str:
    """Return the list of exported fields, in the exporter's format."""
    return "".join(f"{', '.join(counter)}\n" for counter in _COUNTERS)


def _container() -> JsonObject:
    values = {
        # The kubelet fills in the address of the exporter's own node.
        "DCGM_REMOTE_HOSTENGINE_INFO": f"$(NODE_IP):{_HOST_ENGINE_PORT}",
        "DCGM_EXPORTER_COLLECTORS": f"{_COUNTERS_DIRECTORY}/{_COUNTERS_FILE}",
        "DCGM_EXPORTER_KUBERNETES": "true",
        "DCGM_EXPORTER_LISTEN": f":{_DCGM_PORT}",
        # The image's entry point would try to give the program SYS_ADMIN.
        "NO_SETCAP": "true",
    }
    fields = {"NODE_IP": "status.hostIP", "NODE_NAME": "spec.nodeName"}
    return {
        "env": environment(values, fields=fields),
        "ports": [{"name": "metrics", "containerPort": _DCGM_PORT}],
        # DCGM itself needs SYS_ADMIN for the profiling counters, and the agent that runs it is
        # privileged. The exporter needs only to be root, to open the kubelet's socket.
        # Source: https://github.com/NVIDIA/dcgm-exporter/issues/61
        "securityContext": unprivileged_container(),
        "startupProbe": http_probe("/health", _DCGM_PORT, periodSeconds=5, failureThreshold=24),
        "livenessProbe": http_probe("/health", _DCGM_PORT, periodSeconds=30, failureThreshold=3),
        "resources": resources(cpu="50m", memory="128Mi", memory_limit="512Mi"),
        "volumeMounts": [
            *host_mounts(_DCGM_PATHS, read_only=tuple(_DCGM_PATHS)),
            {"name": "counters", "mountPath": _COUNTERS_DIRECTORY, "readOnly": True},
        ],
    }
