"""Whatever happens at whichever request, `--clean` leaves the cluster as it was, by uid."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.accept_cluster import Fault, Killed, Stage, stage, write_file
from ultrascale.accept import jobs, levels
from ultrascale.accept.model import Check, Level
from ultrascale.accept.run import accept
from ultrascale.errors import InterruptedWorkError, QuestionError, UltrascaleError

FOLDER = Path(mkdtemp())
LEVELS: tuple[Level, ...] = ("storage", "queue")
LONGEST = 900


@cache
def file(queueing: str) -> Path:
    return write_file(FOLDER, queueing)


def uids(staged: Stage) -> Mapping[str, str]:
    return {path: found["metadata"]["uid"] for path, found in staged.stub.objects.items()}


def checks(staged: Stage) -> list[Check]:
    return [*levels.checks(staged.run.plan, LEVELS)]


def minutes(staged: Stage) -> float:
    return sum(cost.nodes * cost.minutes for check in checks(staged) for cost in check.costs)


FAULTS = st.builds(
    Fault,
    number=st.integers(0, LONGEST),
    kind=st.sampled_from(["403", "409", "410", "500", "503", "timeout", "sigint", "sigkill"]),
    after=st.booleans(),
)


@pytest.mark.parametrize("queueing", ["none", "kueue"])
@settings(max_examples=30, deadline=None)
@given(faults=st.lists(FAULTS, min_size=1, max_size=3))
def test_nothing_stays_after_a_fault_and_a_clean_up(queueing: str, faults: list[Fault]) -> None:
    staged = stage(file(queueing), faults)
    before, planned = uids(staged), minutes(staged)
    done = None
    with suppress(KeyboardInterrupt, Killed, InterruptedWorkError, UltrascaleError):
        done = accept(staged.run, checks(staged), LEVELS)
    # What nodes were held, and could have been were the process gone, was planned and priced.
    assert staged.jobs.held <= planned
    assert staged.jobs.promised <= planned
    if done is not None and not done.left:
        assert (uids(staged), staged.jobs.data) == (before, False)
    assert not jobs.clean(staged.again())
    assert (uids(staged), staged.jobs.data) == (before, False)


def test_an_undisturbed_run_passes_within_the_requests_that_faults_meet(tmp_path: Path) -> None:
    staged = stage(file("kueue"))
    before = uids(staged)
    done = accept(staged.run, checks(staged), LEVELS)
    assert done.has_passed, done
    assert uids(staged) == before
    assert staged.transport.count <= LONGEST


def test_a_run_of_the_same_id_is_refused_and_left_alone(tmp_path: Path) -> None:
    staged = stage(file("none"))
    jobs.begin(staged.again())
    before = uids(staged)
    with pytest.raises(QuestionError, match="--clean r1"):
        accept(staged.run, checks(staged), LEVELS)
    assert uids(staged) == before
