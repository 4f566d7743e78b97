"""The EFA device plugin: without it jobs fall back to TCP and say nothing."""

from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import EFA_LABEL
from ultrascale_k8s.devices import efa_device_plugin_objects

REGISTRY = "602401143452.dkr.ecr.us-west-2.amazonaws.com"
PLAN = DevicePluginPlan(
    image=f"{REGISTRY}/{image('aws-efa-k8s-device-plugin').reference}",
    instance_types=(),
    node_selector={EFA_LABEL: "true"},
    taint_keys=("nvidia.com/gpu", "aws.amazon.com/neuron"),
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return applied(efa_device_plugin_objects(PLAN))


@pytest.fixture(scope="module")
def pod(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (daemon_set,) = documents
    return daemon_set["spec"]["template"]["spec"]


def test_api_server_takes_the_efa_plugin(documents: list[dict[str, Any]]) -> None:
    # It is root by need: it opens the accelerators' device files.
    assert findings(documents, root=["aws-efa-k8s-device-plugin"]) == []


@pytest.mark.parametrize(
    "taint",
    ["nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa", "CriticalAddonsOnly"],
)
def test_plugin_starts_on_tainted_nodes(pod: dict[str, Any], taint: str) -> None:
    assert {"key": taint, "operator": "Exists"} in pod["tolerations"]


def test_plugin_does_not_crash_loop_on_nodes_without_efa(pod: dict[str, Any]) -> None:
    assert pod["nodeSelector"] == {EFA_LABEL: "true"}


def test_plugin_keeps_off_nodes_which_have_their_own(pod: dict[str, Any]) -> None:
    assert node_terms(pod) == KEEPS_OFF


def test_plugin_sees_the_devices_that_it_pairs_with_the_accelerators(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}

    assert container["securityContext"] == {"privileged": True}
    assert mounted == {"/var/lib/kubelet/device-plugins", "/dev/infiniband", "/opt/aws/neuron"}
    assert mounted == {volume["hostPath"]["path"] for volume in pod["volumes"]}


def test_a_privileged_pod_gets_no_token_of_the_cluster(pod: dict[str, Any]) -> None:
    assert pod["automountServiceAccountToken"] is False


def test_a_job_never_evicts_the_plugin(pod: dict[str, Any]) -> None:
    assert pod["priorityClassName"] == "system-node-critical"


def test_an_update_reaches_ten_thousand_nodes_within_a_day(documents: list[dict[str, Any]]) -> None:
    assert documents[0]["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}
