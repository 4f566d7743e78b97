"""Runs of the TorchTitan engine as processes that are forked from one that has imported it."""

from collections.abc import Sequence
from pathlib import Path

import cpu

from tests.support import forked_worlds
from tests.support.forked_worlds import World
from ultrascale_training.titan import configuration

# Imported here for all processes.
assert configuration


def start(
    world: int,
    arguments: Sequence[str],
    folder: Path,
    *,
    attempt: str = "0",
    run_id: str = "toy",
) -> World:
    """Start the engine in ``world`` processes, whose logs go to ``folder``."""
    return forked_worlds.start(cpu.run, world, arguments, folder, attempt=attempt, run_id=run_id)


def run(world: int, arguments: Sequence[str], folder: Path, *, attempt: str = "0") -> World:
    """Run the engine to its end, which must be success."""
    running = start(world, arguments, folder, attempt=attempt)
    running.statuses = running.wait()
    assert running.statuses == [0] * world, "\n".join(
        log.read_text()[-3000:] for log in running.logs
    )
    return running


def fail(
    world: int,
    arguments: Sequence[str],
    folder: Path,
    *,
    attempt: str = "0",
    run_id: str = "toy",
) -> World:
    """Run the engine to its end, and return what it wrote, with the exit status of each."""
    running = start(world, arguments, folder, attempt=attempt, run_id=run_id)
    running.statuses = running.wait()
    return running
