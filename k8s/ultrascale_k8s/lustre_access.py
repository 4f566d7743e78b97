"""Write access to a new Lustre file system, whose root directory belongs to root."""

from collections.abc import Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClaimPlan
from ultrascale_k8s._pods import resources, system_affinity, tolerations, unprivileged_container
from ultrascale_k8s.objects import labels, manifest

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
