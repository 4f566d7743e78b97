"""Jobs of an acceptance on a cluster in memory: each step is seen, and nothing stays."""

from pathlib import Path

import pytest

from tests.support.accept_cluster import Stage, stage, write_file
from ultrascale.accept import jobs, levels
from ultrascale.accept.model import Check, Level
from ultrascale.documents import Json, mapping
from ultrascale.findings import Finding
from ultrascale.jobs.room import pod_kinds

SMALL: dict[str, Json] = {"name": "small", "image": "public.ecr.aws/a/b:1", "command": ["true"]}


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


@pytest.mark.parametrize("queueing", ["none", "kueue", "volcano"])
def test_each_engine_ends_jobs_and_pods_of_a_run_that_was_killed(
    tmp_path: Path, queueing: str
) -> None:
    run = stage(write_file(tmp_path, queueing)).run
    (pool,) = jobs.pools_of_jobs(run.plan)
    for job in (jobs.training_job(run, pool, 1), jobs.small_job(run, pool, SMALL, 25)):
        *_, workload = job.objects
        ((pod, _),) = pod_kinds(workload)
        assert pod["activeDeadlineSeconds"] == 25 * 60
        assert mapping(workload, "spec")["ttlSecondsAfterFinished"] == 600
        labels = [mapping(made, "metadata", "labels") for made in job.objects]
        assert all(own["ultrascale.dev/acceptance"] == "r1" for own in labels)
