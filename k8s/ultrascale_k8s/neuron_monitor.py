"""Neuron monitor: metrics of each Neuron device for Prometheus."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import device_plugin_daemon_set, metadata, resources

_NAME = "neuron-monitor"
_PORT = 8000
_CONFIGURATION = "/opt/aws/neuron/bin/neuron-monitor.conf"


class NeuronMonitorChart(cdk8s.Chart):
    """Defines the DaemonSet that tells Prometheus what the Neuron devices of a node do.

    It has no Service: an endpoint for each of thousands of nodes would be sent to every node.
    Prometheus finds the pods by their annotations.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-monitor.html
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
                host_paths={},
                annotations={
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": str(_PORT),
                },
            ),
        )


def _container(image: str) -> kube.Container:
    return kube.Container(
        name=_NAME,
        image=image,
        command=["/opt/bin/entrypoint.sh"],
        args=["--port", str(_PORT), "--neuron-monitor-config", _CONFIGURATION],
        # Keeps Go's heap below the limit; the Python exporter beside it needs the rest.
        env=[kube.EnvVar(name="GOMEMLIMIT", value="160MiB")],
        ports=[kube.ContainerPort(name="metrics", container_port=_PORT)],
        # It reads every device of the node. To ask the device plugin for them would take them from
        # the jobs, and without that only a privileged container may open them.
        # Source: https://github.com/aws-neuron/aws-neuron-sdk/blob/master/src/k8/k8s-neuron-monitor-daemonset.yml
        security_context=kube.SecurityContext(privileged=True),
        startup_probe=_probe(period_seconds=5, failures=24),
        liveness_probe=_probe(period_seconds=30, failures=3),
        resources=resources(cpu="50m", memory="128Mi", memory_limit="512Mi"),
    )


def _probe(*, period_seconds: int, failures: int) -> kube.Probe:
    # An HTTP probe would make the exporter collect every metric, for nobody.
    return kube.Probe(
        tcp_socket=kube.TcpSocketAction(port=kube.IntOrString.from_number(_PORT)),
        period_seconds=period_seconds,
        failure_threshold=failures,
    )
