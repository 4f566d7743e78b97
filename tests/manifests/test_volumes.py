"""Volumes: the data behind them must outlive every manifest."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from ultrascale.plan.model import ClaimPlan, VolumePlan
from ultrascale_k8s.volumes import volume_objects

PLAN = VolumePlan(
    name="datasets-training-fsx-claim",
    component="datasets",
    claim=ClaimPlan(namespace="training", name="fsx-claim", mount_path="/fsx"),
    driver="fsx.csi.aws.com",
    handle="ID-OF-DATASETS",
    attributes={"dnsname": "DNS-NAME-OF-DATASETS", "mountname": "MOUNT-NAME-OF-DATASETS"},
    mount_options=("flock",),
    capacity_gib=4800,
)
OTHER = replace(
    PLAN,
    name="s3-checkpoints-training-checkpoints",
    component="checkpoints",
    claim=ClaimPlan(
        namespace="training",
        name="checkpoints",
        mount_path="/checkpoints",
        source="bucket",
        read_only=True,
        access_mode="ReadOnlyMany",
    ),
    driver="s3.csi.aws.com",
    handle="s3-checkpoints-training-checkpoints",
    attributes={"bucketName": "NAME-OF-CHECKPOINTS"},
    mount_options=("region us-west-2", "read-only"),
)


def render(*plans: VolumePlan) -> list[dict[str, Any]]:
    return applied(volume_objects(plans))


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
        "volumeHandle": PLAN.handle,
        "volumeAttributes": PLAN.attributes,
    }


def test_pods_mount_a_bucket_through_mountpoint(documents: list[dict[str, Any]]) -> None:
    bucket = documents[2]["spec"]

    assert bucket["csi"]["driver"] == "s3.csi.aws.com"
    assert bucket["csi"]["volumeAttributes"] == {"bucketName": "NAME-OF-CHECKPOINTS"}
    assert bucket["mountOptions"] == ["region us-west-2", "read-only"]


def test_a_volume_to_read_binds_no_claim_to_write(documents: list[dict[str, Any]]) -> None:
    assert [d["spec"]["accessModes"] for d in documents[2:]] == [["ReadOnlyMany"]] * 2


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
