"""Forecast of reserved hours without a user: against held-out weeks, and by the real function."""

import json
import math
import random
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleet import Object, node
from tests.support.ledger_aws import LedgerAws, reached_aws
from tests.support.ledger_call import call
from tests.support.ledger_life import BLOCK as BLOCK_POOL
from tests.support.ledger_life import EVENT, GPUS, RESERVATION, Life
from tests.support.ledgers import BLOCK, POOL, SIZE, next_state, reservation, utc
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.lambdas.fleet_metrics import handler
from ultrascale.lambdas.fleet_metrics.measures import Measures
from ultrascale.lambdas.fleet_metrics.paid import Owner, Paid
from ultrascale.lambdas.fleet_metrics.pods import measure_queues
from ultrascale.lambdas.fleet_metrics.settings import Settings
from ultrascale.lambdas.forecast import HOUR, HOURS, Hour, forecast, hours_ahead
from ultrascale.lambdas.ledger import DAY, STATE
from ultrascale.lambdas.ledger_state import State

MONDAY = utc("2026-11-02")
BOUGHT, WEEK = 100, 168


def use_of(levels: list[float], taken: float = 0) -> list[Hour]:
    """Return the use of the hours from Monday on."""
    start = MONDAY // HOUR
    return [Hour(start + place, 60, 60 * level, taken) for place, level in enumerate(levels)]


def supply(hours: int, weeks: int = 4) -> dict[int, float]:
    start = MONDAY // HOUR + weeks * WEEK
    return dict.fromkeys(range(start, start + hours), BOUGHT)


def series(rng: random.Random, *, noise: float, drift: float, weeks: int = 5) -> list[float]:
    """Return use with a daily and a weekly pattern; each week is higher or lower as a whole."""
    levels: list[float] = []
    for _ in range(weeks):
        week = rng.gauss(0, drift)
        for hour in range(WEEK):
            wave = 50 + 20 * math.sin(hour % 24 / 24 * math.tau) - 15 * (hour > 120)
            levels.append(min(max(wave + week + rng.gauss(0, noise), 0), BOUGHT))
    return levels


@pytest.mark.parametrize(("noise", "drift"), [(5, 0), (5, 8), (20, 3)])
@pytest.mark.parametrize("hours", [48, WEEK])
def test_the_interval_holds_what_the_next_week_brings_four_times_in_five(
    noise: float, drift: float, hours: int
) -> None:
    rng = random.Random(f"{noise} {drift} {hours}")
    inside, misses, told = 0, list[float](), list[float]()
    for _ in range(300):
        levels = series(rng, noise=noise, drift=drift)
        answer = forecast(use_of(levels[: 4 * WEEK]), supply(hours), 0)
        assert answer is not None
        unused = sum(BOUGHT - level for level in levels[4 * WEEK : 4 * WEEK + hours])
        inside += answer.low <= unused <= answer.high
        misses.append(((answer.unused - unused) / answer.hours) ** 2)
        told.append(answer.error**2)
    assert 0.72 <= inside / 300 <= 0.92
    # The error that is told is the one that comes.
    assert math.sqrt(fmean(told)) == pytest.approx(math.sqrt(fmean(misses)), rel=0.25)


def test_a_steady_use_leaves_the_rest_and_the_queue_takes_of_it_what_its_jobs_run() -> None:
    steady = use_of([60.0] * 4 * WEEK, taken=10)
    alone, queued, full = (forecast(steady, supply(100), wanted) for wanted in (0, 200, 10_000))
    assert alone is not None
    assert queued is not None
    assert full is not None
    assert (alone.hours, alone.unused, alone.low, alone.high) == (10_000, 4_000, 4_000, 4_000)
    # 60 accelerators in use and 10 taken each hour: a job has its own for 6 hours.
    assert (queued.unused, full.unused) == (4_000 - 200 * 6, 0)
    assert (alone.error, alone.spare, queued.spare) == (0, 40, 0)
    # Nodes that some hour needs are not spare.
    peaks = forecast(use_of(series(random.Random(1), noise=0, drift=0)[: 4 * WEEK]), supply(100), 0)
    assert peaks is not None
    assert peaks.spare == pytest.approx(30)


@pytest.mark.parametrize(
    ("weeks", "hours"), [(1, 24), (4, 0)], ids=["one week of use", "no whole hour left"]
)
def test_too_little_use_gives_no_forecast(weeks: int, hours: int) -> None:
    assert forecast(use_of([60.0] * weeks * WEEK), supply(hours, weeks), 0) is None


def test_a_use_that_was_not_measured_is_no_idleness() -> None:
    use = use_of([60.0] * 4 * WEEK)
    answer = forecast([*use[:WEEK], *use[WEEK : 2 * WEEK : 2], *use[2 * WEEK :]], supply(WEEK), 0)
    assert answer is not None
    assert answer.unused == 40 * WEEK


def test_only_reservations_that_go_on_have_hours_left() -> None:
    now = MONDAY + 600
    fees = [
        {"usd": "1", "since": MONDAY + DAY * day, "until": MONDAY + DAY * (day + 1)}
        for day in (0, 2)
    ]
    plan: Object = {"purchase": "training-plan", "state": "Active", "fees": fees}
    rows = [
        reservation(0, now, [MONDAY, MONDAY + 2 * DAY]),
        reservation(0, now, None, pool="odcr"),
        reservation(0, now, None, pool="dated", state="scheduled"),
        reservation(0, now, [MONDAY, MONDAY + DAY], pool="failed", state="Failed"),
        reservation(0, now, [MONDAY, MONDAY + 3 * DAY], pool="plan", **plan),
        reservation(0, now, [MONDAY, MONDAY + 3 * DAY], 0, pool="gap", **plan),
    ]
    bought = {row["pool"]: hours for row in rows if (hours := hours_ahead(row, now))}
    # The last 40 minutes of a block drain; nothing is bought in the second day of the plan.
    hours = {pool: len(hours) for pool, hours in bought.items()}
    assert hours == {POOL: 46, "odcr": 167, "plan": 46}
    assert {*bought[POOL].values()} == {2 * SIZE}
    assert len(hours_ahead(rows[0], now, now + DAY)) == 23


@given(st.lists(st.floats(0, 16), min_size=2, max_size=40), st.integers(1, HOUR))
def test_use_of_an_hour_is_the_mean_of_its_measurements(counts: list[float], every: int) -> None:
    state: State | None = None
    times = [MONDAY + number * every + 1 for number in range(len(counts))]
    for now, count in zip(times, counts, strict=True):
        state = next_state(state, [reservation(0, 0, None)], now, every, {BLOCK: count})
    assert state is not None
    state = State.parse(state.text())
    by_hour: dict[int, list[float]] = {}
    for now, count in zip(times, counts, strict=True):
        by_hour.setdefault(now // HOUR, []).append(count)
    assert {own.hour: own.used / own.samples for own in state.use[POOL]} == pytest.approx(
        {hour: fmean(own) for hour, own in by_hour.items()}
    )
    taken = sum(max(after - before, 0) for before, after in pairwise(counts))
    assert sum(own.taken for own in state.use[POOL]) == pytest.approx(taken)


def test_use_counts_for_the_pool_that_pays_whatever_pool_runs_it() -> None:
    now, later = MONDAY, MONDAY + 30 * DAY
    rows = [
        reservation(0, 0, (now, later)),
        # The next block of the same pool has not begun.
        reservation(0, 0, (later, later + DAY), reservation="cr-next", state="scheduled"),
    ]
    event = json.loads(json.dumps(EVENT))
    (block,) = (own for own in event["ledger"]["reserved"] if own["pool"] == "gpu-block-mng")
    event["ledger"]["reservations"]["gpu-other"] = block["id"]
    settings = Settings.parse(event)
    assert settings.ledger is not None
    paid = Paid(settings.ledger)
    for name in ("gpu-block-mng", "gpu-other"):
        made = node(name, BLOCK_POOL)
        made["metadata"]["labels"]["ultrascale.dev/pool"] = name
        paid.add_node(made, GPUS, [], settings)
        paid.add_pod(name, Owner("running", "training", "", "", name), 6)
    used = paid.use_by_reservation()
    assert used == {block["id"]: 12}
    state = next_state(None, rows, now, HOUR, {BLOCK: used[block["id"]]})
    assert [row.used for row in state.use[POOL]] == [12]


ASKED = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
OWN = {"namespace": "training", "ownerReferences": [{"name": "llm"}]}


@pytest.mark.parametrize(
    "entry",
    [
        {"queueName": "q", "podSets": [{"count": 4, "template": {"spec": ASKED}}]},
        {"queue": "q", "minResources": {"nvidia.com/gpu": "32", "cpu": "9"}},
    ],
    ids=["Kueue", "Volcano"],
)
def test_a_job_in_a_queue_wants_its_accelerators_once_beside_waiting_pods(entry: Object) -> None:
    settings = Settings.parse(EVENT)
    assert settings.ledger is not None
    paid = Paid(settings.ledger)
    paid.add_waiting(("training", "llm"), 8, ["gpu-block-mng"])
    found: list[Object] = [{"metadata": {"name": "job-llm-1", **OWN}, "spec": entry}]
    measure_queues(found, settings, Measures(), paid)
    assert paid.demand("gpu-block-mng") == 32
    assert paid.demand("trn-block-asg") == 0
    ((key, text),) = paid.values()
    assert key == "waiting/training/llm"
    assert json.loads(text)["n"] == 32


# --- The real function ----------------------------------------------------------------------------


@pytest.fixture
def aws() -> Iterator[LedgerAws]:
    with pytest.MonkeyPatch.context() as patch, reached_aws() as aws:
        patch.setattr(handler, "_forecast_days", set[str]())
        yield aws


def metrics(text: str) -> list[float]:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line["UnusedAhead"] for line in lines if "UnusedAhead" in line]


def test_once_a_day_the_function_says_what_will_go_unused(
    aws: LedgerAws, capsys: pytest.CaptureFixture[str]
) -> None:
    midnight, state = utc("2026-12-01"), None
    start, end = midnight - HOURS * HOUR, midnight + 7 * DAY
    rows = [reservation(0, 0, (start, end), pool="gpu-block-mng", reservation=RESERVATION)]
    # One of two nodes works, for half of each day.
    for now in range(start, midnight, HOUR):
        busy = GPUS * (now % DAY < DAY // 2)
        state = next_state(state, rows, now, HOUR, {RESERVATION: busy})
    assert state is not None
    aws.objects[STATE] = state.text()
    life = Life(2, (start, end), ((start, end),), ((0, 0),), ((0, 0),), (), (0, 0))
    aws.reservations = [life.reservation(midnight)]
    server = StubApiServer(token=None)
    told: list[list[float]] = []
    with serve(server):
        for now in (*range(midnight + 60, midnight + 300, 60), midnight + DAY):
            life.show(server, now)
            call(EVENT, server.url, now)
            told.append(metrics(capsys.readouterr().out))
    # Two nodes of eight for a week, half of one in use: three quarters.
    assert told == [[pytest.approx(75, abs=1)], [], [], [], [pytest.approx(75, abs=1)]]
    state = State.parse(aws.objects[STATE])
    assert state.use["gpu-block-mng"][0].hour == (midnight + DAY) // HOUR - HOURS + 1
