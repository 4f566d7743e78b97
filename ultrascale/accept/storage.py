"""Level `storage`: a small job on each pool, ended by SIGTERM, resumed, and ended by itself."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ultrascale.accept import cleanup, trial
from ultrascale.accept.model import Check, Cost, Run
from ultrascale.accept.trial import Trial
from ultrascale.cluster_api.server import FORBIDDEN
from ultrascale.core.engine import engine_of
from ultrascale.errors import ClusterError, ConfigError, QuestionError, RefusedError
from ultrascale.findings import Finding, State
from ultrascale.jobs.queues import read_queues
from ultrascale.plan import names
from ultrascale.plan.jobs.nodes import whole_share
from ultrascale.plan.model import ClusterPlan, PoolPlan

LEAVES = "jobs with a deadline, nodes until their provisioner takes them, accept/RUN on volumes"
"""What a stop of a run with jobs leaves behind."""

_STEPS = ("meets", "volumes", "sigterm", "resumes", "ends", "deletes")
# Enough for two checkpoints of the job.
SOME_STEPS = 12
"""Steps of the job after which it has saved."""

Step = tuple[State, str]
Steps = Callable[[Run], Iterator[Step]]


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each pool with nodes for jobs."""
    for pool in pools_of_jobs(plan):
        nodes = min(2, pool.max_nodes)
        yield Check(
            level="storage",
            name="job",
            subject=pool.pool,
            title="a small job meets, writes each volume, is ended by SIGTERM, resumes and ends",
            pool=pool.pool,
            run=in_steps("job", pool.pool, _STEPS, partial(_job, pool, nodes)),
            costs=(*trial_costs(pool, nodes, jobs=2),),
            leaves=LEAVES,
        )


def pools_of_jobs(plan: ClusterPlan) -> Sequence[PoolPlan]:
    """Return the pools with nodes for jobs, the first shard of each."""
    pools = {pool.pool: pool for pool in reversed(plan.all_pools)}
    return [pool for pool in pools.values() if pool.role != names.SYSTEM_ROLE and pool.max_nodes][
        ::-1
    ]


def trial_costs(pool: PoolPlan, nodes: int, *, jobs: int) -> Iterator[Cost]:
    """Yield the cost of ``jobs`` jobs of some nodes, one after the other, and of their data's end.

    Kueue ends a job a minute after its deadline. The data are deleted by the check; what ends the
    run tries again.
    """
    yield Cost(pool=pool.pool, nodes=nodes, minutes=jobs * (trial.TRIAL_MINUTES + 1))
    yield Cost(pool=pool.pool, nodes=1, minutes=2 * trial.DELETION_MINUTES)


def in_steps(
    check: str, subject: str, steps: Sequence[str], act: Steps
) -> Callable[[Run], Iterator[Finding]]:
    """Return a check of several steps: one that fails leaves those behind it not run.

    Args:
        check: Its name.
        subject: Its subject.
        steps: Names of its steps.
        act: Yields the state and the evidence of each. A `QuestionError` or `ConfigError` says why
            it cannot run, and so does a missing right; any other `ClusterError` why it failed.
    """

    def run(run: Run) -> Iterator[Finding]:
        made, left = act(run), [*steps]

        def finding(state: State, evidence: str) -> Finding:
            name = f"{check}-{left.pop(0)}"
            return Finding(check=name, subject=subject, state=state, evidence=evidence)

        try:
            for state, evidence in made:
                yield finding(state, evidence)
        except (ConfigError, QuestionError) as error:
            yield finding("not run", str(error))
        except ClusterError as error:
            denied = isinstance(error, RefusedError) and error.status == FORBIDDEN
            yield finding("not run" if denied else "failed", str(error))
        while left:
            yield finding("not run", "a step before it did not pass")

    return run


def _job(pool: PoolPlan, nodes: int, run: Run) -> Iterator[Step]:
    refuse_busy(run)
    try:
        first = Trial(run, trial.training_job(run, pool, nodes))
    except ConfigError:
        # Without an engine, a job of several nodes would pay for the first while it waits.
        nodes = 1
        first = Trial(run, trial.training_job(run, pool, nodes))
    second = Trial(run, trial.training_job(run, pool, nodes, "--steps-this-run=5"))
    cleanup.note_data(run, pool)
    first.send()
    log = first.wait(lambda _, said: trial.start_in(said) is not None)
    yield _meeting(pool, nodes, log)
    yield _volumes(run, pool, first, nodes)
    log = first.wait(lambda _, said: trial.last_step(said) >= SOME_STEPS)
    run.kept.logs[f"storage-{pool.name}-first.log"] = log
    step = trial.last_step(log)
    first.stop()
    yield "pass", f"it was told to stop after step {step}, and its pods are gone"
    second.send()
    log = second.wait(lambda _, said: trial.start_in(said) is not None)
    yield resumption(log, step)
    log = second.wait(lambda status, _: status.state.result == "succeeded")
    run.kept.logs[f"storage-{pool.name}-second.log"] = log
    yield "pass", f"it ended by itself at step {trial.last_step(log)}"
    second.stop()
    if left := cleanup.delete_data(run, pool.name):
        raise ClusterError(*left)
    yield "pass", f"accept/{run.id} is gone from its volumes"


def refuse_busy(run: Run) -> None:
    """Refuse to send a job into queues with quotas that have others' jobs.

    It could take nodes that they have borrowed.

    Raises:
        QuestionError: A queue is busy.
        ClusterError: The server refuses, or cannot be reached.
    """
    if not engine_of(trial.file_of(run.file).cluster.scheduling).quotas:
        return
    queues = read_queues(run.cluster, names.TRAINING_NAMESPACE).queues
    if busy := [queue for queue in queues if queue.running or queue.pending]:
        shown = ", ".join(
            f"{queue.name} ({queue.running} running, {queue.pending} waiting)" for queue in busy
        )
        raise QuestionError([f"queues have jobs of others, which it must not preempt: {shown}"])


def _meeting(pool: PoolPlan, nodes: int, log: str) -> Step:
    """Return whether all processes of all nodes met."""
    start = trial.start_in(log)
    _, workers = start or (0, 0)
    each = {whole_share(pool, name).processes for name in pool.instance_types}
    wanted = {nodes * count for count in each}
    words = f"{workers} workers on {nodes} nodes met, {' or '.join(map(str, wanted))} were expected"
    return ("pass" if workers in wanted else "differs"), words


def _volumes(run: Run, pool: PoolPlan, job: Trial, nodes: int) -> Step:
    """Return whether each node wrote and read each volume."""
    wanted = {*trial.folders(run, pool)}
    seen = [{*trial.volumes_in(job.log(index))} for index in range(nodes)]
    if missing := [(index, wanted - own) for index, own in enumerate(seen) if wanted - own]:
        words = "; ".join(f"pod {index}: {', '.join(sorted(own))}" for index, own in missing)
        raise ClusterError(f"not written and read: {words}")
    return "pass", f"each of {nodes} pods wrote and read {', '.join(sorted(wanted))}"


def resumption(log: str, step: int) -> Step:
    """Return whether a job went on where it was stopped.

    Args:
        log: Its log after that.
        step: Last step that it told before.
    """
    at, _ = trial.start_in(log) or (0, 0)
    if at == 0:
        raise ClusterError(f"it began anew, after step {step}")
    words = f"it was stopped after step {step}, and went on at step {at}"
    return ("pass" if at >= step else "differs"), words
