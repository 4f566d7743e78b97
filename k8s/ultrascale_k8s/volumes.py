"""Volumes and claims of file systems and buckets."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import VolumePlan
from ultrascale.plan.names import MOUNT_PATH_ANNOTATION
from ultrascale_k8s._pods import labels

# An empty class keeps the claim away from the cluster's default StorageClass.
_NO_CLASS = ""
# A claim binds by its volume's name. It must not ask for the file system's size: when the file
# system grows, Kubernetes refuses to resize a claim that no StorageClass stands behind.
_REQUEST = "1Gi"


class VolumesChart(cdk8s.Chart):
    """Defines PersistentVolumes and the claim of each.

    File systems and buckets outlive the cluster: the volumes are static and retained, so deleting a
    claim, a volume or this chart deletes no data.

    Sources:
        https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/v1.9.0/examples/kubernetes/static_provisioning
        https://github.com/awslabs/mountpoint-s3-csi-driver/tree/main/examples/kubernetes/static_provisioning
    """

    def __init__(self, scope: Construct, id: str, *, plans: Sequence[VolumePlan]) -> None:
        """Define ``plans``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plans: The volumes.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for plan in plans:
            _volume(self, plan)
            _claim(self, plan)


def _volume(chart: cdk8s.Chart, plan: VolumePlan) -> None:
    kube.KubePersistentVolume(
        chart,
        plan.name,
        metadata=kube.ObjectMeta(name=plan.name, labels=labels(plan.component)),
        spec=kube.PersistentVolumeSpec(
            capacity={"storage": kube.Quantity.from_string(f"{plan.capacity_gib}Gi")},
            volume_mode="Filesystem",
            access_modes=[plan.claim.access_mode],
            mount_options=list(plan.mount_options),
            persistent_volume_reclaim_policy="Retain",
            storage_class_name=_NO_CLASS,
            # Reserves the volume: no other claim can bind it first.
            claim_ref=kube.ObjectReference(namespace=plan.claim.namespace, name=plan.claim.name),
            csi=kube.CsiPersistentVolumeSource(
                driver=plan.driver,
                volume_handle=plan.handle,
                volume_attributes=dict(plan.attributes),
            ),
        ),
    )


def _claim(chart: cdk8s.Chart, plan: VolumePlan) -> None:
    claim = plan.claim
    kube.KubePersistentVolumeClaim(
        chart,
        f"{claim.namespace}-{claim.name}",
        metadata=kube.ObjectMeta(
            name=claim.name,
            namespace=claim.namespace,
            labels=labels(plan.component),
            annotations={MOUNT_PATH_ANNOTATION: claim.mount_path},
        ),
        spec=kube.PersistentVolumeClaimSpec(
            access_modes=[claim.access_mode],
            storage_class_name=_NO_CLASS,
            volume_name=plan.name,
            resources=kube.ResourceRequirements(
                requests={"storage": kube.Quantity.from_string(_REQUEST)}
            ),
        ),
    )
