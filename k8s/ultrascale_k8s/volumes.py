"""Volumes and claims of file systems and buckets, and write access to them."""

from collections.abc import Collection, Iterator, Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClaimPlan, OutputAccessPlan, VolumePlan
from ultrascale.plan.names import MOUNT_PATH_ANNOTATION
from ultrascale_k8s._pods import resources, system_affinity, tolerations, unprivileged_container
from ultrascale_k8s.objects import labels, manifest

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


# --- Service accounts of training pods, and ConfigMaps with buckets' names in S3, for output ------


def output_access_objects(
    plan: OutputAccessPlan, namespaces: Collection[str]
) -> Iterator[JsonObject]:
    """Yield the service account of each job namespace, and a ConfigMap for each bucket.

    A pod of the service account gets AWS credentials by EKS Pod Identity, and no token for the API
    server.
    """
    for namespace in namespaces:
        yield manifest(
            "ServiceAccount",
            plan.service_account,
            namespace=namespace,
            automountServiceAccountToken=False,
        )
        for bucket in plan.bucket_names:
            yield manifest(
                "ConfigMap",
                bucket.config_map,
                namespace=namespace,
                data={bucket.key: bucket.bucket_name},
                # Immutable: the kubelet of each node would watch a ConfigMap that can change.
                immutable=True,
            )


# --- Write access to a new Lustre file system, whose root directory belongs to root ---------------


_MOUNT = "/lustre"
_VOLUME = "lustre"
_ATTEMPTS = 6
_SECONDS_AFTER_FINISHED = 86_400
# Mode of /tmp: everyone may write there, and nobody may remove others' files. A root whose owner or
# mode a user has changed stays as it is.
_SCRIPT = f"""\
set -eu
if [ "$(stat --format=%a:%u {_MOUNT})" = 755:0 ]; then chmod 1777 {_MOUNT}; fi
stat --format='%A %u:%g' {_MOUNT}
"""


def lustre_access_objects(image: str, claims: Sequence[ClaimPlan]) -> list[JsonObject]:
    """Return a Job for each claim, which opens its file system to users other than root.

    FSx makes root the owner of a file system's root directory, and the driver does not change that:
    a job of another user could read but not write, and would fail at its first checkpoint.

    AWS ParallelCluster gives its file systems the same mode:
    https://github.com/aws/aws-parallelcluster/issues/2635

    Args:
        image: Image of the Jobs.
        claims: One claim of each file system.
    """
    return [_access_job(image, claim) for claim in claims]


def _access_job(image: str, claim: ClaimPlan) -> JsonObject:
    name = f"{claim.name}-access"
    container = {
        "name": "access",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _SCRIPT],
        "resources": resources(cpu="10m", memory="16Mi", memory_limit="64Mi"),
        # Without any capability, root still owns root's files.
        "securityContext": unprivileged_container(
            runAsUser=0, readOnlyRootFilesystem=True, seccompProfile={"type": "RuntimeDefault"}
        ),
        "volumeMounts": [{"name": _VOLUME, "mountPath": _MOUNT}],
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "affinity": system_affinity(),
        "tolerations": tolerations(),
        "containers": [container],
        "volumes": [{"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim.name}}],
    }
    return manifest(
        "Job",
        name,
        namespace=claim.namespace,
        spec={
            "backoffLimit": _ATTEMPTS,
            "ttlSecondsAfterFinished": _SECONDS_AFTER_FINISHED,
            "template": {"metadata": {"labels": labels(name)}, "spec": pod},
        },
    )
