"""Controllers that make the pods of jobs, and the kinds by which a cluster runs jobs."""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import training_operator
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.jobs import Controller
from ultrascale.plan.namespaces import Resource


def controller_of(request: JobRequest) -> Controller:
    """Return the controller that makes the pods of a job."""
    if isinstance(request.job, config.ServiceJob):
        # It imports all that plans services, which the rights of people do not need.
        from ultrascale.plan.jobs import service

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


def controllers_of_jobs(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Iterator[Resource]:
    """Yield the kinds beyond Kubernetes' own that a job of the cluster may be sent as.

    Args:
        cluster: The cluster.
        pools: Plans of its pools.
    """
    if cluster.scheduling.engine == "volcano":
        yield "batch.volcano.sh", "jobs"
    if cluster.scheduling.engine == "kueue":
        yield "jobset.x-k8s.io", "jobsets"
    if any(pool.is_hyperpod for pool in pools):
        yield "kubeflow.org", "pytorchjobs"
    if cluster.hyperpod.training_operator:
        yield training_operator.API_VERSION.partition("/")[0], "hyperpodpytorchjobs"


def has_kueue(cluster: config.Cluster) -> bool:
    """Return whether jobs wait in queues of Kueue, be it that of task governance."""
    return cluster.scheduling.engine == "kueue" or cluster.hyperpod.task_governance is not None
