"""Checkpoints in a directory: what is there is complete, whenever the writers were killed.

A checkpoint is written under a name that nobody reads, and gets its real name by one rename, after
every file of it has reached the disk. It loses that name by a rename too, before it is deleted. So
a directory ``step-00000040`` is complete at every instant, on a local disk and on Lustre, where a
rename is one transaction of the metadata server.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_training")
_MANIFEST = "checkpoint.json"
_NAME = re.compile(r"step-(\d{8,})")
_PARTIAL = "partial-"
_DELETED = "deleted-"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A complete checkpoint.

    Attributes:
        step: Steps that are done.
        about: What the run noted beside its tensors.
    """

    path: Path
    step: int
    about: Mapping[str, Any]


class CheckpointDirectory:
    """The checkpoints of one run. One worker publishes and deletes, any may read.

    Args:
        path: Directory of the checkpoints; made by `prepare`.
        keep: Newest checkpoints that `publish` leaves.
    """

    def __init__(self, path: Path, *, keep: int) -> None:
        self._path = path
        self._keep = keep

    def prepare(self, *, clean: bool = True) -> None:
        """Make the directory and, if ``clean``, delete what killed writers left in it.

        Raises:
            TrainingError: Its file system renames nothing, as buckets that are mounted do not: the
                first checkpoint would fail, after hours.
        """
        self._path.mkdir(parents=True, exist_ok=True)
        self._try_to_rename()
        if not clean:
            return
        for left in [*self._path.glob(f"{_PARTIAL}*"), *self._path.glob(f"{_DELETED}*")]:
            # A writer on a node that was cut off may still be at work on its own.
            shutil.rmtree(left, ignore_errors=True)

    def _try_to_rename(self) -> None:
        tried = self._path / f"{_PARTIAL}tried-{os.getpid()}"
        tried.mkdir(exist_ok=True)
        try:
            tried = tried.rename(tried.with_name(f"{_DELETED}tried-{os.getpid()}"))
        except OSError as error:
            raise TrainingError(
                f"--output-dir: its file system renames no directory ({error.strerror}), which "
                f"makes a checkpoint complete, got {str(self._path)!r}; use Lustre or a disk, and "
                "copy complete checkpoints to a bucket"
            ) from None
        finally:
            tried.rmdir()

    def mark(self, name: str) -> Path:
        """Return an empty directory by which other workers can tell that they see this one."""
        marker = self._path / f"{_PARTIAL}{name}"
        marker.mkdir()
        return marker

    def begin(self, step: int, *, writer: str) -> Path:
        """Return a directory to write the checkpoint of ``step`` to; ``writer`` makes it unique."""
        partial = self.partial(step, writer=writer)
        partial.mkdir()
        return partial

    def partial(self, step: int, *, writer: str) -> Path:
        """Return the path that `begin` made on another worker."""
        return self._path / f"{_PARTIAL}{step:08d}-{writer}"

    def publish(self, partial: Path, *, step: int, about: Mapping[str, object]) -> Checkpoint:
        """Make ``partial``, whose files have all been written, the newest checkpoint."""
        sizes = {file.name: file.stat().st_size for file in sorted(partial.iterdir())}
        with (partial / _MANIFEST).open("w") as file:
            json.dump({"step": step, "about": about, "files": sizes}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync(partial)
        final = self._path / f"step-{step:08d}"
        if final.exists():
            # An incomplete one, which nobody can resume from: `newest` passed it over.
            self._delete(final)
        partial.rename(final)
        _sync(self._path)
        for old in self._named()[self._keep :]:
            self._delete(old)
        return Checkpoint(path=final, step=step, about=about)

    def newest(self) -> Checkpoint | None:
        """Return the newest complete checkpoint, None if there is none."""
        for path in self._named():
            found = _read(path)
            if not isinstance(found, str):
                return found
            _log.warning("passes %s over: %s", path, found)
        return None

    def _named(self) -> Sequence[Path]:
        names = self._path.iterdir() if self._path.is_dir() else ()
        found = [path for path in names if _NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.name.partition("-")[2]), reverse=True)

    def _delete(self, path: Path) -> None:
        doomed = path.rename(path.with_name(f"{_DELETED}{path.name}-{os.getpid()}"))
        shutil.rmtree(doomed)


def open_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint at ``path``.

    Raises:
        TrainingError: There is none, or it is not complete.
    """
    found = _read(path)
    if isinstance(found, str):
        raise TrainingError(f"--resume: {found}, got {str(path)!r}; name a directory step-…")
    return found


def _read(path: Path) -> Checkpoint | str:
    """Return the checkpoint, or what is wrong with it."""
    manifest = path / _MANIFEST
    if not manifest.is_file():
        return f"no checkpoint, or an incomplete one: it has no {_MANIFEST}"
    content = json.loads(manifest.read_text())
    for name, size in content["files"].items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            return f"incomplete checkpoint: {name} is missing or has not {size} bytes"
    return Checkpoint(path=path, step=content["step"], about=content["about"])


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
