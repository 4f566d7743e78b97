"""Rules of services: their replicas, their queue and the capacity of their nodes."""

from ultrascale.config._errors import Mistakes, near, refuse
from ultrascale.config._parts import Every
from ultrascale.config._rules import rule
from ultrascale.config.job_rules import capacity_of, chosen_pools
from ultrascale.config.pools import Pool
from ultrascale.config.services import Autoscale, ServiceJob, server_of


@rule
def capacity_is_the_pools(job: ServiceJob, pools: Every[Pool]) -> Mistakes:
    if job.capacity is None:
        return
    offered = {
        capacity for pool in chosen_pools(job, pools) or pools for capacity in capacity_of(pool)
    }
    if job.capacity not in offered:
        todo = near(job.capacity, sorted(offered))
        yield refuse("capacity", "no pool of the service has this capacity", todo)


@rule
def service_has_no_deadline(job: ServiceJob) -> Mistakes:
    if job.deadline_hours is not None:
        wrong = "a Deployment has no end, and would start its pods anew"
        todo = "leave it out and cancel the service in time, or use kind: batch"
        yield refuse("deadline_hours", wrong, todo)


@rule
def replicas_are_said_once(job: ServiceJob) -> Mistakes:
    if job.autoscale is not None and "replicas" in job.model_fields_set:
        wrong = "a fixed number of replicas, which autoscale changes"
        yield refuse("replicas", wrong, "keep replicas or autoscale")


@rule
def most_replicas_are_not_fewer(autoscale: Autoscale) -> Mistakes:
    if autoscale.max < autoscale.min:
        yield refuse("max", f"less than min, which is {autoscale.min}", "write at least as much")


@rule
def metric_is_the_servers(job: ServiceJob) -> Mistakes:
    """Refuse a metric that the program does not have: KEDA would read it in vain."""
    said = job.autoscale
    if said is None or said.metric == "cpu" or server_of(job) == "vllm":
        return
    wrong = "a metric of vLLM, which the image is not known to hold"
    todo = "use metric: cpu, or set server: vllm if the image has vLLM's metrics"
    yield refuse("autoscale.metric", wrong, todo, got=said.metric)


@rule
def cpu_is_whole_percent(autoscale: Autoscale) -> Mistakes:
    if autoscale.metric == "cpu" and autoscale.target != int(autoscale.target):
        yield refuse("target", "no whole percent of CPU", "write a whole number, such as 70")
