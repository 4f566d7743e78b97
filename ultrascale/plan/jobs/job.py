"""Plan of a job on the cluster that it runs in."""

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.documents import JsonObject
from ultrascale.lambdas import idle_jobs
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs import nodes, queueing, service, train
from ultrascale.plan.jobs.controllers import INDEXED, JobController, controller_of
from ultrascale.plan.jobs.deadline import with_deadline
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.pods import plan_pod
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import JobPlan, PoolPlan
from ultrascale.plan.model.jobs import ArrayPlan, RolePlan

# --- Plan of a batch job: one pod, or an array of them, that runs to its end ----------------------


_RETRIES, _RETRIES_ON_SPOT = 3, 100
_CONTAINER = "main"


def plan_batch(request: JobRequest, job: config.BatchJob) -> JobPlan:
    """Plan a batch job: one pod, or an array of them, that runs to its end."""
    pools = request.nodes
    share = nodes.node_share(job, pools)
    controller = controller_of(request)
    division = controller.divide(name=request.name, role=_CONTAINER, pods=1, min_available=1)
    pod = plan_pod(request, pools, share)
    if controller is INDEXED and request.queue is not None:
        pod = request.engine.in_queue(pod, request.queue, _CONTAINER)
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=controller.name,
        roles=(
            RolePlan(
                name=_CONTAINER,
                pods=request.admitted_pods,
                container=_CONTAINER,
                pod=pod,
            ),
        ),
        parts=division.parts if division is not None else (),
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        array=_array(request, job),
        restarts=_retries(job, controller, pools),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        notes=tuple(notes_of(request, pools, share, controller)),
    )


def _array(request: JobRequest, job: config.BatchJob) -> ArrayPlan | None:
    if job.array is None:
        return None
    return ArrayPlan(
        size=job.array.size,
        parallelism=request.admitted_pods,
        max_failed=job.array.max_failed,
    )


def _retries(job: config.BatchJob, controller: JobController, pools: Sequence[PoolPlan]) -> int:
    if job.retries is not None:
        return job.retries
    spot = any(pool.capacity_type == "spot" for pool in pools)
    return _RETRIES_ON_SPOT if spot and controller.counts_lost_nodes else _RETRIES


# --- Plan of a job on the cluster that it runs in -------------------------------------------------


_ROLLS = (
    "Its pods say by labels who pays for them, as observability.ledger asks: a service that runs "
    "without them, or with others, replaces its pods once."
)


_OWNER_LABELS = (names.TEAM_LABEL, names.OWN_QUEUE_LABEL, names.COST_CENTER_LABEL)


def plan_job(request: JobRequest) -> JobPlan:
    """Plan a job without mistakes, on a tier where `tiers.needs_one`.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    launches = any(pool.sized_by in capacity.SIZED_BY_PODS for pool in request.nodes)
    match request.job:
        case config.ServiceJob() as job:
            plan = service.plan_service(request, job)
        case config.BatchJob() as job:
            plan = plan_batch(request, job)
        case config.TrainingJob() as job if not job.has_own_controller:
            plan = train.plan_train(request, job)
        case _:
            plans = (part.plan_job(request) for part in all_parts())
            plan = next(plan for plan in plans if plan is not None)
    for part in all_parts():
        plan = part.with_checks(request, plan)
    plan = replace(plan, launches=launches, patch=_patch(request.job))
    if any(part.labels_owners(request.cluster) for part in all_parts()):
        plan = _with_owner(plan, request)
    job = request.job
    if isinstance(job, config.TrainingJob | config.BatchJob) and job.idle == "allow":
        plan = replace(plan, owner={**plan.owner, idle_jobs.LABEL: job.idle})
    return with_deadline(plan, job, controller_of(request))


def _with_owner(plan: JobPlan, request: JobRequest) -> JobPlan:
    """Return a job whose pods say who pays: AWS's split cost data takes their labels as tags."""
    queue = plan.queue if plan.local_queue is None else plan.local_queue.name
    centers = {queue.name: queue.cost_center for queue in request.cluster.scheduling.queues}
    team, center = request.namespace, centers.get(queue or "")
    if request.team is not None:
        team, center = request.team.name, request.team.cost_center
    labels = zip(_OWNER_LABELS, (team, queue, center), strict=True)
    notes = (_ROLLS,) if isinstance(request.job, config.ServiceJob) else ()
    owner = {key: value for key, value in labels if value is not None}
    return replace(plan, owner=owner, notes=(*plan.notes, *notes))


def _patch(job: config.Job) -> Mapping[str, JsonObject]:
    # What YAML reads is JSON.
    return cast("Mapping[str, JsonObject]", job.patch)
