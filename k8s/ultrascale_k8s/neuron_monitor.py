"""Neuron monitor: metrics of each Neuron device for Prometheus."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import DevicePluginPlan
from ultrascale_k8s._pods import device_plugin, environment, resources, scraped

_NAME = "neuron-monitor"
_PORT = 8000
_CONFIGURATION = "/opt/aws/neuron/bin/neuron-monitor.conf"


def neuron_monitor_objects(plan: DevicePluginPlan) -> list[JsonObject]:
    """Return the DaemonSet that exports the metrics of a node's Neuron devices to Prometheus.

    The DaemonSet has no Service: endpoints of thousands of nodes would be sent to every node.
    Prometheus finds the pods by their annotations.

    Source:
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-monitor.html
    """
    # An HTTP probe would make the exporter collect every metric for nothing.
    probe = {"tcpSocket": {"port": _PORT}}
    container: JsonObject = {
        "command": ["/opt/bin/entrypoint.sh"],
        "args": ["--port", str(_PORT), "--neuron-monitor-config", _CONFIGURATION],
        # Keeps Go's heap below the limit; the Python exporter beside it needs the rest.
        "env": environment({"GOMEMLIMIT": "160MiB"}),
        "ports": [{"name": "metrics", "containerPort": _PORT}],
        # The monitor reads every device of the node. Requesting the devices from the device plugin
        # would take them from jobs, and without a request only a privileged container may open
        # them. Source:
        # https://github.com/aws-neuron/aws-neuron-sdk/blob/master/src/k8/k8s-neuron-monitor-daemonset.yml
        "securityContext": {"privileged": True},
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": 24},
        "livenessProbe": {**probe, "periodSeconds": 30, "failureThreshold": 3},
        "resources": resources(cpu="50m", memory="128Mi", memory_limit="512Mi"),
    }
    return [
        device_plugin(_NAME, plan, container=container, host_paths={}, annotations=scraped(_PORT))
    ]
