"""Nodes to buy ahead: by the load-duration curve, then by replaying the trace with whole jobs."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.purchasing import COUPLED_SPOT_NODES
from ultrascale.frozen import Frozen
from ultrascale.plan.baseline.traces import HUNDREDTHS, Trace

HOUR = 3600
HOURS_OF_A_WEEK = 168
WEEK = HOURS_OF_A_WEEK * HOUR

_RESAMPLES = 1000
_TAIL = 50  # Resamples beyond each end of an interval of 90 %
_EVENTS = 30_000_000  # Events of all replays together: about ten seconds
_REPLAYS = (8, 500)  # Fewest and most of them

# Start and end in seconds since the begin of the window, and hundredths of accelerators.
Interval = tuple[int, int, int]
# USD for a node by purchase option: for a usable hour, used or not; for an hour of use.
Lines = Mapping[PurchaseOption, tuple[float, float]]
# USD of each week by number of nodes bought ahead: these nodes and the burst.
Weekly = Mapping[int, Sequence[float]]


class Choice(Frozen):
    """Nodes to buy ahead, with what they cost; money is USD a week."""

    screening: Mapping[PurchaseOption, int]  # Nodes for which each option costs least
    nodes: int  # Nodes of the least cost
    low: int  # Lower end of the interval of 90 %
    high: int  # Its upper end
    utilisation: float  # Part of the time in which these nodes are used
    costs: Mapping[int, float]  # With one node less, with the choice, with one more
    on_demand_usd: float  # On-Demand alone
    odcr_usd: float  # The same nodes as ODCR, with the burst
    burst_nodes: Mapping[PurchaseOption, int]  # Most nodes beyond those bought ahead
    burst_hours: Sequence[float]  # Mean burst nodes by hour of the week, from Monday 00:00 UTC
    fitted_weeks: int  # Test: earlier weeks, whose choice is priced in those after them
    fitted_nodes: int  # Their choice
    fitted_usd: float  # Its cost in the later weeks
    hindsight_nodes: int  # Nodes that cost least in the later weeks
    hindsight_usd: float  # Their cost


def by_week(hours: Sequence[float]) -> Sequence[Sequence[float]]:
    """Return the hours of each week."""
    return [hours[at : at + HOURS_OF_A_WEEK] for at in range(0, len(hours), HOURS_OF_A_WEEK)]


def screening(hours: Sequence[float], lines: Lines) -> Mapping[PurchaseOption, int]:
    """Return the number of nodes for which each option costs least.

    Node n of the load-duration curve is in use for a share of the hours, and costs ``fixed +
    used * share``. Of options that cost the same, the one without a commitment counts.
    """
    order = sorted(lines, key=lambda option: lines[option])
    counts = dict.fromkeys(lines, 0)
    peak = math.ceil(max(hours))
    whole, part = [0] * (peak + 1), [0.0] * (peak + 1)
    for nodes in hours:
        whole[int(nodes)] += 1
        part[int(nodes)] += nodes - int(nodes)
    above = 0
    for node in range(peak, 0, -1):
        above += whole[node]
        share = (above + part[node - 1]) / len(hours)
        counts[min(order, key=lambda name: lines[name][0] + lines[name][1] * share)] += 1
    return counts


class Replay:
    """The whole weeks of a trace, replayed with any number of nodes bought ahead.

    Jobs of a node and more get whole nodes; smaller ones share nodes without a gap.
    """

    def __init__(self, trace: Trace, accelerators: int) -> None:
        self._per_node = accelerators * HUNDREDTHS
        self.begin = min(job.submit for job in trace.jobs) // HOUR * HOUR  # Seconds since 1970
        last = max(job.end or job.start for job in trace.jobs)
        until = trace.until or min(last, max(job.submit for job in trace.jobs) + WEEK)
        self.weeks = (until - self.begin) // WEEK
        wanted, served = list[Interval](), list[Interval]()
        for submit, start, end, size in trace.jobs:
            length = (last if end is None else end) - start
            whole = size > self._per_node and not trace.samples
            units = -(-size // self._per_node) * self._per_node if whole else size
            for first, parts in ((submit - self.begin, wanted), (start - self.begin, served)):
                ends = min(first + length, self.weeks * WEEK)
                if first < ends:
                    parts.append((first, ends, units))
        self.wanted, self.served = self._by_hour(wanted), self._by_hour(served)  # Nodes by hour
        self.jobs = () if trace.samples else wanted  # From the submission on
        self._sizes = [size for *_, size in self.jobs]
        self.gang = -(-max(self._sizes, default=1) // self._per_node)  # Nodes of the largest job
        # Ends of all jobs, then their starts: at one time a node that becomes free is used.
        times = [end for _, end, _ in self.jobs] + [start for start, _, _ in self.jobs]
        order = sorted(range(len(times)), key=times.__getitem__)
        self._events = [event - len(self.jobs) for event in order]  # Jobs; ends are negative

    def _by_hour(self, intervals: Iterable[Interval]) -> Sequence[float]:
        """Return the mean nodes of each hour of the window."""
        hours = self.weeks * HOURS_OF_A_WEEK
        parts, steps = [0] * (hours + 1), [0] * (hours + 2)
        for start, end, size in intervals:
            first, last = start // HOUR, end // HOUR
            # The hours from the first on count whole; what is too much at both ends is taken off.
            parts[first] -= size * (start % HOUR)
            parts[last] += size * (end % HOUR)
            steps[first] += size
            steps[last] -= size
        unit = HOUR * self._per_node
        levels = accumulate(steps[:hours])
        return [(part + level * HOUR) / unit for part, level in zip(parts, levels, strict=False)]

    def burst(self, nodes: int, lines: Lines) -> Mapping[PurchaseOption, Sequence[float]]:
        """Return the nodes of each hour beyond ``nodes`` nodes; a job without room bursts whole."""
        spot = "spot" in lines and lines["spot"] < lines["on-demand"]
        if not self.jobs:
            over = [max(0.0, level - nodes) for level in self.wanted]
            return {"spot" if spot else "on-demand": over}
        large = COUPLED_SPOT_NODES * self._per_node if spot else 0
        bursts: dict[PurchaseOption, list[Interval]] = {"on-demand": [], "spot": []}
        room, inside, sizes = nodes * self._per_node, bytearray(len(self.jobs)), self._sizes
        for job in self._events:
            if job < 0:
                if inside[job]:
                    room += sizes[job]
            elif sizes[job] <= room:
                room -= sizes[job]
                inside[job] = 1
            else:
                bursts["on-demand" if sizes[job] > large else "spot"].append(self.jobs[job])
        return {option: self._by_hour(parts) for option, parts in bursts.items() if parts}

    def weekly(self, nodes: int, lines: Lines) -> Sequence[float]:
        """Return the cost of each week."""
        costs = [nodes * HOURS_OF_A_WEEK * lines["capacity-block"][0]] * self.weeks
        for option, hours in self.burst(nodes, lines).items():
            for week, used in enumerate(by_week(hours)):
                costs[week] += sum(used) * lines[option][1]
        return costs


def choose(replay: Replay, lines: Lines) -> Choice:
    """Return the nodes to buy ahead for two weeks or more, at the prices of ``lines``."""
    weeks, wanted = replay.weeks, sum(replay.wanted)
    # Whole weeks are drawn, as hours follow each other; equal traces give equal answers.
    drawing = random.Random(f"{weeks} {len(replay.jobs)} {wanted!r}")
    draws = [drawing.choices(range(weeks), k=weeks) for _ in range(_RESAMPLES)]
    weekly = _replays(replay, lines)
    nodes = least(weekly, range(weeks))
    answers = sorted(least(weekly, draw) for draw in draws)
    bursts = replay.burst(nodes, lines)
    hours = [sum(used) for used in zip([0.0] * len(replay.wanted), *bursts.values(), strict=True)]
    mean = {tried: sum(costs) / weeks for tried, costs in weekly.items()}
    dearer = lines["odcr"][0] - lines["capacity-block"][0]
    # 1970 began on a Thursday.
    monday = (replay.begin // HOUR + 3 * 24) % HOURS_OF_A_WEEK
    fitted = weeks * 2 // 3
    early, late = least(weekly, range(fitted)), least(weekly, range(fitted, weeks))
    return Choice(
        screening=screening(replay.wanted, lines),
        nodes=nodes,
        low=answers[_TAIL],
        high=answers[-_TAIL - 1],
        utilisation=(wanted - sum(hours)) / len(replay.wanted) / max(nodes, 1),
        costs={tried: mean[tried] for tried in range(nodes - 1, nodes + 2) if tried in mean},
        on_demand_usd=wanted * lines["on-demand"][1] / weeks,
        odcr_usd=mean[nodes] + dearer * HOURS_OF_A_WEEK * nodes,
        # A limit below the largest job would keep it out.
        burst_nodes={
            option: max(math.ceil(max(used)), replay.gang)
            for option, used in bursts.items()
            if any(used)
        },
        burst_hours=[
            sum(hours[(hour - monday) % HOURS_OF_A_WEEK :: HOURS_OF_A_WEEK]) / weeks
            for hour in range(HOURS_OF_A_WEEK)
        ],
        fitted_weeks=fitted,
        fitted_nodes=early,
        fitted_usd=sum(weekly[early][fitted:]) / (weeks - fitted),
        hindsight_nodes=late,
        hindsight_usd=sum(weekly[late][fitted:]) / (weeks - fitted),
    )


def least(weekly: Weekly, weeks: Sequence[int]) -> int:
    """Return the number of nodes that costs least in ``weeks``; of equal ones the smallest."""
    costs = {nodes: round(sum(map(usd.__getitem__, weeks)), 2) for nodes, usd in weekly.items()}
    return min(costs, key=lambda nodes: (costs[nodes], nodes))


def _replays(replay: Replay, lines: Lines) -> Weekly:
    """Return the costs by enough numbers of nodes to know the least.

    Steps between the ends that the curves of single weeks ask for, then halves of the gaps beside
    the least.
    """
    fixed: Lines = {option: line for option, line in lines.items() if option != "spot"}
    curves = [screening(week, some) for week in by_week(replay.wanted) for some in (lines, fixed)]
    bounds = [curve["capacity-block"] for curve in curves]
    peak = math.ceil(max(replay.wanted)) + replay.gang
    low, high = max(0, min(bounds) - replay.gang), min(peak, max(bounds) + replay.gang)
    events = 2 * len(replay.jobs) or len(replay.wanted)
    step = -(-(high - low + 1) // min(max(_REPLAYS[0], _EVENTS // events), _REPLAYS[1]))
    weekly = {
        nodes: replay.weekly(nodes, lines) for nodes in {0, peak, *range(low, high + 1, step)}
    }
    while True:
        tried, best = sorted(weekly), least(weekly, range(replay.weeks))
        at = tried.index(best)
        middles = {(best + other) // 2 for other in tried[max(0, at - 1) : at + 2]} - {*tried}
        if not middles:
            return weekly
        weekly |= {nodes: replay.weekly(nodes, lines) for nodes in middles}
