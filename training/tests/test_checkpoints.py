"""Checkpoints: complete at every instant, newest first, no more than asked for."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import errno
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from tests.support.training_job import ENVIRONMENT
from ultrascale_training.checkpoints import DirectoryStore, open_checkpoint
from ultrascale_training.checkpoints.hashing import sum_of
from ultrascale_training.checkpoints.manifest import Manifest
from ultrascale_training.errors import TrainingError

pytestmark = pytest.mark.training

# Saves for ever. The tensors of step N hold N, so whoever reads them knows what they should be.
SAVES_FOR_EVER = """
import itertools, sys
import torch, torch.distributed as dist
from ultrascale_training.checkpoints import Saver, open_store

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
store = open_store(sys.argv[1], keep=2)
store.prepare()
saver = Saver(store, group=dist.group.WORLD, attempt="a")
print("ready", flush=True)
for step in itertools.count(1):
    tensors = {f"model.{n}": torch.full((20_000,), float(step)) for n in range(5)}
    saver.save(step, tensors, {})
"""


def publish(store: DirectoryStore, step: int) -> Path:
    partial = store.partial(step, attempt="a")
    partial.mkdir()
    written = partial / "tensors"
    written.write_bytes(bytes(100))
    with written.open("rb") as stream:
        files = {"tensors": sum_of(stream)}
    store.publish(partial, Manifest(step=step, about={"model": "tiny"}, files=files))
    return store.path / f"step-{step:08d}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def directory(path: Path) -> DirectoryStore:
    made = DirectoryStore(path, keep=2)
    made.prepare()
    return made


def read(checkpoint: Path) -> set[float]:
    """Return the numbers in a checkpoint of ``SAVES_FOR_EVER``."""
    import torch.distributed.checkpoint as dcp

    tensors = {f"model.{n}": torch.zeros(20_000) for n in range(5)}
    with warnings.catch_warnings(action="ignore"):
        # It warns that it runs without a process group.
        dcp.load(tensors, checkpoint_id=checkpoint, no_dist=True)
    return {value for tensor in tensors.values() for value in tensor.unique().tolist()}


def test_newest_checkpoint_is_resumed_from(directory: DirectoryStore) -> None:
    for step in (8, 100000000, 9):
        publish(directory, step)

    newest = directory.newest()

    assert newest is not None
    assert newest.step == 100000000
    assert newest.about == {"model": "tiny"}


def test_only_as_many_as_asked_for_are_kept(directory: DirectoryStore, path: Path) -> None:
    for step in (1, 2, 3, 4):
        publish(directory, step)

    assert {found.name for found in path.iterdir()} == {"step-00000003", "step-00000004"}


@pytest.mark.parametrize("damage", ["truncated", "missing", "no manifest"])
def test_damaged_checkpoint_is_passed_over(directory: DirectoryStore, damage: str) -> None:
    publish(directory, 1)
    damaged = publish(directory, 2)
    if damage == "truncated":
        (damaged / "tensors").write_bytes(bytes(99))
    elif damage == "missing":
        (damaged / "tensors").unlink()
    else:
        (damaged / "checkpoint.json").unlink()

    newest = directory.newest()

    assert newest is not None
    assert newest.step == 1
    with pytest.raises(TrainingError, match=r"^--resume: .*incomplete"):
        open_checkpoint(str(damaged))
    # The run comes by that step again.
    publish(directory, 2)
    assert open_checkpoint(str(damaged)).step == 2


def test_what_a_killed_writer_left_is_deleted_at_the_next_start(
    directory: DirectoryStore, path: Path
) -> None:
    directory.partial(7, attempt="dead").mkdir()
    publish(directory, 1).rename(path / "deleted-step-00000001-99")

    directory.prepare()

    assert list(path.iterdir()) == []


def test_empty_directory_has_nothing_to_resume_from(directory: DirectoryStore) -> None:
    assert directory.newest() is None


@contextmanager
def saving_for_ever(path: Path) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", SAVES_FOR_EVER, str(path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def test_a_kill_at_any_instant_leaves_a_checkpoint_that_can_be_loaded(path: Path) -> None:
    seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    instants = random.Random(seed)
    print(f"instants of this run: FAULT_SEED={seed}")
    steps = [0]
    with saving_for_ever(path) as process:
        # What a stopped process has on the disk is what a killed one would leave.
        for _ in range(60):
            time.sleep(instants.uniform(0.0, 0.03))
            stop(process)
            steps.append(step_that_can_be_loaded(path))
            process.send_signal(signal.SIGCONT)
    steps.append(step_that_can_be_loaded(path))
    assert steps == sorted(steps)
    assert len(set(steps)) > 10, "too few saves were interrupted to say anything"


def step_that_can_be_loaded(path: Path) -> int:
    newest = DirectoryStore(path, keep=2).newest()
    if newest is None:
        return 0
    assert read(Path(newest.location)) == {float(newest.step)}
    return newest.step


def test_a_run_that_collects_graphs_leaves_a_live_runs_checkpoint_alone(
    directory: DirectoryStore,
) -> None:
    """A precompile job has the arguments of the run whose graphs it compiles, and its folder."""
    written = directory.partial(40, attempt="live")
    written.mkdir()

    directory.prepare(clean=False)

    assert written.is_dir()
    directory.prepare()
    assert not written.exists()


def test_a_mounted_bucket_is_refused_before_the_first_step_and_not_at_the_first_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Mountpoint for S3 answers this way.
    def refuse(path: Path, target: Path) -> Path:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(TrainingError, match="--output-dir: its file system renames no directory"):
        DirectoryStore(tmp_path, keep=2).prepare()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_an_output_that_the_images_user_may_not_write_is_told_and_is_no_restart_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # Root, who runs tests in containers, may write everywhere.
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)

    with pytest.raises(TrainingError, match=rf"--output-dir: user {os.getuid()} .*may not write"):
        DirectoryStore(tmp_path / "checkpoints", keep=2).prepare()


def test_trying_the_file_system_leaves_nothing_behind(tmp_path: Path) -> None:
    DirectoryStore(tmp_path, keep=2).prepare(clean=False)

    assert list(tmp_path.iterdir()) == []
