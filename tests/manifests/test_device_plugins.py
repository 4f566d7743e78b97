"""Device plugins and exporters: without them no pod gets a device, or jobs fall back to TCP."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import cdk8s
import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import EFA_LABEL, GPU_PRESENT_LABEL
from ultrascale_k8s import devices
from ultrascale_k8s.neuron import NeuronDevicePluginChart

Objects = list[dict[str, Any]]
GPU, NEURON, EFA = "nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa"
SOCKETS = "/var/lib/kubelet/device-plugins"
NO_CAPABILITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
ECR = "602401143452.dkr.ecr.us-west-2.amazonaws.com"


def neuron_device_plugin_objects(plan: DevicePluginPlan) -> Objects:
    return cdk8s.Testing.synth(NeuronDevicePluginChart(cdk8s.Testing.app(), "neuron", plan=plan))


TYPES = ("trn1.32xlarge", "inf2.48xlarge")
ON_GPUS = {GPU_PRESENT_LABEL: "true"}
# Name of the DaemonSet, its objects, selector, types and taints, its security context, and whether
# each mount is read-only. All are root by need: the kubelet's sockets and device files are root's.
PLUGINS: Mapping[str, tuple[Any, ...]] = {
    "nvidia-device-plugin": (
        (devices.nvidia_device_plugin_objects, ON_GPUS, (), (GPU, "dedicated")),
        # A read-only mount at /etc/nvidia would keep the container from starting.
        # Source: https://github.com/awslabs/amazon-eks-ami/issues/2790
        (NO_CAPABILITY, {SOCKETS: False}),
    ),
    "aws-efa-k8s-device-plugin": (
        (devices.efa_device_plugin_objects, {EFA_LABEL: "true"}, (), (GPU, NEURON)),
        # It pairs EFA devices with the accelerators.
        (
            {"privileged": True},
            {SOCKETS: False, "/dev/infiniband": False, "/opt/aws/neuron": False},
        ),
    ),
    "neuron-device-plugin": (
        (neuron_device_plugin_objects, {}, TYPES, (NEURON, "dedicated")),
        (NO_CAPABILITY, {SOCKETS: False, "/run": False, "/opt/aws": True}),
    ),
    "dcgm-exporter": (
        (devices.dcgm_exporter_objects, ON_GPUS | {"kubernetes.io/arch": "amd64"}, (), (GPU,)),
        # It reads from the kubelet which pod holds a GPU, and the counters that the chart brings.
        (NO_CAPABILITY, {"/var/lib/kubelet/pod-resources": True, "/etc/dcgm-counters": True}),
    ),
    "neuron-monitor": (
        (devices.neuron_monitor_objects, {}, TYPES, (NEURON,)),
        ({"privileged": True}, {}),
    ),
}


def render(name: str) -> Objects:
    (define, selector, types, taints), _ = PLUGINS[name]
    made = DevicePluginPlan(
        image=f"{ECR}/{image(name).reference}" if "efa" in name else image(name).reference,
        instance_types=types,
        node_selector=selector,
        taint_keys=taints,
    )
    objects: Objects = define(made)
    return objects if define is neuron_device_plugin_objects else applied(objects)


def daemon_set(name: str) -> dict[str, Any]:
    (found,) = (each for each in render(name) if each["kind"] == "DaemonSet")
    return found


def container_of(name: str) -> dict[str, Any]:
    (container,) = daemon_set(name)["spec"]["template"]["spec"]["containers"]
    return container


def environment(name: str) -> dict[str, Any]:
    return {
        each["name"]: each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container_of(name)["env"]
    }


@pytest.mark.parametrize("name", PLUGINS)
def test_it_runs_on_its_nodes_alone_with_the_rights_that_it_needs(name: str) -> None:
    (_, selector, types, taints), (security, mounts) = PLUGINS[name]
    pod = daemon_set(name)["spec"]["template"]["spec"]
    container = container_of(name)

    assert findings(render(name), root=[name]) == []
    assert pod.get("nodeSelector", {}) == selector
    # It keeps off nodes which have their own.
    named = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [*types]}
    assert node_terms(pod) == [*([named] if types else []), *KEEPS_OFF]
    for taint in (*taints, "CriticalAddonsOnly"):
        assert {"key": taint, "operator": "Exists"} in pod["tolerations"]
    assert container["securityContext"] == security
    found = {
        each["mountPath"]: each.get("readOnly", False) for each in container.get("volumeMounts", ())
    }
    assert found == mounts
    # A privileged pod gets no token of the cluster.
    assert pod.get("automountServiceAccountToken", name == "neuron-device-plugin") is (
        name == "neuron-device-plugin"
    )


def test_the_plugin_of_efa_starts_on_nodes_that_only_pods_with_efa_may_use() -> None:
    """Without it their jobs would fall back to TCP."""
    pod = daemon_set("aws-efa-k8s-device-plugin")["spec"]["template"]["spec"]
    assert {"key": EFA, "operator": "Exists"} in pod["tolerations"]


@pytest.mark.parametrize("name", ["nvidia-device-plugin", "aws-efa-k8s-device-plugin"])
def test_a_job_never_evicts_the_plugin(name: str) -> None:
    pod = daemon_set(name)["spec"]["template"]["spec"]

    assert pod["priorityClassName"] == "system-node-critical"
    assert "runtimeClassName" not in pod


def test_an_update_reaches_ten_thousand_nodes_within_a_day() -> None:
    strategy = daemon_set("aws-efa-k8s-device-plugin")["spec"]["updateStrategy"]

    assert strategy["rollingUpdate"] == {"maxUnavailable": "10%"}


def test_the_plugin_of_gpus_depends_on_no_default_of_its_release() -> None:
    assert (
        environment("nvidia-device-plugin").items()
        >= {
            "MOFED_ENABLED": "false",  # EFA devices are not its to give.
            "GDRCOPY_ENABLED": "true",  # GPUs can start communication over EFA.
            "FAIL_ON_INIT_ERROR": "true",  # A driver that was late is looked for again.
            "DEVICE_LIST_STRATEGY": "envvar",  # The runtime of EKS AMIs understands it.
        }.items()
    )


def test_the_plugin_of_neuron_knows_which_node_it_speaks_for_and_brings_no_scheduler() -> None:
    kinds = {each["kind"] for each in render("neuron-device-plugin")}

    assert environment("neuron-device-plugin")["NODE_NAME"] == "spec.nodeName"
    assert not {"Deployment", "Service"} & kinds


def test_the_exporter_of_gpus_starts_no_second_dcgm_beside_that_of_the_monitoring_agent() -> None:
    found = environment("dcgm-exporter")

    # The kubelet expands a variable only if it stands before.
    assert [*found].index("NODE_IP") < [*found].index("DCGM_REMOTE_HOSTENGINE_INFO")
    assert found["NODE_IP"] == "status.hostIP"
    assert found["DCGM_REMOTE_HOSTENGINE_INFO"] == "$(NODE_IP):5555"
    assert found["DCGM_EXPORTER_KUBERNETES"] == "true"
    assert found["NO_SETCAP"]


def test_the_exporter_of_gpus_reads_the_counters_that_its_chart_brings() -> None:
    objects = {each["kind"]: each for each in render("dcgm-exporter")}
    volumes = objects["DaemonSet"]["spec"]["template"]["spec"]["volumes"]
    (name,) = (each["configMap"]["name"] for each in volumes if "configMap" in each)
    ((file, text),) = objects["ConfigMap"]["data"].items()
    rows = [*csv.reader(io.StringIO(text), skipinitialspace=True)]

    # No kind that needs a Prometheus operator, and no Service.
    assert objects.keys() == {"ConfigMap", "DaemonSet"}
    assert name == objects["ConfigMap"]["metadata"]["name"]
    collectors = environment("dcgm-exporter")["DCGM_EXPORTER_COLLECTORS"]
    assert collectors == f"/etc/dcgm-counters/{file}"
    assert text == devices.counters_csv()
    assert {len(row) for row in rows} == {3}
    assert {kind for _, kind, _ in rows} == {"gauge", "counter", "label"}
    fields = [field.removeprefix("DCGM_FI_") for field, _, _ in rows]
    assert len({*fields}) == len(rows)
    # What a dashboard of GPUs asks for.
    assert {*fields} >= {
        *("PROF_PIPE_TENSOR_ACTIVE", "PROF_SM_ACTIVE", "DEV_XID_ERRORS"),
        *("DEV_ROW_REMAP_FAILURE", "DEV_POWER_USAGE", "DEV_FB_USED"),
    }


@pytest.mark.parametrize(
    ("name", "number", "probe"),
    [
        ("dcgm-exporter", 9400, {"httpGet": {"path": "/health", "port": 9400}}),
        ("neuron-monitor", 8000, {"tcpSocket": {"port": 8000}}),
    ],
)
def test_prometheus_finds_its_port(name: str, number: int, probe: Mapping[str, object]) -> None:
    annotations = daemon_set(name)["spec"]["template"]["metadata"]["annotations"]
    container = container_of(name)
    (port,) = container["ports"]

    assert annotations["prometheus.io/scrape"] == "true"
    assert annotations["prometheus.io/port"] == str(port["containerPort"]) == str(number)
    assert probe.items() <= container["livenessProbe"].items()


def test_the_monitor_of_neuron_takes_no_device_from_a_job_and_nothing_of_its_node() -> None:
    (only,) = render("neuron-monitor")
    pod, container = only["spec"]["template"]["spec"], container_of("neuron-monitor")

    assert {*container["resources"]["requests"], *container["resources"]["limits"]} == {
        "cpu",
        "memory",
    }
    assert container["args"][:2] == ["--port", "8000"]
    assert not pod.get("volumes")
    assert "hostNetwork" not in pod
