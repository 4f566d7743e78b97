"""Controllers that make the pods of jobs."""

from ultrascale import config
from ultrascale.plan.jobs import service
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model.jobs import Controller


def controller_of(request: JobRequest) -> Controller:
    """Return the controller that makes the pods of a job."""
    if isinstance(request.job, config.ServiceJob):
        return service.controller_of(request.job)
    if isinstance(request.job, config.DevJob):
        return "indexed"
    if isinstance(request.job, config.BatchJob) and request.job.array is not None:
        # A Job of Volcano makes all of its pods at once, and knows no limit of failed ones.
        return "indexed"
    if request.gang:
        # Two schedulers on the same nodes would give out the same GPUs twice.
        return "volcano"
    training = isinstance(request.job, config.TrainingJob)
    if request.engine == "kueue":
        together = request.pods > 1 or request.role is not None
        return "jobset" if training and together else "indexed"
    if not request.is_hyperpods:
        return "indexed"
    return "hyperpod" if request.operated else "pytorch"


def least_pods(job: config.AnyJob) -> int:
    """Return the fewest pods with which a job starts."""
    if not isinstance(job, config.TrainingJob):
        return 1
    return job.nodes if job.min_nodes is None else job.min_nodes
