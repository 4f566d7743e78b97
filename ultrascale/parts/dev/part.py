"""The part of people's pods, and the kind of job that they are."""

from typing import Annotated, Literal

from pydantic import Field

from ultrascale import config
from ultrascale.catalog import integer_bounds
from ultrascale.core.part import Part
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import JobPlan, PlannedPart

_LEAST_PORT = 1024


class DevJob(config.Job):
    """A person's pod for a notebook or a shell, with the volumes and image of jobs."""

    is_personal = True

    kind: Literal["dev"] = "dev"
    """A person's pod."""

    idle_hours: Annotated[float, Field(gt=0, le=integer_bounds.DEADLINE_HOURS)] = 4
    """Hours without use after which the pod ends; it tells so before, in log and terminals."""

    port: Annotated[int, Field(ge=1, le=65_535)] = 8888
    """TCP port of the notebook, or of `command`, on the pod's own loopback address."""

    queue: str | None = None
    """One of `scheduling.queues`.

    Default: none where no queue of Kueue has its pool; else as of a batch job.
    """


@config.rule
def dev_port_needs_no_root(job: DevJob) -> config.Mistakes:
    if job.port < _LEAST_PORT and "NET_BIND_SERVICE" not in job.security.capabilities:
        wrong = "a port that only root may open, and a person's pod does not run as root"
        yield config.refuse("port", wrong, f"use {_LEAST_PORT} or more")


@config.rule
def dev_ends_by_its_deadline(job: DevJob) -> config.Mistakes:
    if job.deadline_hours is not None and job.deadline_hours <= job.idle_hours:
        wrong = f"no less than deadline_hours, {job.deadline_hours:g}, which ends the pod first"
        yield config.refuse("idle_hours", wrong, "write less, or leave deadline_hours out")


class _Part(Part[config.Section, PlannedPart]):
    name = "dev"
    job_kind = DevJob

    def plan_job(self, request: JobRequest) -> JobPlan | None:
        from ultrascale.parts.dev.plan import plan_dev

        return plan_dev(request, request.job) if isinstance(request.job, DevJob) else None


PART = _Part()
