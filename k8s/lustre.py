"""How pods mount the FSx for Lustre file systems."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from k8s._pods import labels
from ultrascale.plan.model import ClaimPlan, LustrePlan
from ultrascale.plan.names import MOUNT_PATH_ANNOTATION

_DRIVER = "fsx.csi.aws.com"
# An empty class keeps the claim away from the cluster's default StorageClass.
_NO_CLASS = ""
_ACCESS_MODES = ("ReadWriteMany",)
# Without it a program that locks a file fails with ENOSYS.
_MOUNT_OPTIONS = ("flock",)
# A claim binds by its volume's name. It must not ask for the file system's size: when the file
# system grows, Kubernetes refuses to resize a claim that no StorageClass stands behind.
_REQUEST = "1Gi"


class LustreVolumesChart(cdk8s.Chart):
    """Defines a PersistentVolume and its claim for each file system that the cluster mounts.

    The file systems outlive the cluster: the volumes are static and retained, so deleting a claim,
    a volume or this chart deletes no data.

    Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/v1.9.0/examples/kubernetes/static_provisioning
    """

    def __init__(self, scope: Construct, id: str, *, plans: Sequence[LustrePlan]) -> None:
        """Define the volumes of ``plans``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plans: The file systems; those without a claim are left out.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for plan in plans:
            if plan.claim is not None:
                _volume(self, plan, plan.claim)
                _claim(self, plan, plan.claim)


def volume_name(plan: LustrePlan, claim: ClaimPlan) -> str:
    """Return the PersistentVolume's name, unique in the cluster: one volume serves one claim."""
    return f"{plan.name}-{claim.namespace}-{claim.name}"


def _volume(chart: cdk8s.Chart, plan: LustrePlan, claim: ClaimPlan) -> None:
    name = volume_name(plan, claim)
    kube.KubePersistentVolume(
        chart,
        name,
        metadata=kube.ObjectMeta(name=name, labels=labels(plan.name)),
        spec=kube.PersistentVolumeSpec(
            capacity={"storage": kube.Quantity.from_string(f"{plan.capacity_gib}Gi")},
            volume_mode="Filesystem",
            access_modes=list(_ACCESS_MODES),
            mount_options=list(_MOUNT_OPTIONS),
            persistent_volume_reclaim_policy="Retain",
            storage_class_name=_NO_CLASS,
            # Reserves the volume: no other claim can bind it first.
            claim_ref=kube.ObjectReference(namespace=claim.namespace, name=claim.name),
            csi=kube.CsiPersistentVolumeSource(
                driver=_DRIVER,
                volume_handle=plan.file_system_id,
                volume_attributes={"dnsname": plan.dns_name, "mountname": plan.mount_name},
            ),
        ),
    )


def _claim(chart: cdk8s.Chart, plan: LustrePlan, claim: ClaimPlan) -> None:
    kube.KubePersistentVolumeClaim(
        chart,
        f"{claim.namespace}-{claim.name}",
        metadata=kube.ObjectMeta(
            name=claim.name,
            namespace=claim.namespace,
            labels=labels(plan.name),
            annotations={MOUNT_PATH_ANNOTATION: claim.mount_path},
        ),
        spec=kube.PersistentVolumeClaimSpec(
            access_modes=list(_ACCESS_MODES),
            storage_class_name=_NO_CLASS,
            volume_name=volume_name(plan, claim),
            resources=kube.ResourceRequirements(
                requests={"storage": kube.Quantity.from_string(_REQUEST)}
            ),
        ),
    )
