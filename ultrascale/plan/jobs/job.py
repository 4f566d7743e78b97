"""Plan of a job on the cluster that it runs in."""

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.documents import JsonObject
from ultrascale.plan import capacity
from ultrascale.plan.jobs import batch, service, train
from ultrascale.plan.jobs.controllers import controller_of
from ultrascale.plan.jobs.deadline import with_deadline
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import JobPlan


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
            plan = batch.plan_batch(request, job)
        case config.TrainingJob() as job:
            plan = train.plan_train(request, job)
        case _:
            plans = (part.plan_job(request) for part in all_parts())
            plan = next(plan for plan in plans if plan is not None)
    for part in all_parts():
        plan = part.with_checks(request, plan)
    plan = replace(plan, launches=launches, patch=_patch(request.job))
    return with_deadline(plan, request.job, controller_of(request))


def _patch(job: config.Job) -> Mapping[str, JsonObject]:
    # What YAML reads is JSON.
    return cast("Mapping[str, JsonObject]", job.patch)
