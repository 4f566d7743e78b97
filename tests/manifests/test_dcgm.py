"""The DCGM exporter: one DCGM on a node, and metrics that tell whether a GPU is used."""

import csv
import io
from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import GPU_PRESENT_LABEL
from ultrascale_k8s.devices import counters_csv, dcgm_exporter_objects

PLAN = DevicePluginPlan(
    image=image("dcgm-exporter").reference,
    instance_types=(),
    node_selector={GPU_PRESENT_LABEL: "true", "kubernetes.io/arch": "amd64"},
    taint_keys=("nvidia.com/gpu",),
)


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    documents = applied(dcgm_exporter_objects(PLAN))
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def template(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return objects["DaemonSet"]["spec"]["template"]


@pytest.fixture(scope="module")
def container(template: dict[str, Any]) -> dict[str, Any]:
    (container,) = template["spec"]["containers"]
    return container


@pytest.fixture(scope="module")
def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value") or entry["valueFrom"]["fieldRef"]["fieldPath"]
        for entry in container["env"]
    }


def test_api_server_takes_the_exporter(objects: dict[str, dict[str, Any]]) -> None:
    # Root by need: the kubelet's socket belongs to root.
    assert findings(list(objects.values()), root=["dcgm-exporter"]) == []


def test_image_cannot_change_behind_its_tag(container: dict[str, Any]) -> None:
    assert "@sha256:" in container["image"]


def test_it_starts_no_second_dcgm_beside_that_of_the_monitoring_agent(
    environment: dict[str, Any],
) -> None:
    assert environment["NODE_IP"] == "status.hostIP"
    assert environment["DCGM_REMOTE_HOSTENGINE_INFO"] == "$(NODE_IP):5555"


def test_its_node_is_known_before_the_address_that_names_it(container: dict[str, Any]) -> None:
    # The kubelet expands a variable only if it stands before.
    names = [entry["name"] for entry in container["env"]]

    assert names.index("NODE_IP") < names.index("DCGM_REMOTE_HOSTENGINE_INFO")


def test_it_holds_no_capability_and_no_token(
    template: dict[str, Any], container: dict[str, Any], environment: dict[str, Any]
) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert template["spec"]["automountServiceAccountToken"] is False
    assert environment["NO_SETCAP"]


def test_it_reads_from_the_kubelet_which_pod_holds_a_gpu(
    container: dict[str, Any], environment: dict[str, Any]
) -> None:
    mounts = {mount["mountPath"]: mount["readOnly"] for mount in container["volumeMounts"]}

    assert environment["DCGM_EXPORTER_KUBERNETES"] == "true"
    assert mounts == {"/var/lib/kubelet/pod-resources": True, "/etc/dcgm-counters": True}


def test_it_reads_the_counters_that_the_chart_brings(
    objects: dict[str, dict[str, Any]], template: dict[str, Any], environment: dict[str, Any]
) -> None:
    (volume,) = [volume for volume in template["spec"]["volumes"] if "configMap" in volume]
    (file,) = objects["ConfigMap"]["data"]

    assert volume["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    assert environment["DCGM_EXPORTER_COLLECTORS"] == f"/etc/dcgm-counters/{file}"
    assert objects["ConfigMap"]["data"][file] == counters_csv()


def test_every_counter_has_its_three_columns_and_stands_once() -> None:
    rows = list(csv.reader(io.StringIO(counters_csv()), skipinitialspace=True))

    assert {len(row) for row in rows} == {3}
    assert {kind for _, kind, _ in rows} == {"gauge", "counter", "label"}
    assert len({field for field, _, _ in rows}) == len(rows)
    assert all(field.startswith("DCGM_FI_") for field, _, _ in rows)


@pytest.mark.parametrize(
    "field",
    [
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_FB_USED",
    ],
)
def test_what_a_dashboard_of_gpus_asks_for_is_exported(field: str) -> None:
    assert f"{field}, " in counters_csv()


def test_prometheus_finds_its_port(template: dict[str, Any], container: dict[str, Any]) -> None:
    annotations = template["metadata"]["annotations"]
    (port,) = container["ports"]

    assert annotations["prometheus.io/scrape"] == "true"
    assert annotations["prometheus.io/port"] == str(port["containerPort"]) == "9400"
    assert container["livenessProbe"]["httpGet"] == {"path": "/health", "port": 9400}


def test_it_defines_no_kind_that_needs_a_prometheus_operator_and_no_service(
    objects: dict[str, dict[str, Any]],
) -> None:
    assert set(objects) == {"ConfigMap", "DaemonSet"}


def test_it_runs_where_the_agent_runs_dcgm(template: dict[str, Any]) -> None:
    pod = template["spec"]

    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true", "kubernetes.io/arch": "amd64"}
    assert node_terms(pod) == KEEPS_OFF
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in pod["tolerations"]
