"""The NVIDIA device plugin: without it no pod ever gets a GPU."""

from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image
from ultrascale.plan.model import DevicePluginPlan
from ultrascale.plan.names import GPU_PRESENT_LABEL
from ultrascale_k8s.devices import nvidia_device_plugin_objects

PLAN = DevicePluginPlan(
    image=image("nvidia-device-plugin").reference,
    instance_types=(),
    node_selector={GPU_PRESENT_LABEL: "true"},
    taint_keys=("nvidia.com/gpu", "dedicated"),
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return applied(nvidia_device_plugin_objects(PLAN))


@pytest.fixture(scope="module")
def pod(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (daemon_set,) = documents
    return daemon_set["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["containers"]
    return container


def test_api_server_takes_the_nvidia_plugin(documents: list[dict[str, Any]]) -> None:
    # Root by need: the kubelet's socket directory belongs to root.
    assert findings(documents, root=["nvidia-device-plugin"]) == []


def test_image_cannot_change_behind_its_tag(container: dict[str, Any]) -> None:
    assert "@sha256:" in container["image"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MOFED_ENABLED", "false"),
        ("GDRCOPY_ENABLED", "true"),
        ("FAIL_ON_INIT_ERROR", "true"),
        ("DEVICE_LIST_STRATEGY", "envvar"),
    ],
    ids=[
        "EFA devices are not its to give",
        "GPUs can start communication over EFA",
        "a driver that was late is looked for again",
        "the runtime of EKS AMIs understands it",
    ],
)
def test_plugin_depends_on_no_default_of_its_release(
    container: dict[str, Any], setting: str, value: str
) -> None:
    assert {"name": setting, "value": value} in container["env"]


@pytest.mark.parametrize("taint", ["nvidia.com/gpu", "dedicated", "CriticalAddonsOnly"])
def test_plugin_starts_on_tainted_nodes(pod: dict[str, Any], taint: str) -> None:
    assert {"key": taint, "operator": "Exists"} in pod["tolerations"]


def test_plugin_runs_where_there_are_gpus_and_no_other_plugin(pod: dict[str, Any]) -> None:
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert node_terms(pod) == KEEPS_OFF


def test_plugin_needs_no_runtime_class_on_eks_amis(pod: dict[str, Any]) -> None:
    assert "runtimeClassName" not in pod


def test_plugin_holds_no_capability_and_no_token(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_plugin_mounts_nothing_but_the_kubelets_sockets(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    # A read-only mount at /etc/nvidia would keep the container from starting
    # (awslabs/amazon-eks-ami#2790).
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [
        "/var/lib/kubelet/device-plugins"
    ]
    assert len(pod["volumes"]) == 1


def test_a_job_never_evicts_the_plugin(pod: dict[str, Any]) -> None:
    assert pod["priorityClassName"] == "system-node-critical"
