"""State of a service's autoscaler, and the reasons why its replicas ignore the load.

Replicas that ignore it are paid for while nobody asks, or too few while many do.

Sources:
    https://github.com/kedacore/keda/blob/v2.20.2/apis/keda/v1alpha1/condition_types.go
    https://github.com/kedacore/keda/blob/v2.20.2/pkg/fallback/fallback.go
"""

from collections.abc import Iterator

from ultrascale.cluster_api.kinds import SCALED_OBJECT
from ultrascale.cluster_api.objects import Object, condition, name
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import number, objects, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.status import JobStatus
from ultrascale.plan import names


class ScalingReport(Frozen):
    """Replicas of a service that follow the load."""

    least: int  # Fewest replicas
    most: int  # Most replicas
    problems: tuple[str, ...]  # Reasons why they ignore the load, each with a remedy


def scaling_report_of(cluster: Cluster, job: JobStatus) -> ScalingReport | None:
    """Return the state of a service's autoscaler; None where its replicas are fixed.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    if not job.is_service:
        return None
    selector = {"labelSelector": f"{names.JOB_LABEL}={job.name}"}
    scaled = next(iter(visible_objects(cluster, SCALED_OBJECT, job.namespace, selector)), None)
    if scaled is None:
        return None
    return ScalingReport(
        least=number(scaled, "spec", "minReplicaCount"),
        most=number(scaled, "spec", "maxReplicaCount"),
        problems=tuple(_problems(scaled, job.namespace)),
    )


def _problems(scaled: Object, namespace: str) -> Iterator[str]:
    look = f"`kubectl describe scaledobject {name(scaled)} -n {namespace}` has its events"
    if condition(scaled, "Paused"):
        yield "KEDA is paused, and the replicas stay; take away annotations of autoscaling.keda.sh"
        return
    if not (states := [*objects(scaled, "status", "conditions")]):
        yield "KEDA has not looked at it yet; its pods are in namespace keda"
        return
    for state in states:
        if text(state, "type") == "Ready" and text(state, "status") == "False":
            yield f"KEDA does not scale it: {text(state, 'message')}; {look}"
    if condition(scaled, "Fallback"):
        yield (
            "KEDA cannot read the metrics of its pods, so the replicas stay as they are and are "
            f"paid for; {look}"
        )
