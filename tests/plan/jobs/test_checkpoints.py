"""Checkpoints of jobs: their time by formula, and the interval at which least time is lost."""

import math
import random
import re
from typing import Any

import pytest

from tests.support.jobs import IMAGE, container, job_cluster, prepared
from tests.support.pools import pool_document
from ultrascale.jobs.manifests import JobManifests
from ultrascale.plan.jobs.checkpoints import interval_seconds, lost_share, span

POOL = pool_document(
    name="train",
    role="reserved",
    instance_types=["p5en.48xlarge"],
    provisioner="karpenter",
    purchase={"option": "odcr", "reservation": "cr-0123456789abcdef0"},
    zones=["us-west-2b"],
    nodes={"static": 16},
)
LUSTRE: dict[str, Any] = {
    "lustre": [
        {
            "name": "fast",
            "zone": "us-west-2b",
            "capacity_gib": 38400,
            "throughput_mbps_per_tib": 500,
            "claim": {"namespace": "training", "name": "data", "mount_path": "/data"},
        }
    ]
}
BUCKET: dict[str, Any] = {"buckets": ["checkpoints"]}
JOB: dict[str, Any] = {
    "name": "tune",
    "pool": "train",
    "nodes": 16,
    "image": IMAGE,
    "recipe": "llama3-70b",
    "durable": True,
}


def sent(storage: dict[str, Any], **changes: Any) -> JobManifests:
    data = {"args": ["--data=/data/tokens"]}
    return prepared(job_cluster(POOL, storage=storage), JOB | data | changes)


def told(job: JobManifests) -> str:
    [note] = [each for each in job.notes if each.startswith("A checkpoint")]
    return note


def lost_by_trial(interval: float, *, save: float, between: float) -> float:
    """Return the share of time that a job loses, by drawing its failures one by one."""
    draw = random.Random(0)
    useful = elapsed = 0.0
    failure = draw.expovariate(1 / between)
    for _ in range(20_000):
        if failure < interval + save:
            elapsed += failure
            failure = draw.expovariate(1 / between)
        else:
            useful, elapsed = useful + interval, elapsed + interval + save
            failure -= interval + save
    return 1 - useful / elapsed


@pytest.mark.parametrize(("save", "between"), [(30, 36_000), (300, 5_700)])
def test_no_other_interval_loses_less_where_failures_are_drawn(save: float, between: float) -> None:
    best = interval_seconds(save_seconds=save, seconds_between_failures=between)
    lost = lost_by_trial(best, save=save, between=between)

    for other in (best / 2, best * 2):
        assert lost < lost_by_trial(other, save=save, between=between)
    foretold = lost_share(interval=best, save_seconds=save, seconds_between_failures=between)
    assert math.isclose(lost, foretold, rel_tol=0.15)


def test_a_job_that_fails_before_it_has_saved_saves_once_a_failure() -> None:
    assert interval_seconds(save_seconds=100, seconds_between_failures=40) == 40


def test_a_file_system_gives_what_its_size_and_tier_say() -> None:
    note = told(sent(LUSTRE))

    assert "18.8 GB/s = min(37.5 TiB * 500 MB/s of fast, 16 nodes * 12.5 GB/s)" in note


def test_a_bucket_gives_what_processes_send_and_what_a_prefix_takes() -> None:
    one = told(sent(BUCKET, args=["--data=s3://tokens"], recipe="llama3-8b-lora", nodes=1))
    many = told(sent(BUCKET, args=["--data=s3://tokens"]))

    sent_by_one = "10.0 GB/s = min(1 node * min(8 processes * 1.25 GB/s, 12.5 GB/s), "
    assert sent_by_one in one
    assert "160.0 GB/s = min(16 nodes" in many
    assert "3,500 requests/s of a prefix * 67.1 MB)" in many


def interval(job: JobManifests) -> int:
    words = container(job)["command"]
    [stated] = [word for word in words if word.startswith("--checkpoint.interval=")]
    return int(stated.partition("=")[2])


def test_a_fleet_that_fails_more_often_saves_more_often() -> None:
    often = {"node_hours_between_failures": 63.35}

    # By the square root of the rate, a hundred times as high.
    assert interval(sent(LUSTRE)) == pytest.approx(
        10 * interval(sent(LUSTRE, restarts=often)), rel=0.1
    )


def test_the_rate_of_failures_that_is_told_is_the_one_that_is_reckoned_with() -> None:
    often = {"node_hours_between_failures": 32}

    assert "With a failure each 6,335 node-hours one of its 16 nodes fails every 16.5 days" in told(
        sent(LUSTRE)
    )
    assert "With a failure each 32 node-hours one of its 16 nodes fails every 2.0 h" in told(
        sent(LUSTRE, restarts=often)
    )


def test_a_bucket_that_keeps_deleted_checkpoints_is_told() -> None:
    job = sent(BUCKET, args=["--data=s3://tokens"])
    [told_of] = [note for note in job.notes if note.startswith("Its bucket keeps")]

    # 847 GB at each interval for 7 days.
    [interval] = re.findall(r"one checkpoint each (\d+) min costs least", told(job))
    [terabytes] = re.findall(r"up to (\d+) TB at that interval", told_of)
    assert int(terabytes) == pytest.approx(7 * 1440 / int(interval) * 0.847, rel=0.02)
    assert not [note for note in sent(LUSTRE).notes if note.startswith("Its bucket keeps")]


def unsaved(job: JobManifests) -> list[str]:
    return [note for note in job.notes if note.startswith("A last checkpoint")]


def test_a_last_checkpoint_for_which_pods_have_no_time_is_told() -> None:
    [told_of] = unsaved(sent(LUSTRE, recipe="llama3-405b"))

    # 4,870 GB at 18.75 GB/s take 260 s, of which processes get 88 s by default.
    assert "its processes have 88 s for it" in told_of
    assert "Write grace_period_seconds: 325 or more" in told_of
    assert not unsaved(sent(LUSTRE, recipe="llama3-405b", grace_period_seconds=330))
    assert not unsaved(sent(LUSTRE))


def test_a_job_that_never_comes_to_save_is_told_so() -> None:
    hopeless = {"node_hours_between_failures": 0.1}

    assert "fails sooner than it has saved" in told(sent(LUSTRE, restarts=hopeless))


def test_an_interval_of_the_users_is_left_alone() -> None:
    job = sent(LUSTRE, args=["--data=/data/tokens", "--checkpoint.interval=7"])

    assert interval(job) == 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h"), (400_000, "4.6 days")],
)
def test_times_are_told_in_the_unit_in_which_they_are_read(seconds: float, text: str) -> None:
    assert span(seconds) == text


class TestExistingStorage:
    """The file says neither size nor rules of the objects in storage that others keep."""

    def test_the_owner_of_a_bucket_decides_how_long_deleted_checkpoints_are_kept(self) -> None:
        corp = {"name": "checkpoints", "existing": "corp"}

        job = sent({"buckets": [corp]})

        assert "TB a day at that interval are deleted from checkpoints, whose owner" in str(
            job.notes
        )
        assert "keeps what is deleted" not in str(job.notes)

    def test_no_rate_is_reckoned_for_a_file_system_of_unknown_size(self) -> None:
        ids = {"id": "fs-0a1b2c3d4e5f60001", "mount_name": "abc", "security_group": "sg-0a1b2c3d"}
        sized = ("capacity_gib", "throughput_mbps_per_tib")
        lustre = {key: value for key, value in LUSTRE["lustre"][0].items() if key not in sized}

        job = sent({"lustre": [lustre | {"existing": ids}]})

        assert not [each for each in job.notes if each.startswith("A checkpoint")]
        assert "/data/output/tune" in str(container(job)["env"])
