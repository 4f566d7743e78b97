"""Jobs of an acceptance on a cluster in memory: each step is seen, and nothing stays."""

from pathlib import Path

import pytest

from tests.support.accept_cluster import Stage, stage, write_file
from ultrascale.accept import jobs, levels
from ultrascale.accept.model import Check, Level
from ultrascale.findings import Finding


def check_of(staged: Stage, level: Level) -> Check:
    (check,) = (check for check in levels.checks(staged.run.plan, [level]))
    return check


def run_check(staged: Stage, level: Level) -> list[Finding]:
    return [*check_of(staged, level).run(staged.run)]


@pytest.mark.parametrize("queueing", ["none", "kueue"])
def test_a_job_is_seen_from_its_start_to_its_end_and_leaves_nothing(
    tmp_path: Path, queueing: str
) -> None:
    staged = stage(write_file(tmp_path, queueing))
    before = {path: found["metadata"]["uid"] for path, found in staged.stub.objects.items()}
    jobs.begin(staged.run)
    found = run_check(staged, "storage")
    assert [(each.check, each.state) for each in found] == [
        (f"job-{step}", "pass") for step in ("starts", "resumes", "ends")
    ], found
    assert not jobs.clean(staged.run)
    after = {path: found["metadata"]["uid"] for path, found in staged.stub.objects.items()}
    assert after == before
    assert not staged.jobs.data


def test_kueue_holds_a_gang_back_evicts_a_job_and_lets_it_resume(tmp_path: Path) -> None:
    staged = stage(write_file(tmp_path, "kueue"))
    found = run_check(staged, "queue")
    assert [each.state for each in found] == ["pass"] * 2, found
    assert "2 nodes at once" in found[0].evidence
