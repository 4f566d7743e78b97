"""Level `queue` of an acceptance: a gang beyond the quota waits, and an evicted job resumes.

Source: https://kueue.sigs.k8s.io/docs/concepts/workload/#active
"""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from ultrascale.accept import jobs
from ultrascale.accept.model import Check, Run
from ultrascale.cluster_api.objects import name, owned_by
from ultrascale.documents import mapping
from ultrascale.errors import ClusterError
from ultrascale.jobs.status import workloads_of
from ultrascale.parts.kueue.queues import WORKLOAD
from ultrascale.plan.model import ClusterPlan, ClusterQueuePlan, PoolPlan, QueueingPlan

_GANG_MINUTES = 3.0
# A job that fits is admitted within seconds.
_ADMISSION_SECONDS = 30.0


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each queue, on the first of its pools."""
    queueing = plan.part(QueueingPlan)
    pools = {pool.pool: pool for pool in jobs.pools_of_jobs(plan)}
    title = "a gang beyond the quota waits, and an evicted job resumes at its step"
    steps = ("gang", "eviction")
    for queue in () if queueing is None else queueing.queues:
        if (pool := next((pools[own] for own in queue.pools if own in pools), None)) is not None:
            # Kueue counts the time of a job across its eviction.
            held, act = jobs.costs(plan, pool, 1, jobs=1), partial(_queue, queue, pool)
            own = queue.name
            yield jobs.check("queue", "queue", own, title, steps, act, pool=pool.pool, held=held)


def _queue(queue: ClusterQueuePlan, pool: PoolPlan, run: Run) -> Iterator[jobs.Step]:
    jobs.refuse_busy(run)
    job = jobs.training_job(run, pool, 1, queue=queue.name)
    beyond = _most_nodes(run.plan, queue, pool) + 1
    counts = dict.fromkeys(("parallelism", "completions"), beyond)
    # Of a single node it is a Job of Kubernetes.
    grown = tuple({**own, "spec": {**mapping(own, "spec"), **counts}} for own in job.objects)
    jobs.note_data(run, pool.name)
    gang = jobs.Trial(run, replace(job, objects=grown), _GANG_MINUTES)
    gang.send()
    gang.wait(lambda status, _: bool(status.pods or status.state.reason))
    run.clock.sleep(_ADMISSION_SECONDS)
    status = gang.status()
    gang.stop()
    if status is None or status.pods:
        raise ClusterError(f"a gang of {beyond} nodes, beyond the quota, does not wait")
    yield "pass", f"{beyond} nodes at once wait without a pod: {status.state.reason}"
    single = jobs.Trial(run, job)
    single.send()
    log = single.wait(lambda _, said: jobs.last_step(said) >= jobs.SOME_STEPS)
    _set_active(run, single, active=False)
    single.wait(lambda status, _: not status.pods)
    _set_active(run, single, active=True)
    said = single.wait(lambda _, said: jobs.last_step(said) > 0)
    run.kept.logs[f"queue-{queue.name}.log"] = said
    single.stop()
    jobs.delete_data(run, pool.name)
    yield jobs.resumption(said, jobs.last_step(log))


def _most_nodes(plan: ClusterPlan, queue: ClusterQueuePlan, pool: PoolPlan) -> int:
    """Return the most nodes of a pool that a queue may ever have, with those of others."""
    flavors = getattr(plan.part(QueueingPlan), "flavors", ())
    quotas = ((own, queue.quota_of(own)) for own in flavors if own.pool == pool.pool)
    return sum(quota.most // own.per_node for own, quota in quotas if quota is not None)


def _set_active(run: Run, job: jobs.Trial, *, active: bool) -> None:
    """Let Kueue evict our own job, or admit it again: nobody else's is touched."""
    namespace = job.job.namespace
    own = [made for _, made in workloads_of(run.cluster, namespace, job.job.name)]
    for entry in [*run.cluster.items(WORKLOAD.path(namespace))]:
        if any(owned_by(entry, made) for made in own):
            change = {"op": "add", "path": "/spec/active", "value": active}
            run.cluster.patch(WORKLOAD.path(namespace, name(entry)), [change])
