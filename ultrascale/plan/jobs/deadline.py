"""The wall-clock limit of a job, by each controller's own means.

Kubernetes' own Job, a JobSet's Jobs and both PyTorchJobs have `activeDeadlineSeconds`. Kueue counts
the time that a job is admitted for, through restarts and evictions, which those do not. A Volcano
Job has no such field, and its webhook refuses a policy for pods that run: each of its pods ends its
program by itself.

Sources:
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/webhooks/admission/jobs/validate/util.go
"""

import math

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan.jobs import command
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.model import JobPlan, RolePlan

_HOUR = 3600
# A job without restarts fails by its controller's deadline, which gives the reason; Kueue suspends
# it.
_QUEUE_WAITS_SECONDS = 60


def with_deadline(plan: JobPlan, job: config.Job, controller: JobController) -> JobPlan:
    """Return ``plan`` with the deadline of ``job``; unchanged where it has none."""
    if job.deadline_hours is None:
        return plan
    seconds = math.ceil(job.deadline_hours * _HOUR)
    queue = plan.local_queue
    if queue is not None:
        queue = replace(queue, most_seconds=seconds + _QUEUE_WAITS_SECONDS)
    roles, notes = plan.roles, plan.notes
    if (note := controller.deadline_note(job.deadline_hours)) is not None:
        roles = tuple(_with_time_limit(role, seconds) for role in roles)
        notes = (*notes, note)
    return replace(plan, deadline_seconds=seconds, local_queue=queue, roles=roles, notes=notes)


def _with_time_limit(role: RolePlan, seconds: int) -> RolePlan:
    timed = command.timed(role.pod.command, seconds, grace_seconds=role.pod.grace_period_seconds)
    return replace(role, pod=replace(role.pod, command=timed))
