"""The Neuron device plugin and its scheduler: without them no Trainium pod is ever placed."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import node_terms
from ultrascale.catalog.versions import image, kube_scheduler
from ultrascale.plan.model import NeuronSchedulerExtensionPlan
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE
from ultrascale.plan.scale import ROWS
from ultrascale_k8s.neuron_scheduler import neuron_scheduler_objects

Objects = dict[tuple[str, str], dict[str, Any]]
EXTENSION = NeuronSchedulerExtensionPlan(
    extender_image=image("neuron-scheduler").reference,
    scheduler_image=kube_scheduler("1.35").reference,
    scheduler_name="neuron-scheduler",
    scheduler_resources=ROWS[0].neuron_scheduler,
)


def render(extension: NeuronSchedulerExtensionPlan) -> Objects:
    documents = applied(neuron_scheduler_objects(extension))
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


@pytest.fixture(scope="module")
def extended() -> Objects:
    return render(EXTENSION)


def test_api_server_takes_the_neuron_scheduler(extended: Objects) -> None:
    # AWS does not document the user of its image, which is not privileged.
    assert findings([*extended.values()], root=["neuron-scheduler"]) == []


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


def test_no_pod_but_the_scheduler_has_the_extender_bind_a_pod(extended: Objects) -> None:
    """It asks nobody who they are, and may bind every pod of the cluster to every node."""
    spec = extended["NetworkPolicy", "k8s-neuron-scheduler"]["spec"]
    scheduler = extended["Deployment", EXTENSION.scheduler_name]["spec"]["selector"]
    extender = extended["Deployment", "k8s-neuron-scheduler"]["spec"]

    assert spec["podSelector"] == extender["selector"]
    assert spec["policyTypes"] == ["Ingress"]
    ports = [{"port": 12345, "protocol": "TCP"}]
    assert spec["ingress"] == [{"from": [{"podSelector": scheduler}], "ports": ports}]
    # Two extenders would hand out the same device.
    assert (extender["replicas"], extender["strategy"]) == (1, {"type": "Recreate"})


def test_one_of_two_schedulers_leads_by_a_lease_and_a_new_configuration_restarts_them(
    extended: Objects,
) -> None:
    create, hold = extended["Role", "neuron-scheduler"]["rules"]
    before, after = (
        render(plan)["Deployment", plan.scheduler_name]["spec"]["template"]["spec"]["volumes"]
        for plan in (EXTENSION, replace(EXTENSION, scheduler_name="other"))
    )

    assert before != after
    assert extended["Deployment", "neuron-scheduler"]["spec"]["replicas"] == 2
    assert configuration(extended)["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "neuron-scheduler",
        "resourceNamespace": "kube-system",
    }
    assert create["verbs"] == ["create"]
    assert (hold["resourceNames"], hold["verbs"]) == (["neuron-scheduler"], ["get", "update"])


@pytest.mark.parametrize("name", ["k8s-neuron-scheduler", "neuron-scheduler"])
def test_schedulers_stay_off_the_nodes_that_they_fill(extended: Objects, name: str) -> None:
    pod = extended["Deployment", name]["spec"]["template"]["spec"]

    rule = {"key": ROLE_LABEL, "operator": "In", "values": [SYSTEM_ROLE]}
    assert node_terms(pod) == [rule]
    # The extender waits for no scheduler that waits for it.
    assert "schedulerName" not in pod
