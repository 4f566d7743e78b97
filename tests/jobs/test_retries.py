"""Failures that no restart cures end a job at once; each try costs a node."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.job_containers import Image, run
from tests.support.jobs import (
    VOLCANO,
    container,
    job_cluster,
    make_job,
    objects,
    prepared,
    refusals,
)
from tests.support.pools import NEURON_POOL, POOL

OURS = "ultrascale_bert.pretrain"
GOOD = ["--data-dir=/data/wiki", "--output-dir=/data/output"]
ETCD_V2 = VOLCANO | {"rendezvous": {"backend": "etcd-v2", "replicas": 1}}


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path)
    found.has("torchrun")
    return found


def started(image: Image, **changes: Any) -> tuple[int, str]:
    job = make_job(nodes=1, script=OURS, **changes)
    command = container(prepared(job=job))["command"]
    return run(command, image, {"POD_IP": "10.1.2.3", "PYTHONPATH": str(ROOT / "training")})


def test_arguments_that_our_program_refuses_end_the_job_before_torchrun_starts(
    image: Image,
) -> None:
    status, told = started(image, args=[*GOOD, "--batch-size=none", "--bathc-size=8"])
    assert status == 2
    assert "--batch-size: must be a whole number from 1 on, got 'none'" in told
    assert "--bathc-size=8: no such flag" in told
    assert not image.started()
    (job,) = objects(prepared(job=make_job(script=OURS)), "Job")
    assert {"exitCode": 2, "action": "TerminateJob"} in job["spec"]["policies"]
    # Those that it takes start it.
    assert started(image, args=GOOD) == (0, "")
    assert image.told()["argv"][-2:] == GOOD


def test_mistake_that_our_program_finds_later_ends_the_job_as_well(image: Image) -> None:
    torchrun = image.folder / "torchrun"
    torchrun.write_text('#!/bin/sh\n: > "$ULTRASCALE_MISTAKE_FILE"\nexit 1\n')
    torchrun.chmod(0o755)

    assert started(image, args=GOOD) == (2, "")


@pytest.mark.parametrize(
    ("changes", "restarts"),
    [
        # Agents of several nodes tell each other of no restart of their processes.
        ({}, "0"),
        ({"nodes": 1}, "3"),
        ({"rendezvous": "c10d"}, "3"),
        ({"min_nodes": 1, "nodes": 2}, "100"),
        ({"restarts": {"workers": 0}}, "0"),
        ({"min_nodes": 1, "nodes": 2, "restarts": {"workers": 7}}, "7"),
    ],
)
def test_a_program_that_crashes_for_ever_is_started_again_a_few_times_only(
    changes: dict[str, Any], restarts: str
) -> None:
    _, _, script, *_ = container(prepared(job=make_job(**changes)))["command"]

    assert f"--max-restarts={restarts} " in script


def test_a_compiler_that_refused_a_graph_is_not_asked_ten_times_more() -> None:
    cache = {"model": "bert", "path": "/data/cache"}
    volumes = [{"claim": "data", "mount_path": "/data", "existing": True}]
    job = make_job(compile_cache=cache, volumes=volumes)

    (compiles,) = objects(prepared(job=job, precompile=True), "Job")
    (trains,) = objects(prepared(job=job), "Job")

    assert (compiles["spec"]["maxRetry"], trains["spec"]["maxRetry"]) == (3, 11)


def test_a_rendezvous_that_our_image_does_not_know_is_refused() -> None:
    job = make_job(image="bert", rendezvous="etcd-v2")
    lacking = ["rendezvous: image_knows_the_rendezvous"]
    for pool, expected in ((NEURON_POOL, []), (POOL, lacking)):
        cluster = job_cluster(pool, scheduling=ETCD_V2, images={"repositories": ["bert"]})
        assert refusals(cluster, job) == expected
        assert refusals(cluster, job, rendezvous="etcd") == []
    # A server with the v2 API serves the v3 API as well.
    cluster = job_cluster(NEURON_POOL, scheduling=ETCD_V2)
    _, _, script, *_ = container(prepared(cluster, make_job(rendezvous="etcd")))["command"]
    assert "--rdzv-backend=etcd-v3 " in script
    assert "--rdzv-endpoint=etcd-client:2379 " in script
