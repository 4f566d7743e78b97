"""Two runs in one output: the second one ends, and a run that was killed keeps nobody waiting."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ultrascale_training.errors import TrainingError
from ultrascale_training.lease import Lease
from ultrascale_training.objects import LocalObjects

EVERY = 0.05


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Lease]:
    lease = Lease(LocalObjects(tmp_path), every=EVERY, holder="train-a")
    lease.take()
    yield lease
    lease.release()


def of_another(folder: Path, *, every: float = EVERY) -> Lease:
    return Lease(LocalObjects(folder), every=every, holder="train-b")


def test_a_second_run_in_an_output_ends_and_names_the_first(held: Lease, tmp_path: Path) -> None:
    """Both would delete what the other writes, and train to the end."""
    with pytest.raises(TrainingError, match=r"run train-a of pod .* writes to .* now"):
        of_another(tmp_path).take()
    # It goes on.
    time.sleep(3 * EVERY)
    assert json.loads((tmp_path / "lease.json").read_text())["holder"] == "train-a"


def test_a_restart_of_the_same_job_waits_for_nothing(held: Lease, tmp_path: Path) -> None:
    waits: list[float] = []
    again = Lease(LocalObjects(tmp_path), every=EVERY, holder="train-a", pause=waits.append)
    again.take()
    again.release()

    assert waits == []


def test_a_run_that_ended_or_was_killed_leaves_the_output_to_others(tmp_path: Path) -> None:
    killed = {"holder": "train-a", "pod": "a-0", "notes": "7-1", "time": time.time()}
    (tmp_path / "lease.json").write_text(json.dumps(killed))
    waits: list[float] = []
    new = Lease(LocalObjects(tmp_path), every=15, holder="train-b", pause=waits.append)
    new.take()

    # Each second of a thousand nodes is paid for: less than a minute, and only if it is fresh.
    assert 0 < sum(waits) <= 45
    assert json.loads((tmp_path / "lease.json").read_text())["holder"] == "train-b"
    new.release()
    assert not (tmp_path / "lease.json").exists()
    (tmp_path / "lease.json").write_text(json.dumps(killed | {"time": time.time() - 600}))
    waits.clear()
    later = Lease(LocalObjects(tmp_path), every=15, holder="train-b", pause=waits.append)
    later.take()
    later.release()
    assert waits == []


def test_a_damaged_file_stands_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "lease.json").write_text('{"hol')
    lease = of_another(tmp_path)
    lease.take()
    lease.release()
