"""Nodes to buy ahead for the workload of a trace: offline, and the same for the same trace."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import fmean, linear_regression

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.prices import PriceList
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan.advice import Question, pools_for
from ultrascale.plan.advice.reading import COUPLED
from ultrascale.plan.advice.times import sold_days
from ultrascale.plan.baseline.choice import Choice, Lines, Replay, by_week, choose
from ultrascale.plan.baseline.traces import Trace
from ultrascale.plan.capacity import block_window

FEWEST_WEEKS = 4
"""Whole weeks below which a trace carries no answer."""


class Baseline(Frozen):
    """The answer to a trace."""

    no_answer: str  # Reason that the trace carries none; empty where it does
    begins: datetime  # Begin of its first week
    weeks: int  # Its whole weeks
    jobs: int  # Runs of its jobs; 0 for a curve
    prices: Sequence[str]  # Prices in use
    notes: Sequence[str]  # What the trace does not say
    # Mean, busiest hour, and growth by week of the nodes that were wanted and served
    curves: Mapping[str, tuple[float, float, float]] = {}
    choice: Choice | None = None  # The nodes; None where the trace is too short
    advise: str = ""  # Question to the adviser
    fragment: str = ""  # `pools:` of reserved and burst, in YAML
    cluster_file: str = ""  # The smallest cluster file around them


def baseline(
    trace: Trace, question: Question, prices: PriceList, block_usd: float | None, spot_loss: float
) -> Baseline:
    """Return the nodes to buy ahead for the workload of ``trace``.

    A block costs ``block_usd`` for a paid node-hour, or the amount in ``prices``. Interruptions
    cost ``spot_loss`` of the work on Spot, 0 to 1.

    Raises:
        QuestionError: A price is missing, no block has the length, or no node holds the jobs.
    """
    (name,), region = question.instance_types, question.region
    lines, words = _lines(question, prices, block_usd, spot_loss)
    spec = catalog.lookup(name)
    if spec.accelerator is None:
        raise QuestionError([f"--type: no accelerators, got {name!r}; name a type that has some"])
    replay = Replay(trace, spec.accelerator.count)
    coupled = replay.gang > 1 and question.workload in COUPLED
    if coupled and spec.knows("efa_cards") and not spec.efa_cards:
        needs = f"the largest job needs {replay.gang} nodes of {name}, which has no EFA"
        raise QuestionError([f"--type: {needs}; name a type with EFA, or with more accelerators"])
    notes = [f"{note}: {count:,}" for note, count in trace.notes.items()]
    if trace.samples or all(job.submit == job.start for job in trace.jobs):
        notes.append("submissions are not in the trace: work that could not run is in no curve")
    answer = Baseline(
        no_answer=f"the trace has {replay.weeks} whole weeks; add others, {FEWEST_WEEKS} at least",
        begins=datetime.fromtimestamp(replay.begin, UTC),
        weeks=replay.weeks,
        jobs=0 if trace.samples else len(trace.jobs),
        prices=words,
        notes=notes,
    )
    if replay.weeks < FEWEST_WEEKS:
        return answer
    choice = choose(replay, lines)
    shares: dict[PurchaseOption, int] = {"capacity-block": choice.nodes, **choice.burst_nodes}
    asked = replace(question, coupled=coupled)
    refused, fragment, file = pools_for(asked, [share for share in shares.items() if share[1]])
    zones = "".join(f" --zone {zone}" for zone in question.zones)
    return replace(
        answer,
        no_answer="" if choice.low else f"the interval is 0 to {choice.high} nodes; buy none",
        choice=choice,
        curves={"wanted": _figures(replay.wanted), "served": _figures(replay.served)},
        notes=[*notes, *(f"no pools: {reason.code}: {reason.text}" for reason in refused)],
        advise=f"ultrascale advise --workload {question.workload} --type {name} --nodes "
        f"{choice.nodes} --region {region}{zones} --days {question.days:g} --utilisation "
        f"{choice.utilisation * 100:.0f}",
        fragment=fragment,
        cluster_file=file,
    )


def render(answer: Baseline) -> str:
    """Return the answer as text, without its pools."""
    templates = Environment(
        loader=PackageLoader(__name__, "."), trim_blocks=True, undefined=StrictUndefined
    )
    return templates.get_template("answer.txt.jinja").render(answer=answer)


def _figures(hours: Sequence[float]) -> tuple[float, float, float]:
    means = [fmean(week) for week in by_week(hours)]
    return fmean(means), max(hours), linear_regression(range(len(means)), means).slope


def _lines(
    question: Question, prices: PriceList, block_usd: float | None, spot_loss: float
) -> tuple[Lines, Sequence[str]]:
    """Return the lines of the screening curve, and the prices behind them in words."""
    (name,), region = question.instance_types, question.region
    block = None if block_usd else prices.find(region, "ec2-capacity-block", name)
    on_demand = prices.find(region, "ec2", name)
    spot = None if question.tolerance == "none" else prices.find(region, "ec2-spot", name)
    days = sold_days("capacity-block", question.days or 0)
    usd = block.price if block else block_usd
    if usd is None or on_demand is None or days is None:
        asked = {
            "--block-price: missing; say the price that `ultrascale capacity` shows": usd,
            f"--prices: no On-Demand price of {name}; see `ultrascale prices {region}`": on_demand,
            f"--days: no block is so long, got {question.days}; write 1 to 182": days,
        }
        raise QuestionError([text for text, value in asked.items() if value is None])
    ends = question.starts + timedelta(days=days)
    usable = block_window((name,), question.starts, ends).usable_until - question.starts
    lines: dict[PurchaseOption, tuple[float, float]] = {
        "capacity-block": (usd * (timedelta(days=days) / usable), 0),
        "on-demand": (0, on_demand.price),
        "odcr": (on_demand.price, 0),
    }
    if spot is not None:
        lines["spot"] = (0, spot.price * (1 + spot_loss))
    words = [f"block: {block_usd:g} of --block-price"] if block_usd else []
    known = [price for price in (block, on_demand, spot) if price]
    words += [f"{item.service}: {item.price:g} of {item.valid_on}, {item.source}" for item in known]
    return lines, words
