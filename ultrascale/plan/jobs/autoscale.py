"""Replicas that follow the load: KEDA's metrics, and the pace of changes.

Sources:
    https://github.com/kedacore/keda/blob/v2.20.2/pkg/scalers/metrics_api_scaler.go
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
"""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import vllm
from ultrascale.core.table import all_parts
from ultrascale.plan import capacity
from ultrascale.plan.jobs import nodes
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, rule
from ultrascale.plan.jobs.vllm import options_of
from ultrascale.plan.model import AutoscalePlan, PodsPlan, TriggerPlan

# Nothing waits once there are replicas enough: this use of the others' KV cache, or of the places
# in their batches, keeps the last replica, or it would go and come back.
_HELD_CACHE, _HELD_PLACES = 0.8, 0.7
# Longest stabilization window of an autoscaler of Kubernetes.
# Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/
_LONGEST_WINDOW_SECONDS = 3600
# A replica that took long to start is not given up after a short lull.
_SHORTEST_LULL = 300


@rule
def replicas_can_follow_the_load(
    job: config.ServiceJob, share: NodeShare, pools: Nodes
) -> Iterator[config.Mistake]:
    """Yield why replicas cannot follow the load as the service asks."""
    if job.autoscale is None:
        return
    if job.autoscale.metric != "cpu":
        yield from _lost_metrics(job, job.autoscale)
    fixed = not any(pool.sized_by in capacity.SIZED_BY_PODS for pool in pools)
    if share.accelerators:
        held = nodes.most_pods(pools, share)
        if job.autoscale.max * job.nodes > held:
            replicas = held // job.nodes
            there = "the nodes of its pools hold" if fixed else "its pools hold at most"
            wrong = f"more than the {replicas} replicas that {there}"
            todo = f"write at most {replicas}" if replicas else "leave autoscale out"
            todo += ", or give its pools more nodes"
            yield config.refuse("autoscale.max", wrong, todo, got=str(job.autoscale.max))


def _lost_metrics(job: config.ServiceJob, said: config.Autoscale) -> Iterator[config.Mistake]:
    """Yield options of vLLM by which its metrics are missing or have another meaning."""
    options = options_of(job)
    todo = "use metric: cpu, or write replicas"
    if options.disable_log_stats:
        wrong = "a metric that vLLM does not have with --disable-log-stats"
        yield config.refuse("autoscale.metric", wrong, "leave out that option", got=said.metric)
    if options.data_parallel_size > 1:
        wrong = (
            f"KEDA reads this metric of only one of the {options.data_parallel_size} engines of a "
            "replica"
        )
        instead = f"leave out --data-parallel-size, for more replicas; or {todo}"
        yield config.refuse("autoscale.metric", wrong, instead, got=said.metric)
    most = options.max_num_seqs
    if said.metric == "running" and most is not None and said.target > most:
        wrong = f"more than the {most} that --max-num-seqs lets a replica run"
        yield config.refuse("autoscale.target", wrong, "write less", got=f"{said.target:g}")


def plan_autoscale(
    request: JobRequest, job: config.ServiceJob, *, startup_seconds: int
) -> AutoscalePlan | None:
    """Return the scaling of a service by its load; None for a fixed number of replicas.

    Args:
        request: The service in its cluster.
        job: Its template.
        startup_seconds: Time that a replica may take to start.
    """
    said = job.autoscale
    if said is None:
        return None
    lull = min(max(startup_seconds, _SHORTEST_LULL), _LONGEST_WINDOW_SECONDS)
    return AutoscalePlan(
        metric=said.metric,
        target=said.target,
        least=said.min,
        most=said.max,
        triggers=tuple(_triggers(job, said)),
        lull_seconds=lull,
        readers=tuple(_readers()) if request.policies_of_jobs and said.metric != "cpu" else (),
    )


def _readers() -> Iterator[PodsPlan]:
    return (part.reader for part in all_parts() if part.reader is not None)


def _triggers(job: config.ServiceJob, said: config.Autoscale) -> Iterator[TriggerPlan]:
    if said.metric == "cpu":
        yield TriggerPlan(series=None, target=said.target)
    elif said.metric == "running":
        yield TriggerPlan(series=vllm.RUNNING, target=said.target)
    else:
        yield TriggerPlan(series=vllm.WAITING, target=said.target)
        yield TriggerPlan(series=vllm.KV_CACHE_USAGE, target=_HELD_CACHE)
        most = options_of(job).max_num_seqs
        if most is not None:
            yield TriggerPlan(series=vllm.RUNNING, target=round(most * _HELD_PLACES, 3))
