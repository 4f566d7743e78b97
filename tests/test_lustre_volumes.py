"""Volumes of the FSx for Lustre file systems: the data must outlive every manifest."""

from dataclasses import replace
from typing import Any

import cdk8s
import pytest

from k8s.lustre import LustreVolumesChart
from tests.kubernetes_schemas import findings
from ultrascale.plan.model import ClaimPlan, LustrePlan

PLAN = LustrePlan(
    name="datasets",
    zone="us-west-2a",
    capacity_gib=4800,
    throughput_mbps_per_tib=250,
    deployment_type="PERSISTENT_2",
    lustre_version="2.15",
    port_ranges=((988, 988), (1018, 1023)),
    data_compression="LZ4",
    backup_retention_days=7,
    efa=False,
    claim=ClaimPlan(namespace="training", name="fsx-claim", mount_path="/fsx"),
    file_system_id="ID-OF-DATASETS",
    dns_name="DNS-NAME-OF-DATASETS",
    mount_name="MOUNT-NAME-OF-DATASETS",
)
OTHER = replace(
    PLAN,
    name="checkpoints",
    claim=ClaimPlan(namespace="training", name="checkpoints", mount_path="/checkpoints"),
    file_system_id="ID-OF-CHECKPOINTS",
)


def render(*plans: LustrePlan) -> list[dict[str, Any]]:
    return cdk8s.Testing.synth(LustreVolumesChart(cdk8s.Testing.app(), "lustre", plans=plans))


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return render(PLAN, OTHER)


@pytest.fixture(scope="module")
def volume(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return documents[0]["spec"]


def test_api_server_takes_the_volumes(documents: list[dict[str, Any]]) -> None:
    assert findings(documents, known=[("Namespace", "", "training")]) == []


def test_deleting_a_claim_deletes_no_data(volume: dict[str, Any]) -> None:
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"


def test_volume_and_claim_name_each_other_so_that_neither_is_taken(
    documents: list[dict[str, Any]],
) -> None:
    volume, claim = documents[:2]

    assert volume["spec"]["claimRef"] == {"namespace": "training", "name": "fsx-claim"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert (claim["metadata"]["namespace"], claim["metadata"]["name"]) == ("training", "fsx-claim")


def test_the_default_storage_class_provisions_no_empty_disk_instead(
    documents: list[dict[str, Any]],
) -> None:
    assert [d["spec"]["storageClassName"] for d in documents] == [""] * 4


def test_pods_mount_the_file_system_that_the_storage_stack_made(volume: dict[str, Any]) -> None:
    assert volume["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": PLAN.file_system_id,
        "volumeAttributes": {"dnsname": PLAN.dns_name, "mountname": PLAN.mount_name},
    }


def test_a_job_learns_from_the_claim_where_its_file_expects_the_data(
    documents: list[dict[str, Any]],
) -> None:
    claims = [d["metadata"] for d in documents if d["kind"] == "PersistentVolumeClaim"]

    assert [(c["name"], c["annotations"]) for c in claims] == [
        ("fsx-claim", {"ultrascale.dev/mount-path": "/fsx"}),
        ("checkpoints", {"ultrascale.dev/mount-path": "/checkpoints"}),
    ]


def test_every_worker_writes_to_the_same_file_system(volume: dict[str, Any]) -> None:
    assert volume["accessModes"] == ["ReadWriteMany"]


def test_programs_may_lock_files(volume: dict[str, Any]) -> None:
    assert volume["mountOptions"] == ["flock"]


def test_claim_asks_for_no_more_than_the_volume_has(documents: list[dict[str, Any]]) -> None:
    volume, claim = documents[:2]

    assert volume["spec"]["capacity"] == {"storage": "4800Gi"}
    # Kubernetes refuses to grow a claim without a class, so it never asks for the size.
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}


def test_two_file_systems_share_neither_volume_nor_handle(
    documents: list[dict[str, Any]],
) -> None:
    volumes = [d for d in documents if d["kind"] == "PersistentVolume"]

    assert [v["metadata"]["name"] for v in volumes] == [
        "datasets-training-fsx-claim",
        "checkpoints-training-checkpoints",
    ]
    assert len({v["spec"]["csi"]["volumeHandle"] for v in volumes}) == 2


def test_a_file_system_that_no_pod_mounts_gets_no_volume() -> None:
    assert render(replace(PLAN, claim=None)) == []
