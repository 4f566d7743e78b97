"""DCGM exporter: metrics of each GPU for Prometheus."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    device_plugin,
    environment,
    host_mounts,
    http_probe,
    resources,
    scraped,
    unprivileged_container,
)
from ultrascale_k8s.objects import config_map, name_of

_NAME = "dcgm-exporter"
_PORT = 9400
_COUNTERS_DIRECTORY = "/etc/dcgm-counters"
_COUNTERS_FILE = "counters.csv"
# Folder of the kubelet's socket that tells which pods use which GPUs. Source:
# https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/#monitoring-device-plugin-resources
_HOST_PATHS = {"pod-resources": "/var/lib/kubelet/pod-resources"}
# A node must run one DCGM: of two, only one reads the profiling counters, and NVIDIA does not
# support a second (deadlocks in the driver). The EKS node monitoring agent needs its own DCGM:
# otherwise it declares the GPUs broken, and node repair replaces the node. Its `dcgm-server` runs
# DCGM on this port of each GPU node, without a Service, and the exporter uses it. Sources:
# https://github.com/NVIDIA/DCGM/issues/108 https://github.com/aws/containers-roadmap/issues/2555
# https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/templates/dcgm-daemonset.yaml
_HOST_ENGINE_PORT = 5555

# DCGM field, Prometheus type, help text. The last four utilizations show a job's use of a GPU:
# DCGM_FI_DEV_GPU_UTIL is 100 while a single kernel waits for the network. Sources:
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
        _NAME, namespace=SYSTEM_NAMESPACE, component=_NAME, data={_COUNTERS_FILE: counters_csv()}
    )
    plugin = device_plugin(
        _NAME,
        plan,
        container=_container(),
        host_paths=_HOST_PATHS,
        volumes=[{"name": "counters", "configMap": {"name": name_of(counters)}}],
        annotations=scraped(_PORT),
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
        "DCGM_EXPORTER_LISTEN": f":{_PORT}",
        # The image's entry point would try to give the program SYS_ADMIN.
        "NO_SETCAP": "true",
    }
    fields = {"NODE_IP": "status.hostIP", "NODE_NAME": "spec.nodeName"}
    return {
        "env": environment(values, fields=fields),
        "ports": [{"name": "metrics", "containerPort": _PORT}],
        # DCGM itself needs SYS_ADMIN for the profiling counters, and the agent that runs it is
        # privileged. The exporter needs only to be root, to open the kubelet's socket. Source:
        # https://github.com/NVIDIA/dcgm-exporter/issues/61
        "securityContext": unprivileged_container(),
        "startupProbe": http_probe("/health", _PORT, periodSeconds=5, failureThreshold=24),
        "livenessProbe": http_probe("/health", _PORT, periodSeconds=30, failureThreshold=3),
        "resources": resources(cpu="50m", memory="128Mi", memory_limit="512Mi"),
        "volumeMounts": [
            *host_mounts(_HOST_PATHS, read_only=tuple(_HOST_PATHS)),
            {"name": "counters", "mountPath": _COUNTERS_DIRECTORY, "readOnly": True},
        ],
    }
