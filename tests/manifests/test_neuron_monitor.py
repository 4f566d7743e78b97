"""The Neuron monitor: metrics of devices that belong to jobs, without taking a device from them."""

from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image
from ultrascale.plan.model import DevicePluginPlan
from ultrascale_k8s.devices import neuron_monitor_objects

TYPES = ("trn1.32xlarge", "trn2.48xlarge")
PLAN = DevicePluginPlan(
    image=image("neuron-monitor").reference,
    instance_types=TYPES,
    node_selector={},
    taint_keys=("aws.amazon.com/neuron",),
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return applied(neuron_monitor_objects(PLAN))


@pytest.fixture(scope="module")
def template(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (daemon_set,) = documents
    return daemon_set["spec"]["template"]


@pytest.fixture(scope="module")
def container(template: dict[str, Any]) -> dict[str, Any]:
    (container,) = template["spec"]["containers"]
    return container


def test_api_server_takes_the_exporter(documents: list[dict[str, Any]]) -> None:
    # Root by need: it opens the devices.
    assert findings(documents, root=["neuron-monitor"]) == []


def test_it_takes_no_device_from_a_job(container: dict[str, Any]) -> None:
    asked = {*container["resources"]["requests"], *container["resources"]["limits"]}

    assert asked == {"cpu", "memory"}
    assert container["securityContext"] == {"privileged": True}


def test_a_privileged_pod_gets_no_token_and_nothing_of_the_node(template: dict[str, Any]) -> None:
    pod = template["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert not pod.get("volumes")
    assert "hostNetwork" not in pod


def test_prometheus_finds_its_port(template: dict[str, Any], container: dict[str, Any]) -> None:
    annotations = template["metadata"]["annotations"]
    (port,) = container["ports"]

    assert annotations["prometheus.io/scrape"] == "true"
    assert annotations["prometheus.io/port"] == str(port["containerPort"]) == "8000"
    assert container["args"][:2] == ["--port", "8000"]
    assert container["livenessProbe"]["tcpSocket"] == {"port": 8000}


def test_it_defines_no_kind_that_needs_a_prometheus_operator_and_no_service(
    documents: list[dict[str, Any]],
) -> None:
    assert [document["kind"] for document in documents] == ["DaemonSet"]


def test_it_runs_on_neuron_nodes_that_bring_no_monitor_along(template: dict[str, Any]) -> None:
    pod = template["spec"]
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(TYPES)}

    assert node_terms(pod) == [types, *KEEPS_OFF]
    assert {"key": "aws.amazon.com/neuron", "operator": "Exists"} in pod["tolerations"]
