"""Runs of one to six workers that are killed while they save, and resume in another world.

``SOAK=300 pytest -n 0 tests/training/test_checkpoint_kills.py`` kills for 300 generations instead
of a few; ``FAULT_SEED`` repeats the instants of a failure.
"""

import os
import random
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.etcd_server import free_ports
from tests.support.training_job import ENVIRONMENT

pytestmark = pytest.mark.training
LAYOUTS = ("fsdp", "ddp", "tp")
PATIENCE_SECONDS = 60.0
SOAK = int(os.environ.get("SOAK", "0"))


class Generation:
    """The workers of one start of the run."""

    def __init__(self, folder: Path, number: int, *, world: int, layout: str) -> None:
        port = str(free_ports(1)[0])
        self.outputs = [folder / f"g{number}-{rank}.log" for rank in range(world)]
        self.workers = [
            forked.start(
                "tests.support.saving_worker",
                [str(folder / "checkpoints"), layout, "0.005"],
                environment={
                    **ENVIRONMENT,
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                    "WORLD_SIZE": str(world),
                    "RANK": str(rank),
                },
                output=output,
            )
            for rank, output in enumerate(self.outputs)
        ]

    def resumed(self) -> int:
        """Return the step from which all workers go on, once each has loaded it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            said = [output.read_text() if output.exists() else "" for output in self.outputs]
            steps = {line for text in said for line in text.splitlines() if "resumes" in line}
            if all("resumes" in text for text in said):
                (step,) = steps
                return int(step.split()[1])
            assert all(worker.poll() is None for worker in self.workers), "\n".join(said)
            time.sleep(0.01)
        pytest.fail("\n".join(output.read_text() for output in self.outputs))

    def kill(self, rank: int) -> None:
        """Kill one worker, and a little later the others, as an agent does."""
        for worker in (self.workers[rank], *self.workers):
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
        for worker in self.workers:
            worker.wait(PATIENCE_SECONDS)

    def said(self) -> str:
        return "".join(output.read_text() for output in self.outputs)


@contextmanager
def generation(folder: Path, number: int, *, world: int, layout: str) -> Generator[Generation]:
    started = Generation(folder, number, world=world, layout=layout)
    try:
        yield started
    finally:
        started.kill(0)


def newest(checkpoints: Path) -> Path:
    return max(checkpoints.glob("step-*"), key=lambda path: path.name)


def flip_one_bit(checkpoint: Path, chance: random.Random) -> Path:
    """Flip a bit of a file that has one, as a disk or a cable does in silence."""
    files = sorted(path for path in checkpoint.iterdir() if path.stat().st_size)
    damaged = chance.choice(files)
    content = bytearray(damaged.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    damaged.write_bytes(content)
    return damaged


def plan(chance: random.Random) -> Iterator[tuple[int, str]]:
    """Yield world and layout of each start; the last layout reads what the others wrote."""
    worlds: Sequence[int] = [3, 1, 2]
    for number in range(SOAK or len(worlds)):
        world = chance.randint(1, 6) if SOAK else worlds[number]
        yield world, chance.choice(LAYOUTS) if SOAK else LAYOUTS[number]


def test_kills_while_saving_and_flipped_bits_never_give_a_wrong_state(tmp_path: Path) -> None:
    seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    chance = random.Random(seed)
    print(f"instants of this run: FAULT_SEED={seed}")
    checkpoints = tmp_path / "checkpoints"
    least, flipped, advances = 0, None, 0
    for number, (world, layout) in enumerate(plan(chance)):
        with generation(tmp_path, number, world=world, layout=layout) as running:
            step = running.resumed()
            assert step >= least, f"FAULT_SEED={seed}"
            if flipped is not None:
                assert step < flipped
                assert f"step-{flipped:08d} is bad and is set aside" in running.said()
            # Where two checkpoints stand, damage to the newest costs one of them.
            deadline = time.monotonic() + PATIENCE_SECONDS
            while (
                len(list(checkpoints.glob("step-*"))) < 2
                or newest(checkpoints).name <= f"step-{step:08d}"
            ):
                assert time.monotonic() < deadline, running.said()
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, 0.2))
            running.kill(chance.randrange(world))
        last = int(newest(checkpoints).name.partition("-")[2])
        advances += last > step
        flipped, least = None, last
        if number % 2 == 0:
            names = sorted(path.name for path in checkpoints.glob("step-*"))
            flip_one_bit(newest(checkpoints), chance)
            flipped, least = last, int(names[-2].partition("-")[2])
    assert advances == (SOAK or 3), f"FAULT_SEED={seed}"
