"""Time of checkpoints, and the interval at which the jobs of a cluster lose least."""

from collections.abc import Iterator, Sequence

from ultrascale.catalog import failures
from ultrascale.catalog.checkpoint_bandwidth import HELD_SECONDS_PER_GB, HELD_SOURCE
from ultrascale.plan.jobs.checkpoints import LONGEST_SECONDS
from ultrascale.plan.model import CheckpointNeeds, Figure
from ultrascale.plan.model.jobs import CheckpointPlan, SavesPlan

_AT = "checkpoints"
_DALY = "https://doi.org/10.1016/j.future.2004.11.016"
_SAVED = "https://docs.pytorch.org/docs/2.13/generated/torch.optim.AdamW.html"
_PLACE = "a file system or bucket of the cluster file"


def plan_checkpoint_needs(saves: Sequence[SavesPlan]) -> tuple[CheckpointNeeds, ...]:
    """Return the figures of each job and pool.

    Args:
        saves: Checkpoints of the jobs and pools.
    """
    return tuple(
        CheckpointNeeds(
            subject=save.subject,
            model=save.model,
            place=save.place,
            figures={figure.id.rpartition(".")[2]: figure for figure in _figures(save)},
        )
        for save in saves
    )


def _figures(saves: SavesPlan) -> Iterator[Figure]:
    plan, nodes = saves.checkpoints, saves.nodes
    between = saves.node_hours / nodes * 3600
    at = f"{_AT}.{saves.subject.replace(' ', '.')}"
    unknown = f"no place whose rate is known: it takes {_PLACE}"
    yield Figure(
        id=f"{at}.nodes", value=nodes, unit="nodes", formula=f"{nodes:,} nodes, {saves.subject}"
    )
    yield Figure(
        id=f"{at}.gigabytes",
        value=saves.size / 1e9,
        unit="GB",
        formula=f"{saves.model}: parameters and Adam's two moments of those that learn, in FP32",
        sources=(_SAVED,),
    )
    yield Figure(
        id=f"{at}.gb_per_second",
        value=None if plan is None else plan.bandwidth.gb_per_second,
        unit="GB/s",
        formula=unknown if plan is None else plan.bandwidth.formula,
        sources=() if plan is None else plan.bandwidth.sources,
    )
    yield Figure(
        id=f"{at}.save_seconds",
        value=None if plan is None else plan.save_seconds,
        unit="seconds",
        formula=unknown
        if plan is None
        else f"{saves.size / 1e9:,.0f} GB / {plan.bandwidth.gb_per_second:,.1f} GB/s, at best",
    )
    yield Figure(
        id=f"{at}.held_seconds",
        value=None if plan is None else plan.held_seconds,
        unit="seconds",
        formula=unknown if plan is None else _held(plan),
        sources=() if plan is None else (HELD_SOURCE,),
    )
    yield Figure(
        id=f"{at}.seconds_between_failures",
        value=between,
        unit="seconds",
        formula=f"{saves.node_hours:,.0f} node-hours between two failures / {nodes:,} nodes",
        sources=(failures.PUBLISHED.source,),
    )
    yield from _interval(at, plan, unknown, between)


def _interval(
    at: str, plan: CheckpointPlan | None, unknown: str, between: float
) -> Iterator[Figure]:
    first = "" if plan is None else f"sqrt(2 x {plan.held_seconds:,.1f} s x {between:,.0f} s)"
    longest = f"at most {LONGEST_SECONDS / 60:.0f} min"
    yield Figure(
        id=f"{at}.interval_seconds",
        value=None if plan is None else plan.interval_seconds,
        unit="seconds",
        formula=unknown
        if plan is None
        else f"{first} and Daly's next terms, {longest}, and no less than the time to write one",
        sources=(_DALY,),
    )
    yield Figure(
        id=f"{at}.lost_percent",
        value=None if plan is None else 100 * plan.lost_share,
        unit="percent",
        formula=unknown
        if plan is None
        else "time that training waits / (interval + that time), and of each failure half an "
        "interval and the time to write one",
    )


def _held(plan: CheckpointPlan) -> str:
    if plan.copied is None:
        return "the time to write one: training waits for all of it"
    return (
        f"{plan.copied / 1e9:,.1f} GB that a process copies x {HELD_SECONDS_PER_GB:g} s, measured "
        "on a CPU; no more than the time to write one"
    )
