"""Checkpoints in a directory: each is complete, even if its writers are killed at any time.

A checkpoint is written under a temporary name, and gets its real name by one rename, after all of
its files have reached the disk. Before it is deleted, it loses that name by a rename too. So a
directory ``step-00000040`` is complete at every instant, on a local disk and on Lustre, where a
rename is one transaction of the metadata server.
"""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from torch.distributed.checkpoint import (
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
    StorageWriter,
)

from ultrascale_training.checkpoints.manifest import MANIFEST, Manifest, encode
from ultrascale_training.checkpoints.stores import (
    BAD_NOTE,
    Cause,
    Checkpoint,
    SetAside,
    Store,
    bad_note,
    read_bad_note,
)
from ultrascale_training.checkpoints.writer import CheckpointWriter
from ultrascale_training.errors import OutsideError, TrainingError
from ultrascale_training.objects import LocalObjects

_PARTIAL = "partial-"
_DELETED = "deleted-"
# Room for tensors' headers, torch's metadata and the manifest, in addition to the tensors.
_HEADERS = 0.01
_LEAST_BYTES = 1 << 20
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class DirectoryStore(Store):
    """Checkpoints of a run in a directory that all its workers see.

    Args:
        path: Directory of the checkpoints; made by `prepare`.
        keep: Newest checkpoints that stay when another is published.
    """

    # Pattern of a checkpoint's name
    NAME = r"step-\d{8,}"

    def __init__(self, path: Path, *, keep: int) -> None:
        super().__init__(LocalObjects(path), keep=keep)
        self.path = path
        self.written = 0  # Bytes of the last checkpoint that this process has published

    def prepare(self, *, clean: bool = True) -> None:
        """Make the directory, test it and, if ``clean``, delete the leftovers of killed writers.

        Raises:
            TrainingError: The process may not write there, or the file system renames nothing, like
                a mounted bucket.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            tried = self.path / f"{_PARTIAL}tried-{uuid.uuid4().hex[:12]}"
            tried.mkdir()
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            # An error may have made the mount read-only, and the next start may get another mount.
            kind = OutsideError if error.errno == errno.EROFS else TrainingError
            raise kind(
                f"--output-dir: user {os.getuid()} of group {os.getgid()} may not write there "
                f"({error.strerror}), got {str(self.path)!r}; give the folder to that user, or "
                "mount it for writing"
            ) from None
        self._try_to_rename(tried)
        if not clean:
            return
        for left in [*self.path.glob(f"{_PARTIAL}*"), *self.path.glob(f"{_DELETED}*")]:
            # A writer on a node that was cut off may still write to its own folder.
            shutil.rmtree(left, ignore_errors=True)

    def check_room(self, size: int) -> None:
        """Check that ``size`` bytes fit on the file system.

        Raises:
            TrainingError: The bytes do not fit.
        """
        state = os.statvfs(self.path)
        free = state.f_bavail * state.f_frsize
        needed = int(size * (1 + _HEADERS)) + _LEAST_BYTES
        # Some network file systems report no sizes at all.
        if state.f_blocks and free < needed:
            raise TrainingError(
                f"the disk is full: checkpoints need {gigabytes(needed)}, and "
                f"{self.location!r} has {gigabytes(free)} left; free some, enlarge it, or lower "
                f"--keep (now {self.keep}: as many checkpoints stay beside the one being written)"
            )

    def writer(self, step: int, *, attempt: str, about: Mapping[str, object]) -> StorageWriter:
        """Return the writer of a checkpoint."""
        partial = self.partial(step, attempt=attempt)
        return CheckpointWriter(
            FileSystemWriter(partial, sync_files=True),
            folder=str(partial),
            destination=_Destination(self, partial, step),
            step=step,
            about=about,
        )

    def reader(self, checkpoint: Checkpoint) -> StorageReader:
        """Return the reader of a checkpoint."""
        return FileSystemReader(checkpoint.location)

    def partial(self, step: int, *, attempt: str) -> Path:
        """Return the directory in which a checkpoint is written."""
        return self.path / f"{_PARTIAL}{step:08d}-{attempt}"

    def discard(self, step: int, *, attempt: str) -> None:
        """Delete the files of a failed save."""
        shutil.rmtree(self.partial(step, attempt=attempt), ignore_errors=True)

    def publish(self, partial: Path, manifest: Manifest) -> None:
        """Make ``partial``, whose files have all been written, the newest checkpoint.

        Raises:
            OutsideError: A worker wrote its files elsewhere.
        """
        for name, file in manifest.files.items():
            written = partial / name
            if not written.is_file() or written.stat().st_size != file.bytes:
                raise OutsideError(
                    f"{self.location}: the first worker does not find {name}, which another one "
                    "wrote there; use a file system that all nodes mount"
                )
        _write(partial / MANIFEST, encode(manifest))
        _sync(partial)
        final = self.path / f"step-{manifest.step:08d}"
        if final.exists():
            # The run has already saved this step, and could not resume from that checkpoint.
            self.delete(final.name)
        partial.rename(final)
        _sync(self.path)
        self.make_way()

    def set_aside(self, name: str, *, cause: Cause, reason: str) -> None:
        """Rename a checkpoint to ``bad-…``, and note the reason."""
        old, new = self.path / name, self.path / f"bad-{name}"
        if new.exists():
            new = new.with_name(f"{new.name}-{uuid.uuid4().hex[:8]}")
        # A full disk has no room for the note, and the name alone keeps the checkpoint aside.
        with suppress(OSError):
            _write(old / BAD_NOTE, bad_note(cause, reason))
        old.rename(new)
        _sync(self.path)

    def named(self) -> Sequence[str]:
        """Return the names of the checkpoints that may be loaded, the newest first."""
        found = [name for name in self.objects.folders() if re.fullmatch(self.NAME, name)]
        return sorted(found, key=lambda name: int(name.partition("-")[2]), reverse=True)

    def aside(self) -> Sequence[SetAside]:
        """Return the checkpoints that were set aside."""
        return [
            read_bad_note(name, self.objects.get(f"{name}/{BAD_NOTE}"))
            for name in sorted(self.objects.folders())
            if re.fullmatch(rf"bad-{self.NAME}(-[0-9a-f]+)?", name)
        ]

    def delete(self, name: str) -> None:
        """Delete a checkpoint, after a rename that takes its name away."""
        path = self.path / name
        doomed = path.rename(path.with_name(f"{_DELETED}{name}-{uuid.uuid4().hex[:8]}"))
        shutil.rmtree(doomed, ignore_errors=True)

    def mark(self, name: str) -> Path:
        """Return a new empty directory; other workers that see it share this directory."""
        marker = self.path / f"{_PARTIAL}{name}"
        marker.mkdir()
        return marker

    def _try_to_rename(self, tried: Path) -> None:
        try:
            tried = tried.rename(tried.with_name(tried.name.replace(_PARTIAL, _DELETED)))
        except OSError as error:
            raise TrainingError(
                f"--output-dir: its file system renames no directory ({error.strerror}), which "
                f"makes a checkpoint complete, got {str(self.path)!r}; use Lustre or a disk, or "
                "write to s3://BUCKET/PREFIX without a mount"
            ) from None
        finally:
            tried.rmdir()


class _Destination:
    def __init__(self, store: DirectoryStore, partial: Path, step: int) -> None:
        self._store, self._partial, self._step = store, partial, step

    def begin(self, size: int, *, writers: int) -> None:
        # A plan that is kept is not planned again.
        self._store.check_room(max(size, self._store.written))
        self._partial.mkdir()

    def publish(self, manifest: Manifest) -> None:
        self._store.publish(self._partial, manifest)
        self._store.written = manifest.bytes


def gigabytes(size: int) -> str:
    """Return a size in words."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
