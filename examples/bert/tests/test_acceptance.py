"""The job of an acceptance, by two real processes: meets, saves, is killed, resumes, ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from tests.support import forked
from tests.support.etcd_server import free_ports
from tests.support.s3_server import BUCKET, running_s3
from tests.support.training_job import ENVIRONMENT, Worker
from ultrascale_bert import acceptance
from ultrascale_training.objects import open_objects

pytestmark = pytest.mark.training
STOPPED_EARLY = 75
PATIENCE_SECONDS = 120.0
_STARTS = re.compile(r"starts at step (\d+) of \d+ with (\d+) workers")


def start(folder: Path, volume: Path, *more: str, number: int) -> Sequence[Worker]:
    """Start the job as two nodes of a process each would."""
    run = volume / "accept" / "run1"
    flags = [
        *("--folder", str(run), f"--output-dir={run / 'output'}", "--model=tiny"),
        *("--batch-size=2", "--max-steps=1000000", "--log-every=1", "--checkpoint-every=5"),
        *("--device=cpu", *more),
    ]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0])}
    workers: list[Worker] = []
    for rank in range(2):
        own = folder / f"{number}-{rank}"
        own.mkdir()
        environment = {
            **ENVIRONMENT,
            **common,
            **{"RANK": str(rank), "LOCAL_RANK": "0", "TMPDIR": str(own)},
        }
        output = own / "log"
        program = forked.start(
            "ultrascale_bert.acceptance",
            flags,
            environment=environment,
            output=output,
            folder=own,
        )
        workers.append(Worker(program=program, output=output))
    return workers


def wait_for(worker: Worker, line: str) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        said = worker.output.read_text() if worker.output.exists() else ""
        if line in said:
            return said
        assert worker.program.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)


def resumed_at(said: str) -> int:
    match = _STARTS.search(said)
    assert match is not None, said
    assert match[2] == "2", said
    return int(match[1])


def test_the_job_meets_saves_is_killed_resumes_ends_and_leaves_nothing(tmp_path: Path) -> None:
    volume = tmp_path / "data"
    volume.mkdir()
    (volume / "own.txt").write_text("of somebody else")
    one = start(tmp_path, volume, number=1)
    said = wait_for(one[0], "progress step=12/")
    assert "bytes written and read" in said
    assert resumed_at(said) == 0
    for worker in one:
        os.kill(worker.program.pid, signal.SIGKILL)
        with pytest.raises(AssertionError):
            assert worker.program.wait(PATIENCE_SECONDS) == 0
    two = start(tmp_path, volume, number=2)
    said = wait_for(two[0], "progress step=14/")
    # The checkpoint of step 10 may still have been on its way.
    assert resumed_at(said) in (5, 10)
    os.kill(two[1].program.pid, signal.SIGTERM)
    ended = [worker.outcome() for worker in two]
    assert [status for status, _ in ended] == [STOPPED_EARLY] * 2
    last = int(re.findall(r"progress step=(\d+)/", ended[0][1])[-1])
    three = start(tmp_path, volume, "--steps-this-run=3", number=3)
    ended = [worker.outcome() for worker in three]
    assert [status for status, _ in ended] == [0, 0], ended
    assert resumed_at(ended[0][1]) == last
    deletion = [sys.executable, "-m", "ultrascale_bert.acceptance", "--delete", "--folder"]
    run = [*deletion, str(volume / "accept" / "run1")]
    subprocess.run(run, env=ENVIRONMENT, check=True, capture_output=True)
    assert [entry.name for entry in volume.iterdir()] == ["own.txt"]
    foreign = subprocess.run([*deletion, str(volume)], env=ENVIRONMENT, capture_output=True)
    assert foreign.returncode == 2
    assert (volume / "own.txt").exists()


def test_the_output_in_a_bucket_is_deleted_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_s3() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        # Other tests of the process have objects in the bucket too.
        bucket = f"s3://{BUCKET}/{tmp_path.name}"
        for own in ("accept/run1/output", "accept/run10/output", "output"):
            open_objects(f"{bucket}/{own}").put("checkpoints/one", b"x")
        for output in (f"{bucket}/accept/run1/output", f"{bucket}/output"):
            monkeypatch.setenv("ULTRASCALE_OUTPUT", output)
            assert acceptance.main(["--delete"]) == 0
        kept = open_objects(bucket).names()
    assert kept == ["accept/run10/output/checkpoints/one", "output/checkpoints/one"]
