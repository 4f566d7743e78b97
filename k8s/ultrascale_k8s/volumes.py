"""Volumes and claims of file systems and buckets."""

from collections.abc import Iterator, Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import VolumePlan
from ultrascale.plan.names import MOUNT_PATH_ANNOTATION
from ultrascale_k8s.objects import manifest

# An empty class keeps the default StorageClass of the cluster off the claim.
_NO_CLASS = ""
# A claim binds by its volume's name. It must not request the file system's size: after the file
# system grows, Kubernetes refuses to resize a claim without a StorageClass.
_REQUEST = "1Gi"


def volume_objects(plans: Sequence[VolumePlan]) -> Iterator[JsonObject]:
    """Yield PersistentVolumes, each with its claim.

    File systems and buckets outlive the cluster: the volumes are static and retained, so deleting a
    claim, a volume or both deletes no data.

    Sources:
        https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/v1.9.0/examples/kubernetes/static_provisioning
        https://github.com/awslabs/mountpoint-s3-csi-driver/tree/main/examples/kubernetes/static_provisioning
    """
    for plan in plans:
        claim = plan.claim
        yield manifest(
            "PersistentVolume",
            plan.name,
            component=plan.component,
            spec={
                "capacity": {"storage": f"{plan.capacity_gib}Gi"},
                "volumeMode": "Filesystem",
                "accessModes": [claim.access_mode],
                "mountOptions": plan.mount_options,
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": _NO_CLASS,
                # Reserves the volume: no other claim can bind it first.
                "claimRef": {"namespace": claim.namespace, "name": claim.name},
                "csi": {
                    "driver": plan.driver,
                    "volumeHandle": plan.handle,
                    "volumeAttributes": plan.attributes,
                },
            },
        )
        yield manifest(
            "PersistentVolumeClaim",
            claim.name,
            namespace=claim.namespace,
            component=plan.component,
            annotations={MOUNT_PATH_ANNOTATION: claim.mount_path},
            spec={
                "accessModes": [claim.access_mode],
                "storageClassName": _NO_CLASS,
                "volumeName": plan.name,
                "resources": {"requests": {"storage": _REQUEST}},
            },
        )
