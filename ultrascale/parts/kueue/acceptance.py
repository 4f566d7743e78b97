"""Level `queue` of an acceptance: Kueue lets a gang beyond the quota wait, and evicts and resumes.

Sources:
    https://kueue.sigs.k8s.io/docs/concepts/workload/#active
"""

from collections.abc import Iterator
from functools import partial

from ultrascale.accept import cleanup, storage, trial
from ultrascale.accept.model import Check, Run
from ultrascale.accept.trial import Trial
from ultrascale.cluster_api.objects import Object, name, owned_by
from ultrascale.errors import ClusterError
from ultrascale.jobs.status import workloads_of
from ultrascale.parts.kueue.queues import WORKLOAD
from ultrascale.plan.model import ClusterPlan, ClusterQueuePlan, PoolPlan, QueueingPlan

_STEPS = ("gang", "eviction", "resumes", "deletes")
_GANG_MINUTES = 3.0
_ADMISSION_SECONDS = 30.0


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each queue, on the first of its pools."""
    queueing = plan.part(QueueingPlan)
    pools = {pool.pool: pool for pool in storage.pools_of_jobs(plan)}
    for queue in () if queueing is None else queueing.queues:
        pool = next((pools[name] for name in queue.pools if name in pools), None)
        if pool is not None:
            yield Check(
                level="queue",
                name="queue",
                subject=queue.name,
                title="a gang beyond the quota waits, and an evicted job resumes at its step",
                pool=pool.pool,
                run=storage.in_steps("queue", queue.name, _STEPS, partial(_queue, queue, pool)),
                # Kueue counts the time of a job across its eviction.
                costs=(*storage.trial_costs(pool, 1, jobs=1),),
                leaves=storage.LEAVES,
            )


def _queue(queue: ClusterQueuePlan, pool: PoolPlan, run: Run) -> Iterator[storage.Step]:
    storage.refuse_busy(run)
    job = trial.training_job(run, pool, 1, queue=queue.name)
    beyond = _most_nodes(run.plan, queue, pool) + 1
    gang = Trial(run, trial.scaled(job, beyond), _GANG_MINUTES)
    cleanup.note_data(run, pool)
    gang.send()
    gang.wait(lambda status, _: bool(status.pods or status.state.reason))
    # A job that fits is admitted within seconds.
    run.clock.sleep(_ADMISSION_SECONDS)
    status = gang.status()
    gang.stop()
    if status.pods:
        raise ClusterError(f"{len(status.pods)} pods of {beyond} were made, beyond the quota")
    yield "pass", f"{beyond} nodes at once wait without a pod: {status.state.reason}"
    single = Trial(run, job)
    single.send()
    log = single.wait(lambda _, said: trial.last_step(said) >= storage.SOME_STEPS)
    step = trial.last_step(log)
    _set_active(run, single, active=False)
    single.wait(lambda status, _: not status.pods)
    yield "pass", f"Kueue evicted it after step {step}, and its pods are gone"
    _set_active(run, single, active=True)
    log = single.wait(lambda _, said: trial.start_in(said) is not None)
    run.kept.logs[f"queue-{queue.name}.log"] = log
    yield storage.resumption(log, step)
    single.stop()
    if left := cleanup.delete_data(run, pool.name):
        raise ClusterError(*left)
    yield "pass", f"accept/{run.id} is gone from its volumes"


def _most_nodes(plan: ClusterPlan, queue: ClusterQueuePlan, pool: PoolPlan) -> int:
    """Return the most nodes of a pool that a queue may ever have, with those of others."""
    queueing = plan.part(QueueingPlan)
    assert queueing is not None
    flavors = (flavor for flavor in queueing.flavors if flavor.pool == pool.pool)
    quotas = ((flavor, queue.quota_of(flavor)) for flavor in flavors)
    return sum(quota.most // flavor.per_node for flavor, quota in quotas if quota is not None)


def _set_active(run: Run, job: Trial, *, active: bool) -> None:
    """Let Kueue evict our own job, or admit it again: nobody else's is touched."""
    namespace = job.job.namespace
    own = [made for _, made in workloads_of(run.cluster, namespace, job.job.name)]
    entries: list[Object] = [
        entry
        for entry in run.cluster.items(WORKLOAD.path(namespace))
        if any(owned_by(entry, made) for made in own)
    ]
    if not entries:
        raise ClusterError(f"Kueue has no Workload of job {job.job.name}")
    for entry in entries:
        operation: Object = {"op": "add", "path": "/spec/active", "value": active}
        run.cluster.patch(WORKLOAD.path(namespace, name(entry)), [operation])
