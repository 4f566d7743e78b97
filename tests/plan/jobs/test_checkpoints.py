"""Checkpoints of jobs: their time by formula, and the interval at which least time is lost."""

import math
import random
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.jobs import JOB as SCRIPTED
from tests.support.jobs import container, job_cluster, prepared, refusals
from tests.support.pools import LUSTRE as FILE_SYSTEM
from tests.support.pools import ODCR, pool_document
from ultrascale import config
from ultrascale.jobs.manifests import JobManifests
from ultrascale.plan.jobs.checkpoints import (
    checkpoints_of,
    interval_seconds,
    lost_share,
    span,
    with_interval,
)
from ultrascale.plan.model.jobs import BandwidthPlan, CheckpointPlan, ProgramPlan

POOL = pool_document(
    role="reserved",
    instance_types=["p5en.48xlarge"],
    provisioner="karpenter",
    purchase=ODCR,
    nodes={"static": 16},
)
CLAIM = {"namespace": "training", "name": "data", "mount_path": "/data"}
LUSTRE: dict[str, Any] = {
    "lustre": [
        FILE_SYSTEM
        | {"name": "fast", "capacity_gib": 38400, "throughput_mbps_per_tib": 500, "claim": CLAIM}
    ]
}
BUCKET: dict[str, Any] = {"buckets": ["checkpoints"]}


JOB: dict[str, Any] = SCRIPTED | {"script": None, "nodes": 16, "recipe": "llama3-70b"}


def sent(storage: dict[str, Any], **changes: Any) -> JobManifests:
    data = {"args": ["--data=/data/tokens"], "durable": True}
    return prepared(job_cluster(POOL, storage=storage), JOB | data | changes)


def told(job: JobManifests) -> str:
    [note] = [each for each in job.notes if each.startswith("A checkpoint")]
    return note


def lost_by_trial(interval: float, *, held: float, save: float, between: float) -> float:
    """Return the share of time that a job loses, by drawing its failures one by one.

    Training waits for ``held`` seconds of a save; the checkpoint counts ``save`` seconds after the
    save began.
    """
    draw = random.Random(0)
    useful = elapsed = 0.0
    for _ in range(10_000):
        uptime = draw.expovariate(1 / between)
        cycles, rest = divmod(uptime, interval + held)
        # A cycle trains, and ends with the part of a save that holds training up.
        complete = cycles if rest >= save - held else cycles - 1
        useful += max(0.0, complete) * interval
        elapsed += uptime
    return 1 - useful / elapsed


# Bytes of a save that are copied in a second or so, and written beside the training in minutes.
SAVES = [
    (30, 30, 36_000),
    (300, 300, 5_700),
    (0.5, 20, 22_800),
    (8, 21, 356_000),
    (2.6, 45, 57_000),
]


@pytest.mark.parametrize(("held", "save", "between"), SAVES)
def test_no_other_interval_loses_less_where_failures_are_drawn(
    held: float, save: float, between: float
) -> None:
    best = interval_seconds(held_seconds=held, seconds_between_failures=between)
    lost = lost_by_trial(best, held=held, save=save, between=between)

    for other in (best / 2, best * 2):
        assert lost < lost_by_trial(other, held=held, save=save, between=between)
    foretold = lost_share(
        interval=best, held_seconds=held, save_seconds=save, seconds_between_failures=between
    )
    assert math.isclose(lost, foretold, rel_tol=0.15)


LARGE = 4_870_000_000_000  # Llama 3.1 405B
BUCKET_RATE = BandwidthPlan(gb_per_second=234.9, formula="", sources=())


def saves(nodes: int, *, size: int = LARGE, copied: int | None, hours: float) -> CheckpointPlan:
    return checkpoints_of(size, BUCKET_RATE, copied=copied, nodes=nodes, node_hours=hours)


@given(
    nodes=st.integers(1, 4_000),
    gigabytes=st.integers(1, 20_000),
    hours=st.integers(10, 100_000),
    waits=st.booleans(),
)
def test_an_interval_is_the_best_of_those_between_the_write_and_half_an_hour(
    nodes: int, gigabytes: int, hours: int, waits: bool
) -> None:
    size = gigabytes * 10**9
    plan = saves(nodes, size=size, copied=None if waits else size // (8 * nodes), hours=hours)

    def lost(interval: float) -> float:
        return lost_share(
            interval=interval,
            held_seconds=plan.held_seconds,
            save_seconds=plan.save_seconds,
            seconds_between_failures=plan.seconds_between_failures,
        )

    longest = max(plan.save_seconds, 1800)
    allowed = [
        plan.save_seconds + (longest - plan.save_seconds) * part / 200 for part in range(201)
    ]
    assert plan.save_seconds <= plan.interval_seconds <= longest
    assert plan.lost_share <= 1.02 * min(map(lost, allowed)) + 1e-9


def test_what_does_not_hold_training_up_is_no_cost_of_a_save() -> None:
    """Llama 3.1 405B on 1,000 nodes: a save is written in 21 s, and holds training for half one."""
    beside = saves(1_000, copied=LARGE // 8_000, hours=6_335)
    waiting = saves(1_000, copied=None, hours=6_335)

    assert beside.save_seconds == waiting.save_seconds == waiting.held_seconds
    assert beside.held_seconds == pytest.approx(0.49, abs=0.01)
    lost_at_longer = lost_by_trial(
        waiting.interval_seconds,
        held=beside.held_seconds,
        save=beside.save_seconds,
        between=beside.seconds_between_failures,
    )
    assert beside.interval_seconds < waiting.interval_seconds / 5
    assert (beside.lost_share, lost_at_longer) == (
        pytest.approx(0.0075, abs=0.0005),
        pytest.approx(0.022, abs=0.002),
    )


def test_a_save_is_each_half_hour_each_write_or_each_failure_at_the_ends() -> None:
    seldom = saves(1, size=10**11, copied=10**11 // 8, hours=6_335)
    long = saves(1, size=10**15, copied=10**14, hours=6_335)
    assert seldom.interval_seconds == 1800
    assert long.interval_seconds == long.save_seconds > 1800
    assert interval_seconds(held_seconds=100, seconds_between_failures=40) == 40


def test_a_bucket_gives_what_processes_send_and_what_a_prefix_takes() -> None:
    one = told(sent(BUCKET, args=["--data=s3://tokens"], recipe="llama3-8b", nodes=1))
    many = told(sent(BUCKET, args=["--data=s3://tokens"]))
    assert "10.0 GB/s = min(1 node * min(8 processes * 1.25 GB/s, 12.5 GB/s), " in one
    assert "160.0 GB/s = min(16 nodes" in many
    assert "3,500 requests/s of a prefix * 67.1 MB)" in many
    # A file system gives what its size and tier say.
    lustre = "18.8 GB/s = min(37.5 TiB * 500 MB/s of fast, 16 nodes * 12.5 GB/s)"
    assert lustre in told(sent(LUSTRE))


def interval(job: JobManifests) -> int:
    words = container(job)["command"]
    [stated] = [word for word in words if word.startswith("--checkpoint.interval=")]
    return int(stated.partition("=")[2])


@given(step=st.floats(0.5, 60), hours=st.integers(1, 100), nodes=st.integers(1, 500))
@example(step=15, hours=1, nodes=500)
def test_a_checkpoint_is_written_before_the_next_one(step: float, hours: int, nodes: int) -> None:
    program = ProgramPlan(
        script=None,
        image=None,
        steps=100_000,
        step_seconds=step,
        interval_option="--checkpoint.interval",
    )
    plan = saves(nodes, copied=LARGE // (8 * nodes), hours=hours)
    [word] = with_interval(config.TrainingJob(), program, plan).args
    between = int(word.partition("=")[2]) * step
    assert between >= plan.save_seconds * (1 - 1e-9)
    assert abs(between - plan.interval_seconds) <= step * (1 + 1e-9)


def test_a_fleet_that_fails_more_often_saves_more_often() -> None:
    often, seldom = ({"node_hours_between_failures": hours} for hours in (40, 1_000))

    # By the square root of the rate, 25 times as high.
    assert interval(sent(LUSTRE, restarts=seldom)) == pytest.approx(
        5 * interval(sent(LUSTRE, restarts=often)), rel=0.1
    )


def test_training_that_waits_for_the_whole_write_is_told_so() -> None:
    sixteen = {"min": 16, "max": 16}
    trainium = pool_document(instance_types=["trn2.48xlarge"], nodes=sixteen)
    one = JOB | {"recipe": "llama3-8b", "nodes": 1, "durable": True, "args": ["--config=mine"]}
    job = prepared(job_cluster(trainium, storage=LUSTRE), one)
    assert "training waits for all of it" in told(job)
    assert "training waits for at most 5 s of it" in told(sent(LUSTRE))


@pytest.mark.parametrize(
    ("restarts", "words"),
    [
        ({}, "With a failure each 6,335 node-hours one of its 16 nodes fails every 16.5 days"),
        ({"hours": 32}, "With a failure each 32 node-hours one of its 16 nodes fails every 2.0 h"),
        ({"hours": 0.1}, "fails sooner than it has saved"),
    ],
)
def test_the_rate_of_failures_that_is_told_is_the_one_that_is_reckoned_with(
    restarts: dict[str, float], words: str
) -> None:
    stated = {f"node_{key}_between_failures": value for key, value in restarts.items()}
    assert words in told(sent(LUSTRE, restarts=stated))


def test_a_bucket_that_keeps_deleted_checkpoints_is_told() -> None:
    job = sent(BUCKET, args=["--data=s3://tokens"])
    [told_of] = [note for note in job.notes if note.startswith("Its bucket keeps")]

    # 847 GB at each interval for 7 days.
    [interval] = re.findall(r"one checkpoint each (\d+) min", told(job))
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


def test_an_interval_of_the_users_is_left_alone() -> None:
    job = sent(LUSTRE, args=["--data=/data/tokens", "--checkpoint.interval=7"])

    assert interval(job) == 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h"), (400_000, "4.6 days")],
)
def test_times_are_told_in_the_unit_in_which_they_are_read(seconds: float, text: str) -> None:
    assert span(seconds) == text


# The file says neither size nor rules of the objects in storage that others keep.
def test_the_owner_of_a_bucket_decides_how_long_deleted_checkpoints_are_kept() -> None:
    told = str(sent({"buckets": [{"name": "checkpoints", "existing": "corp"}]}).notes)
    assert "TB a day at that interval are deleted from checkpoints, whose owner" in told
    assert "keeps what is deleted" not in told


def test_no_rate_is_reckoned_for_a_file_system_of_unknown_size() -> None:
    ids = {"id": "fs-0a1b2c3d4e5f60001", "mount_name": "abc", "security_group": "sg-0a1b2c3d"}
    lustre = {"name": "fast", "zone": "us-west-2b", "claim": CLAIM, "existing": ids}
    job = sent({"lustre": [lustre]})
    assert not [each for each in job.notes if each.startswith("A checkpoint")]
    assert "/data/output/tune" in str(container(job)["env"])


@pytest.mark.parametrize(
    ("gib", "keep", "wrong"), [(2_400, None, True), (4_800, None, False), (4_800, "8", True)]
)
def test_a_file_system_without_room_for_what_a_run_keeps_is_refused(
    gib: int, keep: str | None, wrong: bool
) -> None:
    """Its fourth checkpoint of 847 GB would find the disk full, after hours on 16 nodes."""
    [system] = LUSTRE["lustre"]
    storage = {"lustre": [system | {"capacity_gib": gib}]}
    args = ["--data=/data/tokens", *([] if keep is None else [f"--keep={keep}"])]
    found = refusals(job_cluster(POOL, storage=storage), JOB | {"args": args, "durable": True})

    assert found == (["volumes: recipe_suits_its_nodes"] if wrong else [])
