"""Write access to a new Lustre file system, whose root directory belongs to root."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import ClaimPlan
from ultrascale_k8s._pods import labels, metadata, resources, system_affinity, tolerations

_MOUNT = "/lustre"
_VOLUME = "lustre"
_ATTEMPTS = 6
_SECONDS_AFTER_FINISHED = 86_400
# As /tmp: everyone may write there, and nobody remove what is another's. A root whose owner or
# mode somebody has changed is left as it is.
_SCRIPT = f"""\
set -eu
if [ "$(stat --format=%a:%u {_MOUNT})" = 755:0 ]; then chmod 1777 {_MOUNT}; fi
stat --format='%A %u:%g' {_MOUNT}
"""


class LustreAccessChart(cdk8s.Chart):
    """Defines a Job for each claim that opens its file system to users other than root.

    FSx makes the root of a file system root's, and the driver changes no owner: a job that runs as
    somebody else could read and not write, and would fail at its first checkpoint.

    AWS ParallelCluster gives its file systems the same mode:
    https://github.com/aws/aws-parallelcluster/issues/2635
    """

    def __init__(
        self, scope: Construct, id: str, *, image: str, claims: Sequence[ClaimPlan]
    ) -> None:
        """Define a Job for each of ``claims``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            image: Image of the Jobs.
            claims: One claim of each file system.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for claim in claims:
            _job(self, image, claim)


def _job(chart: cdk8s.Chart, image: str, claim: ClaimPlan) -> None:
    name = f"{claim.name}-access"
    volume = kube.Volume(
        name=_VOLUME,
        persistent_volume_claim=kube.PersistentVolumeClaimVolumeSource(claim_name=claim.name),
    )
    kube.KubeJob(
        chart,
        f"{claim.namespace}-{name}",
        metadata=metadata(name, namespace=claim.namespace),
        spec=kube.JobSpec(
            backoff_limit=_ATTEMPTS,
            ttl_seconds_after_finished=_SECONDS_AFTER_FINISHED,
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels(name)),
                spec=kube.PodSpec(
                    restart_policy="Never",
                    automount_service_account_token=False,
                    affinity=system_affinity(),
                    tolerations=tolerations(),
                    containers=[_container(image)],
                    volumes=[volume],
                ),
            ),
        ),
    )


def _container(image: str) -> kube.Container:
    return kube.Container(
        name="access",
        image=image,
        image_pull_policy="IfNotPresent",
        command=["sh", "-c", _SCRIPT],
        resources=resources(cpu="10m", memory="16Mi", memory_limit="64Mi"),
        # Root without any of its rights still owns what belongs to it.
        security_context=kube.SecurityContext(
            run_as_user=0,
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            capabilities=kube.Capabilities(drop=["ALL"]),
            seccomp_profile=kube.SeccompProfile(type="RuntimeDefault"),
        ),
        volume_mounts=[kube.VolumeMount(name=_VOLUME, mount_path=_MOUNT)],
    )
