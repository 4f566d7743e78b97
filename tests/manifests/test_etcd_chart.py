"""The rendezvous server's manifests: reachable by jobs, by nobody else, and hard to lose."""

from collections.abc import Sequence
from typing import Any

import cdk8s
import pytest

from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import node_terms
from ultrascale.catalog.versions import image
from ultrascale.parts.etcd import Plan as EtcdPlan
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE, TRAINING_LABEL
from ultrascale_k8s.etcd import STORAGE_CLASS, EtcdChart

Documents = dict[tuple[str, str], dict[str, Any]]
IMAGE = image("etcd").reference
MEMBERS = {"app.kubernetes.io/name": "etcd-server"}


def render(*, replicas: int = 3, v2_api: bool = True, job_ranges: Sequence[str] = ()) -> Documents:
    plan = EtcdPlan(
        image=IMAGE,
        namespace="training",
        replicas=replicas,
        v2_api=v2_api,
        volume_gib=10,
        volume_provisioner="ebs.csi.aws.com",
    )
    chart = EtcdChart(cdk8s.Testing.app(), "etcd", plan=plan, job_ranges=job_ranges)
    return {(d["kind"], d["metadata"]["name"]): d for d in cdk8s.Testing.synth(chart)}


@pytest.fixture(scope="module")
def three() -> Documents:
    return render()


@pytest.fixture(scope="module")
def pod(three: Documents) -> dict[str, Any]:
    return three["StatefulSet", "etcd-server"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["containers"]
    return container


@pytest.mark.parametrize("replicas", [1, 3])
def test_api_server_takes_etcd(replicas: int) -> None:
    documents = list(render(replicas=replicas).values())

    assert findings(documents, known=[("Namespace", "", "training")]) == []


def test_a_jobs_pods_find_the_server_and_members_each_other_before_any_is_ready(
    three: Documents,
) -> None:
    service = three["Service", "etcd-server"]
    client = three["Service", "etcd-client"]["spec"]

    # The tutorial's short name.
    assert service["metadata"]["namespace"] == "training"
    assert {"name": "client", "port": 2379} in service["spec"]["ports"]
    assert service["spec"]["selector"] == MEMBERS
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert three["StatefulSet", "etcd-server"]["spec"]["podManagementPolicy"] == "Parallel"
    # Clients that balance reach only members that serve.
    assert "publishNotReadyAddresses" not in client
    assert client["ports"] == [{"name": "client", "port": 2379}]


def test_a_member_without_leader_is_kept_alive_and_heartbeats_do_not_fill_the_quota(
    container: dict[str, Any],
) -> None:
    """etcd keeps what was replaced for up to twice the time of retention."""
    options = dict(arg.removeprefix("--").split("=", 1) for arg in container["args"])
    minutes = int(options["auto-compaction-retention"].removesuffix("m"))

    # What the handler `etcd-v3` lets a large job write.
    written = 2_000_000 * 2 * 60 * minutes

    assert options["auto-compaction-mode"] == "periodic"
    assert written < int(options["quota-backend-bytes"])
    # Without a leader it is out of service.
    assert "serializable=true" in container["livenessProbe"]["httpGet"]["path"]
    assert "serializable=true" in container["startupProbe"]["httpGet"]["path"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"


def test_etcd_runs_hardened_and_apart_off_nodes_that_come_and_go(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    spread = {c["topologyKey"]: c["whenUnsatisfiable"] for c in pod["topologySpreadConstraints"]}
    (mount,) = container["volumeMounts"]
    (folder,) = (a for a in container["args"] if a.startswith("--data-dir="))

    assert container["image"] == IMAGE
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["automountServiceAccountToken"] is False
    # It does not read the variables that Kubernetes makes of Services.
    assert pod["enableServiceLinks"] is False
    # It writes to its volume only.
    assert folder.removeprefix("--data-dir=").startswith(f"{mount['mountPath']}/")
    assert node_terms(pod) == [{"key": ROLE_LABEL, "operator": "In", "values": [SYSTEM_ROLE]}]
    # One node or zone never holds two members if it can be helped.
    assert spread == {
        "kubernetes.io/hostname": "DoNotSchedule",
        "topology.kubernetes.io/zone": "ScheduleAnyway",
    }


def test_its_volume_is_encrypted_gp3_and_not_paid_for_after_etcd_is_gone(three: Documents) -> None:
    storage_class = three["StorageClass", STORAGE_CLASS]
    spec = three["StatefulSet", "etcd-server"]["spec"]
    (claim,) = spec["volumeClaimTemplates"]

    # EKS has no such class.
    assert claim["spec"]["storageClassName"] == STORAGE_CLASS
    assert claim["spec"]["resources"] == {"requests": {"storage": "10Gi"}}
    assert storage_class["provisioner"] == "ebs.csi.aws.com"
    assert storage_class["parameters"] == {"type": "gp3", "encrypted": "true"}
    # In the zone of its pod.
    assert storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
    policy = spec["persistentVolumeClaimRetentionPolicy"]
    assert policy == {"whenDeleted": "Delete", "whenScaled": "Delete"}
    assert storage_class["reclaimPolicy"] == "Delete"


def test_draining_nodes_never_takes_the_quorum_and_a_single_member_can_be_drained(
    three: Documents,
) -> None:
    budget = three["PodDisruptionBudget", "etcd-server"]["spec"]
    single = render(replicas=1, v2_api=False)

    assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": MEMBERS}}
    assert ("PodDisruptionBudget", "etcd-server") not in single
    # The API of version 2 is on for jobs that speak it alone.
    for documents, found in ((three, 1), (single, 0)):
        pod = documents["StatefulSet", "etcd-server"]["spec"]["template"]["spec"]
        assert pod["containers"][0]["args"].count("--enable-v2=true") == found


def test_only_training_namespaces_reach_the_clients_port_and_only_members_the_peers(
    three: Documents,
) -> None:
    clients, peers = three["NetworkPolicy", "etcd-server"]["spec"]["ingress"]
    ranges = ("10.0.0.0/16", "100.64.0.0/16")
    large = render(job_ranges=ranges)["NetworkPolicy", "etcd-server"]["spec"]["ingress"]

    trained = {"namespaceSelector": {"matchLabels": {TRAINING_LABEL: "true"}}}
    members = {"podSelector": {"matchLabels": MEMBERS}}
    assert clients == {"from": [trained], "ports": [{"port": 2379, "protocol": "TCP"}]}
    assert peers == {"from": [members], "ports": [{"port": 2380, "protocol": "TCP"}]}
    # In a large cluster its clients are ranges and no list of pods.
    assert large[0]["from"] == [{"ipBlock": {"cidr": each}} for each in ranges]
    assert [*large[1]["from"][0]] == ["podSelector"]
