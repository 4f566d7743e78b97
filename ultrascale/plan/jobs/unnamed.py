"""Jobs that do not say, or say wrongly, on which of a cluster's nodes they run."""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.plan.jobs.mistakes import MISSING
from ultrascale.plan.jobs.nodes import may_have, values_of
from ultrascale.plan.model import PoolPlan

Mistakes = Iterator[config.Mistake]


def nodes_are_named(
    job: config.AnyJob, pools: Sequence[PoolPlan], every: Sequence[PoolPlan]
) -> Mistakes:
    """Yield that none of ``every`` pool, or more than one, fits what the job says of its nodes."""
    found = sorted({pool.pool for pool in pools})
    if not found:
        unknown = [*_labels_of_no_pool(job, every)]
        none = config.refuse("pool", "no pool has what the job asks for", "name one", got="")
        yield from unknown or [none]
    named = job.pool is not None or bool(job.node_selector) or bool(job.prefer)
    anywhere = isinstance(job, config.ServiceJob) and job.capacity is not None
    if len(found) > 1 and not named and not anywhere:
        wrong = f"{MISSING}, and several pools have what the job asks for"
        todo = f"name one of {', '.join(found)}"
        yield config.refuse("pool", wrong, todo, got="", code="missing")
    kinds = sorted({pool.accelerator or "none" for pool in pools})
    if len(kinds) > 1 and (named or anywhere):
        wrong = f"nodes with unlike accelerators: {', '.join(kinds)}"
        if job.prefer:
            todo = "keep tiers of one kind, or say in resources what each pod asks for"
            yield config.refuse("prefer", wrong, todo, got="")
        else:
            yield config.refuse("pool", wrong, "name one pool", got="")


def _labels_of_no_pool(job: config.AnyJob, pools: Sequence[PoolPlan]) -> Mistakes:
    stated = frozenset(key for pool in pools for key in pool.labels)
    for key, value in job.node_selector.items():
        if not any(may_have(pool, key, value, stated) for pool in pools):
            known = sorted({each for pool in pools for each in values_of(pool, key)})
            yield config.Mistake(
                ("node_selector", key), "a label of no pool's nodes", config.near(value, known)
            )
