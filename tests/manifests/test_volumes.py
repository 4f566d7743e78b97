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


def test_api_server_takes_the_volumes(documents: list[dict[str, Any]]) -> None:
    assert findings(documents, known=[("Namespace", "", "training")]) == []


def test_volume_and_claim_name_each_other_and_the_data_outlives_both(
    documents: list[dict[str, Any]],
) -> None:
    volume, claim = documents[:2]

    assert volume["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "4800Gi"},
        "claimRef": {"namespace": "training", "name": "fsx-claim"},
        "csi": {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": PLAN.handle,
            "volumeAttributes": PLAN.attributes,
        },
        "mountOptions": ["flock"],
        "persistentVolumeReclaimPolicy": "Retain",
        # The default class would provision an empty disk instead.
        "storageClassName": "",
        "volumeMode": "Filesystem",
    }
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        # Kubernetes refuses to grow a claim without a class, so it never asks for the size.
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeName": volume["metadata"]["name"],
    }
    assert (claim["metadata"]["namespace"], claim["metadata"]["name"]) == ("training", "fsx-claim")
    # A job learns from the claim where its file expects the data.
    assert claim["metadata"]["annotations"] == {"ultrascale.dev/mount-path": "/fsx"}


def test_pods_mount_a_bucket_through_mountpoint_and_read_it_alone(
    documents: list[dict[str, Any]],
) -> None:
    volume, claim = documents[2:]

    assert volume["spec"]["csi"]["driver"] == "s3.csi.aws.com"
    assert volume["spec"]["csi"]["volumeAttributes"] == {"bucketName": "NAME-OF-CHECKPOINTS"}
    assert volume["spec"]["mountOptions"] == ["region us-west-2", "read-only"]
    for each in (volume, claim):
        assert each["spec"]["storageClassName"] == ""
        assert each["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert claim["metadata"]["annotations"] == {"ultrascale.dev/mount-path": "/checkpoints"}
