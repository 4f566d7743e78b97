"""The PersistentVolume of a file system, and its claim in the namespace of the jobs."""

from collections.abc import Mapping
from typing import Any


def volume_and_claim(
    *, file_system_id: str, dns_name: str, mount_name: str, capacity_gib: int
) -> Mapping[str, Any]:
    """Return the list of both objects, for the FSx CSI driver."""
    storage = f"{capacity_gib}Gi"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "datasets"},
        "spec": {
            "capacity": {"storage": storage},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": ["flock"],
            "csi": {
                "driver": "fsx.csi.aws.com",
                "volumeHandle": file_system_id,
                "volumeAttributes": {"dnsname": dns_name, "mountname": mount_name},
            },
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "datasets", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "datasets",
            "resources": {"requests": {"storage": storage}},
        },
    }
    return {"apiVersion": "v1", "kind": "List", "items": [volume, claim]}
