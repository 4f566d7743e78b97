"""Level `fabric` of an acceptance: the network between two free nodes reaches the pool's floor."""

from collections.abc import Iterator
from functools import partial

from ultrascale.accept import jobs
from ultrascale.accept.model import Check, Cost, Run
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.parts.fabric import gate
from ultrascale.parts.fabric.plan import MOST_SECONDS
from ultrascale.plan.model import ClusterPlan, PoolPlan

_NODES = 2


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each pool with accelerators and room for two nodes."""
    title = "the network between two nodes reaches the floor of their type"
    for pool in jobs.pools_of_jobs(plan):
        if pool.accelerator is not None and pool.max_nodes >= _NODES:
            held = (Cost(pool=pool.pool, nodes=_NODES, minutes=MOST_SECONDS / 60),)
            name, act = pool.pool, partial(_measure, pool)
            yield jobs.check("fabric", "fabric", name, title, ("floor",), act, pool=name, held=held)


def _measure(pool: PoolPlan, run: Run) -> Iterator[jobs.Step]:
    free, there = gate.free_nodes(run.cluster, pool.pool)
    if free < _NODES:
        raise QuestionError([f"{free} of {there} nodes are free, and it measures {_NODES}"])
    prepared = gate.prepare_check(
        run.file, pool.pool, checks=["fabric"], nodes=_NODES, queue=None, cluster=run.cluster
    )
    marked = jobs.labelled(prepared, run.id)
    (verdict,) = gate.check_pool(run.cluster, marked, run.say, cordons=False)
    lines = "; ".join(gate.lines_of(verdict, cordons=False))
    if not verdict.passed:
        raise ClusterError(lines)
    yield ("differs" if verdict.paths else "pass"), lines
