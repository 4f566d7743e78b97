"""Jobs of a ledger as the trace of `ultrascale baseline`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.command_line import NOW, Ultrascale
from tests.support.ledgers import FILE, TYPE, at, ledger, node, price_list, used, write
from ultrascale.lambdas.ledger import DAY, Row
from ultrascale.ledger.trace import trace_of
from ultrascale.plan.baseline.traces import Job, Trace

MONDAY = at("2026-10-05")
PERIOD = MONDAY, MONDAY + 7 * DAY
OTHER: Any = {"type": "trn2.48xlarge", "pool": "trn", "reservation": "cr-0trn"}


def waiting(job: str, low: int, high: int, n: int = 16) -> Any:
    row = {"v": 1, "kind": "waiting", "from": low, "to": high, "n": n, "pools": ["p"]}
    return {**row, "namespace": "ns-a", "job": job}


def read(rows: list[Row]) -> Trace:
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
            rows.append(waiting(f"job-{number}", submit, start))
        rows += [
            node(start, end, 10 * number + place, [used("a", job=f"job-{number}")])
            for place in range(nodes)
        ]
    assert sorted(read(rows).jobs) == sorted(truth)


def test_a_job_that_lost_its_nodes_has_two_runs_and_waits_for_the_second() -> None:
    first, second, noon = MONDAY, MONDAY + 7200, MONDAY + 7 * DAY
    rows = [
        node(first, first + 3600, 1, [used("a")]),
        waiting("train", first + 3600, second, 8),
        node(second, noon, 2, [used("a")]),
        waiting("never", first, second),
        node(first, second, 3, [used("a", 16, job="neuron")], accelerators=16, **OTHER),
    ]
    trace = read(rows)
    # The second still runs.
    assert trace.jobs == [
        Job(first, first, first + 3600, 800),
        Job(first + 3600, second, None, 800),
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
        rows += [node(day, day + DAY, number, [used("a", job=f"j{number}")]) for number in (1, 2)]
        rows += [waiting("late", day, day + 3600)] if waits else []
        rows.append(node(day + 3600, day + DAY // 2, 3, [used("a", job="late")]))
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
