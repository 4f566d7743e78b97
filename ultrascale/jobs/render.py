"""A planned job as the objects that Kubernetes gets."""

from ultrascale.documents import Json
from ultrascale.jobs.indexed import indexed_objects
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.pytorch import pytorch_objects
from ultrascale.jobs.service import service_objects
from ultrascale.jobs.volcano import volcano_objects
from ultrascale.plan.model import JobPlan


def render(plan: JobPlan) -> JobManifests:
    """Return the objects of ``plan``, in the order in which they are sent."""
    claims = dict.fromkeys(mount.claim for mount in plan.pod.mounts)
    return JobManifests(
        name=plan.name,
        namespace=plan.namespace,
        kind=plan.kind,
        objects=tuple(_objects(plan)),
        pods=plan.pods,
        container=plan.container,
        claims=tuple(claims),
        queue=plan.queue,
        local_queue=plan.local_queue.name if plan.local_queue is not None else None,
        priority_class=plan.pod.priority_class,
        service_account=plan.pod.service_account,
        notes=plan.notes,
    )


def _objects(plan: JobPlan) -> list[dict[str, Json]]:
    if plan.serving is not None:
        return [*service_objects(plan, plan.serving)]
    if plan.controller == "volcano":
        return [*volcano_objects(plan)]
    if plan.controller == "pytorch":
        return [*pytorch_objects(plan)]
    return [*indexed_objects(plan)]
