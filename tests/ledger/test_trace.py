"""Jobs of a ledger as the trace of `ultrascale baseline`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.command_line import NOW, Ultrascale
from tests.support.ledgers import FILE, TYPE, busy, ledger, node, price_list, utc, write
from ultrascale.lambdas.ledger import DAY, Row
from ultrascale.ledger.trace import trace_of
from ultrascale.plan.baseline.choice import Replay
from ultrascale.plan.baseline.traces import Job, Trace

MONDAY = utc("2026-10-05")
PERIOD = MONDAY, MONDAY + 7 * DAY
OTHER: Any = {"type": "trn2.48xlarge", "pool": "trn", "reservation": "cr-0trn"}


def wait_row(job: str, low: int, high: int, n: int = 16) -> Any:
    row = {"v": 1, "kind": "waiting", "from": low, "to": high, "n": n, "pools": ["p"]}
    return {**row, "namespace": "ns-a", "job": job}


def trace_from(rows: list[Row]) -> Trace:
    with TemporaryDirectory() as folder:
        return trace_of(ledger(write(Path(folder), rows), price_list()), *PERIOD, TYPE)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3 * DAY),
            st.integers(0, DAY),
            st.integers(60, 2 * DAY),
            st.integers(1, 3),
        ),
        max_size=8,
    )
)
def test_jobs_have_the_waits_the_times_and_the_gangs_that_they_had(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    rows: list[Row] = []
    truth: list[Job] = []
    for number, (asked, wait, length, nodes) in enumerate(drawn):
        submit = MONDAY + asked
        start, end = submit + wait, submit + wait + length
        truth.append(Job(submit, start, end, 800 * nodes))
        if wait:
            rows.append(wait_row(f"job-{number}", submit, start))
        rows += [
            node(start, end, 10 * number + place, [busy("a", job=f"job-{number}")])
            for place in range(nodes)
        ]
    assert sorted(trace_from(rows).jobs) == sorted(truth)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2 * DAY), st.integers(90, DAY)), min_size=1, max_size=6),
    st.booleans(),
)
def test_a_service_that_scales_asks_for_the_nodes_that_it_had_at_each_time(
    drawn: list[tuple[int, int]], held: bool
) -> None:
    part = {**busy("a"), "reason": "held without use"} if held else busy("a")
    spans = [(MONDAY + start, MONDAY + start + length) for start, length in drawn]
    trace = trace_from([node(*span, number, [part]) for number, span in enumerate(spans)])

    for moment in {time for span in spans for time in span}:
        truth = sum(800 for start, end in spans if start <= moment < end)
        assert sum(job.size for job in trace.jobs if job.start <= moment < (job.end or 0)) == truth
    assert bool(trace.notes["jobs held accelerators without use, and count with these"]) == held


def test_one_job_of_weeks_is_a_trace_and_days_without_a_file_are_told() -> None:
    rows: list[Row] = [node(*PERIOD, number, [busy("a")]) for number in range(4)]
    with TemporaryDirectory() as name:
        folder = write(Path(name), rows)
        for day in ("2026-10-07", "2026-10-11"):
            (*files,) = folder.glob(f"ledger/day={day}/*")
            files[0].unlink()
        trace = trace_of(ledger(folder, price_list()), *PERIOD, TYPE)

    assert [job.end for job in trace.jobs] == [utc("2026-10-07"), utc("2026-10-11")]
    # The last day may lack because the folder was copied before: nothing is known of it.
    assert trace.until == utc("2026-10-11")
    assert trace.notes == {"days have no file of the ledger, and count as without work": 1}
    whole = trace_from(rows)
    assert whole.jobs == [Job(MONDAY, MONDAY, PERIOD[1], 3200)]
    assert Replay(whole, 8).weeks == 1


def test_a_job_that_lost_its_nodes_has_two_runs_and_waits_for_the_second() -> None:
    first, second, noon = MONDAY, MONDAY + 7200, MONDAY + 7 * DAY
    rows = [
        node(first, first + 3600, 1, [busy("a")]),
        wait_row("train", first + 3600, second, 8),
        node(second, noon, 2, [busy("a")]),
        wait_row("never", first, second),
        node(first, second, 3, [busy("a", 16, job="neuron")], accelerators=16, **OTHER),
    ]
    trace = trace_from(rows)
    assert trace.jobs == [
        Job(first, first, first + 3600, 800),
        Job(first + 3600, second, noon, 800),
    ]
    assert trace.notes == {
        "jobs waited and never ran: no curve has them": 1,
        "jobs on trn2.48xlarge are left out": 1,
    }


@pytest.mark.parametrize("waits", [True, False])
def test_the_ledger_says_how_many_nodes_to_buy_ahead(
    ultrascale: Ultrascale, tmp_path: Path, waits: bool
) -> None:
    today = int(NOW.timestamp())
    rows: list[Row] = []
    for day in range(today - 5 * 7 * DAY, today, DAY):
        rows += [node(day, day + DAY, number, [busy("a", job=f"j{number}")]) for number in (1, 2)]
        rows += [wait_row("late", day, day + 3600)] if waits else []
        rows.append(node(day + 3600, day + DAY // 2, 3, [busy("a", job="late")]))
    folder = write(tmp_path, rows)
    own = ("--type", TYPE, "--region", "us-east-2", "--at", "2026-11-22T00:00Z")
    asked = ("baseline", "--from-ledger", FILE, "--source", folder, *own, "--block-price", "40")

    answer = ultrascale(*asked)

    assert answer.returncode == 0, answer.stderr
    assert "buy 2 nodes ahead" in answer.stdout
    # Without a job that waited nobody knows what was wanted.
    assert ("submissions are not in the trace" in answer.stdout) != waits
    assert ultrascale(*asked, "jobs.csv").returncode == 64
    nothing = ultrascale(*asked[:3], "--source", tmp_path / "ledger" / "day=2026-10-18", *own)
    assert nothing.returncode == 64
    assert "no job with accelerators" in nothing.stderr
