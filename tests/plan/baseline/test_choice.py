"""The nodes to buy ahead, against the enumeration of every split of small demands."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultrascale.plan.baseline import choice as choice_module
from ultrascale.plan.baseline.choice import (
    HOUR,
    HOURS_OF_A_WEEK,
    WEEK,
    Lines,
    Replay,
    choose,
    screening,
)
from ultrascale.plan.baseline.traces import Job, Trace

BEGIN = 2_902 * WEEK + 4 * 24 * HOUR  # A Monday
GPUS = 8
_NODE = GPUS * 100


def lines(block: float, on_demand: float = 10.0, spot: float | None = None) -> Lines:
    found: Lines = {
        "capacity-block": (block, 0),
        "on-demand": (0, on_demand),
        "odcr": (on_demand, 0),
    }
    return found if spot is None else {**found, "spot": (0, spot)}


def curve(levels: Sequence[float], weeks: int = 4) -> Replay:
    """Return a curve whose hours repeat ``levels``."""
    hours = [round(levels[hour % len(levels)] * _NODE) for hour in range(weeks * HOURS_OF_A_WEEK)]
    jobs = [
        Job(BEGIN + hour * HOUR, BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR, size)
        for hour, size in enumerate(hours)
    ]
    return Replay(Trace(jobs=jobs, samples=Counter({("", hour): 1 for hour in hours})), GPUS)


def jobs(rows: Sequence[tuple[int, int, int, int]], weeks: int = 4) -> Replay:
    """Return jobs of submission, wait, length in hours and nodes in each of ``weeks`` weeks."""
    runs = [
        Job(at, at + wait * HOUR, at + (wait + length) * HOUR, nodes * _NODE)
        for week in range(weeks)
        for submit, wait, length, nodes in rows
        for at in (BEGIN + week * WEEK + submit * HOUR,)
    ]
    # A job of the first hour and one of the last hold the window open.
    ends = [Job(at, at, at + HOUR, 1) for at in (BEGIN, BEGIN + weeks * WEEK - HOUR)]
    return Replay(Trace(jobs=[*runs, *ends]), GPUS)


_LEVELS = st.lists(st.sampled_from([0, 0.5, 1, 2, 3.25, 4, 6]), min_size=2, max_size=12).filter(any)
_PRICE = st.sampled_from([0.5, 3.0, 5.5, 8.0, 9.9])
_ROWS = st.lists(
    st.tuples(st.integers(0, 140), st.integers(0, 9), st.integers(1, 27), st.integers(1, 5)),
    min_size=1,
    max_size=8,
)
_FEW = settings(max_examples=25, deadline=None)


def _separable_cost(replay: Replay, nodes: int, prices: Lines, burst: float) -> float:
    fixed = nodes * len(replay.wanted) * prices["capacity-block"][0]
    return fixed + sum(max(0, level - nodes) for level in replay.wanted) * burst


@_FEW
@given(levels=_LEVELS, block=_PRICE, spot=st.sampled_from([None, 2.0, 7.0]))
def test_a_curve_that_can_be_split_costs_least_of_every_split(
    levels: Sequence[float], block: float, spot: float | None
) -> None:
    replay, prices = curve(levels), lines(block, spot=spot)
    choice = choose(replay, prices)

    costs = [
        _separable_cost(replay, nodes, prices, min(10.0, spot or 10.0)) / replay.weeks
        for nodes in range(9)
    ]
    assert choice.costs[choice.nodes] == pytest.approx(min(costs))
    assert choice.nodes == choice.screening["capacity-block"]
    assert all(usd == pytest.approx(costs[nodes]) for nodes, usd in choice.costs.items())


@_FEW
@given(levels=_LEVELS, block=_PRICE, spot=st.sampled_from([2.0, 7.0, 11.0]))
def test_the_screening_curve_costs_least_of_every_split_over_all_options(
    levels: Sequence[float], block: float, spot: float
) -> None:
    replay, prices = curve(levels[:4] or [1]), lines(block, spot=spot)
    hours, peak = replay.wanted, 6
    used = [sum(min(1, max(0, level - node)) for level in hours) for node in range(peak)]

    def cost(split: Sequence[str]) -> float:
        """Return the cost if node n of the load-duration curve is bought as ``split[n]``."""
        by_name = {str(name): line for name, line in prices.items()}
        both = [(by_name[name], share) for name, share in zip(split, used, strict=True)]
        return sum(fixed * len(hours) + usd * share for (fixed, usd), share in both)

    counts = screening(hours, prices)
    found = [str(name) for name, nodes in counts.items() for _ in range(nodes)]
    # Nodes at the bottom of the curve are used most: what is fixed comes first.
    found.sort(key=lambda name: -{str(key): line[0] for key, line in prices.items()}[name])
    found += ["on-demand"] * (peak - len(found))
    least = min(cost(split) for split in product(map(str, prices), repeat=peak))
    assert cost(found) == pytest.approx(least)
    assert counts["odcr"] == 0


def _gang_cost(replay: Replay, nodes: int, prices: Lines) -> float:
    """Return the cost by a replay that steps through the hours: jobs keep their order."""
    inside, burst = list[tuple[int, int]](), 0
    for start, end, size in sorted(replay.jobs, key=lambda job: job[0]):
        inside = [(until, held) for until, held in inside if until > start]
        if sum(held for _, held in inside) + size <= nodes * _NODE:
            inside.append((end, size))
        else:
            burst += (end - start) * size
    fixed = nodes * len(replay.wanted) * prices["capacity-block"][0]
    return (fixed + burst / HOUR / _NODE * prices["on-demand"][1]) / replay.weeks


@_FEW
@given(rows=_ROWS, block=_PRICE)
def test_whole_gangs_cost_least_of_every_number_of_nodes(
    rows: Sequence[tuple[int, int, int, int]], block: float
) -> None:
    replay, prices = jobs(rows), lines(block)
    choice = choose(replay, prices)

    costs = [_gang_cost(replay, nodes, prices) for nodes in range(sum(row[3] for row in rows) + 3)]
    assert choice.costs[choice.nodes] == pytest.approx(min(costs), abs=0.01)
    assert all(usd == pytest.approx(costs[nodes]) for nodes, usd in choice.costs.items())
    assert choice.low <= choice.nodes <= choice.high
    assert choice.on_demand_usd == pytest.approx(costs[0])
    dearer = choice.nodes * HOURS_OF_A_WEEK * (10 - block)
    assert choice.odcr_usd == pytest.approx(costs[choice.nodes] + dearer)
    # A limit of the burst pool lets every job run.
    assert all(most >= replay.gang for most in choice.burst_nodes.values())


@_FEW
@given(rows=_ROWS, prices=st.tuples(_PRICE, _PRICE), factor=st.sampled_from([0.25, 3.0]))
def test_cheaper_blocks_never_buy_fewer_and_scales_change_nothing(
    rows: Sequence[tuple[int, int, int, int]], prices: tuple[float, float], factor: float
) -> None:
    replay = jobs(rows)
    cheap, dear = (choose(replay, lines(price)) for price in sorted(prices))
    assert cheap.nodes >= dear.nodes
    scaled = choose(replay, lines(min(prices) * factor, 10 * factor))
    assert (scaled.nodes, scaled.low, scaled.high) == (cheap.nodes, cheap.low, cheap.high)
    assert scaled.costs[scaled.nodes] == pytest.approx(cheap.costs[cheap.nodes] * factor)
    # Twice the weeks of the same demand, at the same price by the hour.
    assert choose(jobs(rows, weeks=8), lines(min(prices))).nodes == cheap.nodes
    assert choose(replay, lines(10.0)).nodes == 0


def test_a_full_fleet_shows_more_wanted_than_served() -> None:
    # Four jobs of two nodes are submitted together each day; the fleet runs one at a time.
    rows = [(day * 24, place * 5, 5, 2) for day in range(7) for place in range(4)]
    replay = jobs(rows)
    prices = lines(2.0)
    assert max(replay.served) == pytest.approx(2, abs=0.01)
    assert max(replay.wanted) == pytest.approx(8, abs=0.01)
    assert screening(replay.wanted, prices)["capacity-block"] > 2
    assert choose(replay, prices).nodes == 8
    assert sum(replay.wanted) == pytest.approx(sum(replay.served))


def test_gangs_go_whole_to_one_pool_where_a_curve_would_split_them() -> None:
    # Two jobs of three nodes at once: with four nodes one of them bursts whole.
    replay = jobs([(day * 24, 0, 20, 3) for day in range(7) for _ in range(2)])
    (burst,) = replay.burst(4, lines(5.0)).values()
    assert max(burst) == 3
    assert choose(replay, lines(5.0)).nodes == 6


def test_large_gangs_do_not_burst_on_spot() -> None:
    rows = [(10, 0, 20, 9), (50, 0, 20, 8)]
    assert choose(jobs(rows), lines(9.9, spot=3.0)).burst_nodes == {"on-demand": 9, "spot": 9}
    assert choose(jobs(rows), lines(9.9, spot=30.0)).burst_nodes == {"on-demand": 9}


def test_the_burst_shows_at_its_hours_and_the_test_prices_later_weeks() -> None:
    busy = [(day * 24 + 9, 0, 3, 4) for day in range(5)]
    steady = [(day * 24, 0, 24, 2) for day in range(7)]
    choice = choose(jobs([*steady, *busy], weeks=6), lines(5.0))
    assert choice.nodes == 2
    hours = [hour for hour, nodes in enumerate(choice.burst_hours) if nodes > 0.5]
    assert hours == [day * 24 + hour for day in range(5) for hour in (9, 10, 11)]
    assert (choice.fitted_weeks, choice.fitted_nodes, choice.hindsight_nodes) == (4, 2, 2)
    assert choice.fitted_usd == pytest.approx(choice.costs[2], rel=0.01)
    assert choice.utilisation == pytest.approx(1, abs=0.01)


def test_equal_traces_give_equal_answers_and_uneven_weeks_a_wide_interval() -> None:
    runs = [
        Job(at, at, at + 6 * 24 * HOUR, nodes * _NODE)
        for week, nodes in enumerate((1, 9, 2, 8, 1, 9, 2, 8))
        for at in (BEGIN + week * WEEK,)
    ]
    tail = [Job(BEGIN + 8 * WEEK - HOUR, BEGIN + 8 * WEEK - HOUR, BEGIN + 8 * WEEK, 1)]
    one, two = (choose(Replay(Trace(jobs=[*runs, *tail]), GPUS), lines(4.0)) for _ in range(2))
    assert one == two
    assert one.high - one.low >= 3


def test_a_long_trace_is_replayed_in_steps_to_the_same_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(day * 24 + hour, 0, hour, 2) for day in range(7) for hour in range(1, 22)]
    whole = choose(jobs(rows), lines(5.0))
    monkeypatch.setattr(choice_module, "_REPLAYS", (2, 2))
    stepped = choose(jobs(rows), lines(5.0))
    assert 2 < whole.nodes < 40
    assert stepped.costs == whole.costs


def test_a_week_without_a_submission_ends_the_trace() -> None:
    replay = jobs([(0, 0, 24, 1)])
    tail = Job(BEGIN, BEGIN, BEGIN + 9 * WEEK, _NODE)
    runs = [
        Job(BEGIN + start, BEGIN + start, BEGIN + end, size) for start, end, size in replay.jobs
    ]
    assert Replay(Trace(jobs=[*runs, tail]), GPUS).weeks == 4
