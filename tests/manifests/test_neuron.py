"""The Neuron device plugin and its scheduler: without them no Trainium pod is ever placed."""

import json
from typing import Any

import cdk8s
import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from ultrascale.catalog.versions import image, kube_scheduler
from ultrascale.plan.model import DevicePluginPlan, NeuronSchedulerExtensionPlan
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE
from ultrascale.plan.scale import ROWS
from ultrascale_k8s.neuron import NeuronDevicePluginChart
from ultrascale_k8s.neuron_scheduler import neuron_scheduler_objects

PLAN = DevicePluginPlan(
    image=image("neuron-device-plugin").reference,
    instance_types=("trn1.32xlarge", "inf2.48xlarge"),
    node_selector={},
    taint_keys=("aws.amazon.com/neuron", "dedicated"),
)
EXTENSION = NeuronSchedulerExtensionPlan(
    extender_image=image("neuron-scheduler").reference,
    scheduler_image=kube_scheduler("1.35").reference,
    scheduler_name="neuron-scheduler",
    scheduler_resources=ROWS[0].neuron_scheduler,
)
# Both ship images whose user AWS does not document; neither is privileged.
ROOT = ("neuron-device-plugin", "neuron-scheduler")


def render(extension: NeuronSchedulerExtensionPlan | None) -> dict[tuple[str, str], dict[str, Any]]:
    chart = NeuronDevicePluginChart(cdk8s.Testing.app(), "neuron", plan=PLAN)
    documents: list[dict[str, Any]] = cdk8s.Testing.synth(chart)
    if extension is not None:
        documents.extend(applied(neuron_scheduler_objects(extension)))
    return {(d["kind"], d["metadata"]["name"]): d for d in documents}


@pytest.fixture(scope="module")
def plugin() -> dict[tuple[str, str], dict[str, Any]]:
    return render(None)


@pytest.fixture(scope="module")
def extended() -> dict[tuple[str, str], dict[str, Any]]:
    return render(EXTENSION)


@pytest.fixture(scope="module")
def pod(plugin: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    return plugin["DaemonSet", "neuron-device-plugin"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("extension", [None, EXTENSION], ids=["plugin", "with-scheduler"])
def test_api_server_takes_the_neuron_manifests(
    extension: NeuronSchedulerExtensionPlan | None,
) -> None:
    documents = list(render(extension).values())

    assert findings(documents, root=ROOT) == []


def test_plugin_runs_on_neuron_types_and_keeps_off_nodes_which_have_their_own(
    pod: dict[str, Any],
) -> None:
    types = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["trn1.32xlarge", "inf2.48xlarge"],
    }

    assert node_terms(pod) == [types, *KEEPS_OFF]


@pytest.mark.parametrize("taint", ["aws.amazon.com/neuron", "dedicated", "CriticalAddonsOnly"])
def test_plugin_starts_on_tainted_nodes(pod: dict[str, Any], taint: str) -> None:
    assert {"key": taint, "operator": "Exists"} in pod["tolerations"]


def test_plugin_registers_with_the_kubelet_and_reads_the_core_layout(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    mounts = {m["mountPath"]: m.get("readOnly", False) for m in container["volumeMounts"]}

    assert mounts == {"/var/lib/kubelet/device-plugins": False, "/run": False, "/opt/aws": True}
    assert {v["hostPath"]["path"] for v in pod["volumes"]} == set(mounts)


def test_plugin_knows_which_node_it_speaks_for(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]

    assert {
        "name": "NODE_NAME",
        "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
    } in container["env"]


def test_plugin_holds_no_capability_of_the_kernel(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]

    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_whole_node_jobs_get_no_second_scheduler(
    plugin: dict[tuple[str, str], dict[str, Any]],
) -> None:
    assert [kind for kind, _ in plugin if kind in ("Deployment", "Service")] == []


def configuration(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """Return the configuration that the second scheduler mounts."""
    pod = objects["Deployment", "neuron-scheduler"]["spec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    return json.loads(objects["ConfigMap", volume["configMap"]["name"]]["data"]["config.yaml"])


def test_scheduler_asks_the_extender_before_it_places_a_neuron_pod(
    extended: dict[tuple[str, str], dict[str, Any]],
) -> None:
    config = configuration(extended)
    service = extended["Service", "k8s-neuron-scheduler"]

    (extender,) = config["extenders"]
    (port,) = service["spec"]["ports"]
    assert extender["urlPrefix"] == (
        f"http://k8s-neuron-scheduler.kube-system.svc.cluster.local:{port['port']}"
    )
    assert extender["ignorable"] is False
    assert [r["name"] for r in extender["managedResources"]] == [
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
    ]
    assert config["profiles"] == [{"schedulerName": "neuron-scheduler"}]


def test_extender_waits_for_no_scheduler_that_waits_for_it(
    extended: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for name in ("k8s-neuron-scheduler", "neuron-scheduler"):
        assert "schedulerName" not in extended["Deployment", name]["spec"]["template"]["spec"]


def test_no_pod_but_the_scheduler_has_the_extender_bind_a_pod(
    extended: dict[tuple[str, str], dict[str, Any]],
) -> None:
    """It asks nobody who they are, and may bind every pod of the cluster to every node."""
    spec = extended["NetworkPolicy", "k8s-neuron-scheduler"]["spec"]
    scheduler = extended["Deployment", EXTENSION.scheduler_name]["spec"]["selector"]
    extender = extended["Deployment", "k8s-neuron-scheduler"]["spec"]["selector"]

    assert spec["podSelector"] == extender
    assert spec["policyTypes"] == ["Ingress"]
    ports = [{"port": 12345, "protocol": "TCP"}]
    assert spec["ingress"] == [{"from": [{"podSelector": scheduler}], "ports": ports}]


def test_two_extenders_never_hand_out_the_same_device(
    extended: dict[tuple[str, str], dict[str, Any]],
) -> None:
    extender = extended["Deployment", "k8s-neuron-scheduler"]["spec"]

    assert extender["replicas"] == 1
    assert extender["strategy"] == {"type": "Recreate"}


def test_one_of_two_schedulers_leads_by_a_lease_that_it_may_write(
    extended: dict[tuple[str, str], dict[str, Any]],
) -> None:
    config = configuration(extended)
    create, hold = extended["Role", "neuron-scheduler"]["rules"]

    assert extended["Deployment", "neuron-scheduler"]["spec"]["replicas"] == 2
    assert config["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "neuron-scheduler",
        "resourceNamespace": "kube-system",
    }
    assert create["verbs"] == ["create"]
    assert hold["resourceNames"] == ["neuron-scheduler"]
    assert hold["verbs"] == ["get", "update"]


def test_a_new_configuration_restarts_the_scheduler() -> None:
    other = NeuronSchedulerExtensionPlan(
        extender_image=EXTENSION.extender_image,
        scheduler_image=EXTENSION.scheduler_image,
        scheduler_name="other",
        scheduler_resources=EXTENSION.scheduler_resources,
    )
    before, after = (
        render(plan)["Deployment", plan.scheduler_name]["spec"]["template"]["spec"]["volumes"]
        for plan in (EXTENSION, other)
    )

    assert before != after


@pytest.mark.parametrize("name", ["k8s-neuron-scheduler", "neuron-scheduler"])
def test_schedulers_stay_off_the_nodes_that_they_fill(
    extended: dict[tuple[str, str], dict[str, Any]], name: str
) -> None:
    pod = extended["Deployment", name]["spec"]["template"]["spec"]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": [SYSTEM_ROLE]}]}
    ]
