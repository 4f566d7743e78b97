"""The table of levels: their checks, of the core and of parts, and what ends their runs."""

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from ultrascale.accept import access, account, jobs, nodes, objects
from ultrascale.accept.model import NEEDS, Check, Level, Run
from ultrascale.core.table import all_parts
from ultrascale.plan.model import ClusterPlan

# Checks of the core. Parts with `has_acceptance` add theirs.
_CORE: Sequence[Callable[[ClusterPlan], Iterable[Check]]] = (
    objects.checks,
    access.checks,
    account.checks,
    nodes.checks,
    jobs.checks,
)

# Each deletes what a run has made, however it ended, and returns what is left of it.
CLEANUPS: Sequence[Callable[[Run], Sequence[str]]] = (jobs.clean,)


def with_needs(levels: Collection[Level]) -> Sequence[Level]:
    """Return levels and the levels that they need, in their running order."""
    wanted = set(levels)
    for level in [*NEEDS][::-1]:
        if level in wanted:
            wanted.update(NEEDS[level])
    return [level for level in NEEDS if level in wanted]


def checks(
    plan: ClusterPlan, levels: Collection[Level], pool: str = "", *, grows: bool = False
) -> Sequence[Check]:
    """Return the checks of ``levels``, in their running order.

    Args:
        plan: The cluster.
        levels: The levels.
        pool: The only pool to check; empty for all pools.
        grows: Whether pools of size 0 are grown by a node: without that nodes cost nothing.
    """
    every = [check for of_core in _CORE for check in of_core(plan)]
    for part in all_parts():
        if part.has_acceptance:
            every += part.module("acceptance").checks(plan)
    order = [*NEEDS]
    chosen = (
        check if grows or check.level != "nodes" else replace(check, costs=())
        for check in every
        if check.level in levels and (not pool or check.pool in ("", pool))
    )
    return sorted(chosen, key=lambda check: order.index(check.level))
