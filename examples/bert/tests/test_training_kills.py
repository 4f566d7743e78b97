"""A soak: training of one to six workers, DDP or FSDP, that is killed and told to stop at random.

``SOAK=20 pytest -n 0 -s examples/bert/tests/test_training_kills.py`` starts it 20 times and tells
how many steps were lost; ``FAULT_SEED`` repeats the instants. `test_faults.py` has the few faults
that every run of the suite meets.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.training_job import Flags, Worker, curve, named, run, start_workers

SOAK = int(os.environ.get("SOAK", "0"))
EVERY = 5
# Sums over workers differ in the last bits of single precision.
EXACT = 1e-6
PATIENCE_SECONDS = 300.0
STOPPED_EARLY = 75
pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(not SOAK, reason="a soak: set SOAK to a number of starts"),
]


@pytest.fixture
def flags(tmp_path: Path) -> Flags:
    data = tmp_path / "data"
    run(
        "prepare_data",
        *("--synthetic", "--output-dir", data, "--shards", 4, "--documents", 100),
        *("--seq-len", 32, "--max-pred-len", 5),
        folder=tmp_path,
    )
    # Steps whose checkpoints are lost are computed again.
    return Flags(data=data, steps=20 * SOAK, checkpoint_every=EVERY)


def steps_of(output: Path) -> list[int]:
    """Return the steps that the newest start has computed."""
    found = named(output, "start")
    now = found[-1]["start"] if found else None
    return [each["step"] for each in named(output, "step") if each["start"] == now]


def wait_for_steps(output: Path, workers: list[Worker], *, starts: int, steps: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(named(output, "start")) < starts or len(steps_of(output)) < steps:
        said = "".join(worker.output.read_text() for worker in workers if worker.output.exists())
        assert all(worker.program.poll() is None for worker in workers), said
        assert time.monotonic() < deadline, said
        time.sleep(0.02)


def kill(workers: list[Worker]) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker.program.pid, signal.SIGKILL)
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.program.wait(PATIENCE_SECONDS)


def test_training_that_is_killed_at_random_computes_what_an_undisturbed_one_does(
    flags: Flags, tmp_path: Path
) -> None:
    seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    chance = random.Random(seed)
    print(f"instants of this run: FAULT_SEED={seed}")
    output, seen, lost = tmp_path / "output", Counter[str](), list[int]()
    done, told = 0, False
    for number in range(1, SOAK + 1):
        world, layout = chance.randint(1, 6), chance.choice(("ddp", "fsdp"))
        folders = [tmp_path / f"{number}-{rank}" for rank in range(world)]
        for folder in folders:
            folder.mkdir()
        workers = start_workers(flags.of(output, "--parallel", layout), folders)
        try:
            wait_for_steps(output, workers, starts=number, steps=chance.randint(1, 12))
            resumed = named(output, "start")[-1]["step"]
            lost.append(done - resumed)
            if told:
                assert lost.pop() == 0, f"FAULT_SEED={seed}"
            told = chance.random() < 0.4
            victim = chance.choice(workers).program.pid
            if told:
                os.kill(victim, signal.SIGTERM)
                ended = [worker.outcome() for worker in workers]
                assert {status for status, _ in ended} == {STOPPED_EARLY}, ended
            else:
                os.kill(victim, signal.SIGKILL)
        finally:
            kill(workers)
        done = max(steps_of(output))
        seen[f"{layout} on {world}"] += 1
        seen["SIGTERM" if told else "SIGKILL"] += 1
    found = curve(output)
    whole = tmp_path / "whole"
    run("pretrain", *flags.of(whole, "--steps-this-run", max(found)), folder=tmp_path)
    undisturbed = curve(whole)
    assert found == pytest.approx({step: undisturbed[step] for step in found}, rel=EXACT)
    assert list(found) == list(range(1, max(found) + 1))
    # One checkpoint may still have been on its way.
    assert max(lost, default=0) < 2 * EVERY
    print(*(f"{what}: {times}" for what, times in sorted(seen.items())), sep="\n")
    print(f"steps: {max(found)}, lost in each kill, a checkpoint every {EVERY}: {lost[1:]}")
