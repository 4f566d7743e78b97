"""Choice of the checkpoint to load: the newest checkpoint whose every byte is unchanged."""

import logging
import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import StorageReader, StorageWriter
from torch.distributed.checkpoint.metadata import Metadata

from ultrascale_training.checkpoints.bucket import BucketStore
from ultrascale_training.checkpoints.directory import DirectoryStore
from ultrascale_training.checkpoints.hashing import sum_of
from ultrascale_training.checkpoints.manifest import MANIFEST, DamagedManifestError
from ultrascale_training.checkpoints.memory import MemoryLostError, MemoryStore
from ultrascale_training.checkpoints.saver import State
from ultrascale_training.checkpoints.stores import (
    IN_MEMORY,
    Cause,
    Checkpoint,
    SetAside,
    Store,
    step_of,
)
from ultrascale_training.errors import OutsideError, TrainingError
from ultrascale_training.objects import is_bucket

# --- Store with two places for a run's checkpoints: a durable place, and the nodes' memory --------


class TieredStore(Store):
    """Durable checkpoints, and newer ones in the nodes' memory, whose loss costs only time.

    Args:
        durable: A directory or a bucket.
        memory: The memory of HyperPod's nodes.
    """

    def __init__(self, durable: Store, memory: MemoryStore) -> None:
        super().__init__(durable.objects, keep=durable.keep)
        self._durable, self._memory = durable, memory

    @property
    def durable(self) -> Store:
        """Store whose checkpoints outlive the nodes."""
        return self._durable

    def prepare(self, *, clean: bool = True) -> None:
        """Test both places."""
        self._durable.prepare(clean=clean)
        self._memory.prepare(clean=clean)

    def check_room(self, size: int) -> None:
        """Check the room in the durable place."""
        self._durable.check_room(size)

    def writer(self, step: int, *, attempt: str, about: Mapping[str, object]) -> StorageWriter:
        """Return the writer of a durable checkpoint."""
        return self._durable.writer(step, attempt=attempt, about=about)

    def passing_writer(
        self, step: int, *, attempt: str, about: Mapping[str, object]
    ) -> StorageWriter:
        """Return the writer of a checkpoint in memory."""
        return self._memory.writer(step, attempt=attempt, about=about)

    def reader(self, checkpoint: Checkpoint) -> StorageReader:
        """Return the reader of a checkpoint in either place."""
        return self._store_of(checkpoint.name).reader(checkpoint)

    def open_file(self, checkpoint: Checkpoint, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file of a checkpoint in either place."""
        return self._store_of(checkpoint.name).open_file(checkpoint, name)

    def check_sizes(self, checkpoint: Checkpoint) -> None:
        """Check the sizes of a checkpoint's files, if the place knows sizes."""
        self._store_of(checkpoint.name).check_sizes(checkpoint)

    def discard(self, step: int, *, attempt: str) -> None:
        """Delete the files of a failed save."""
        self._durable.discard(step, attempt=attempt)

    def set_aside(self, name: str, *, cause: Cause, reason: str) -> None:
        """Prevent that a checkpoint is loaded, without deleting it."""
        self._store_of(name).set_aside(name, cause=cause, reason=reason)

    def named(self) -> Sequence[str]:
        """Return the names of the checkpoints of both places, the newest first."""
        return sorted([*self._memory.named(), *self._durable.named()], key=step_of, reverse=True)

    def aside(self) -> Sequence[SetAside]:
        """Return the checkpoints that were set aside in both places."""
        return [*self._memory.aside(), *self._durable.aside()]

    def delete(self, name: str) -> None:
        """Delete a checkpoint."""
        self._store_of(name).delete(name)

    def _store_of(self, name: str) -> Store:
        return self._memory if name.startswith(IN_MEMORY) else self._durable


# --- Choice of the checkpoint to load: the newest checkpoint whose every byte is unchanged --------


_log = logging.getLogger("ultrascale_training")
_WRITER = re.compile(r"(?:.*/)?__(\d+)_")
Value = TypeVar("Value")


def open_store(location: str | os.PathLike[str], *, keep: int, memory: bool = False) -> Store:
    """Return the store of the checkpoints in a directory or below ``s3://bucket/prefix``.

    Args:
        location: Place of the checkpoints.
        keep: Newest checkpoints that stay when another is published.
        memory: Use checkpoints in the memory of HyperPod's nodes as well.

    Raises:
        TrainingError: The location is malformed, or a library for S3 or HyperPod is not installed.
    """
    if is_bucket(location):
        store: Store = BucketStore(os.fspath(location), keep=keep)
    else:
        store = DirectoryStore(Path(location), keep=keep)
    return TieredStore(store, MemoryStore(store.objects, keep=keep)) if memory else store


def newest_sound(store: Store, group: dist.ProcessGroup) -> Checkpoint | None:
    """Return the newest checkpoint without damage; a collective of ``group``.

    Every worker reads a share of the files; if the number of workers is unchanged, its own files,
    which it reads again to load. A damaged checkpoint is set aside with the reason in the log, and
    the checkpoint before is read.

    Args:
        store: Checkpoints of the run.
        group: Group with tensors of the host; its first member sets aside.

    Returns:
        None if the run has no checkpoint at all.

    Raises:
        TrainingError: On every worker: the run has checkpoints, and none is sound; or a worker
            does not see the checkpoint that the first worker sees.
        UnreadableError: On every worker: two nodes read different bytes, or the place does not
            answer.
    """
    leads = dist.get_rank(group) == 0
    tried: list[str] = []
    while True:
        found = _broadcast(group, _open_next(store, tried) if leads else None)
        if isinstance(found, _Unreadable):
            raise UnreadableError(found.reason)
        if not isinstance(found, Checkpoint):
            break
        reason = _confirmed_damage(store, found, group)
        if reason is None:
            return found
        tried.append(f"{found.name}: {reason}")
        if leads:
            _set_aside(store, found.name, reason)
    if found:
        raise TrainingError(
            "no checkpoint of this run can be loaded:\n"
            f"{found}\n"
            f"restore one below {store.location!r}, or name another --output-dir to begin anew"
        )
    return None


def open_checkpoint(location: str) -> Checkpoint:
    """Return the checkpoint at the location that the user has named.

    Raises:
        TrainingError: There is no such checkpoint, or its manifest or the size of a file is wrong.
    """
    store, name = _store_of(location)
    try:
        found = store.open(name)
        store.check_sizes(found)
    except DamagedManifestError as error:
        raise TrainingError(
            f"--resume: no checkpoint, or an incomplete one: {error}, got {location!r}; "
            "name a directory step-…"
        ) from None
    return found


def load(checkpoint: Checkpoint, state: State, *, group: dist.ProcessGroup | None = None) -> None:
    """Read this worker's part of a checkpoint into ``state``."""
    # torch.distributed.checkpoint reads into memory of the host or of a GPU, not into XLA's.
    direct = {name: value for name, value in state.items() if value.device.type != "xla"}
    # The values of XLA's tensors are not copied: each copy would be a graph to compile.
    copied = {
        name: torch.empty(value.shape, dtype=value.dtype)
        for name, value in state.items()
        if name not in direct
    }
    store, _ = _store_of(checkpoint.location)
    reader = shared_reader(store, checkpoint, group)
    dcp.load({**direct, **copied}, storage_reader=reader, process_group=group)
    for name, value in copied.items():
        state[name].copy_(value)


def shared_reader(
    store: Store, checkpoint: Checkpoint, group: dist.ProcessGroup | None
) -> StorageReader:
    """Return the reader of a checkpoint, whose metadata the first worker reads for all.

    It names the parts of every worker's tensors: read by each of thousands, it is most of what a
    start reads.
    """
    reader = store.reader(checkpoint)
    if group is None or not checkpoint.durable:
        return reader
    read = reader.read_metadata

    def read_metadata() -> Metadata | None:
        found, error = None, None
        if dist.get_rank(group) == 0:
            try:
                found = read()
            except Exception as raised:
                # The others learn of it as well, and none waits.
                error = raised
        found = _broadcast(group, found)
        if error is not None:
            raise error
        return found

    vars(reader)["read_metadata"] = read_metadata
    return reader


def verify(checkpoint: Checkpoint, group: dist.ProcessGroup) -> None:
    """Check every byte of a checkpoint that the user has named; a collective of ``group``.

    Raises:
        TrainingError: On every worker, with the file that differs.
    """
    store, _ = _store_of(checkpoint.location)
    reason = _confirmed_damage(store, checkpoint, group)
    if reason is not None:
        raise TrainingError(f"--resume: {checkpoint.location} is damaged: {reason}")


class UnreadableError(Exception):
    """Error: checkpoints, perhaps sound, cannot be read here; another start or node may help."""


@dataclass(frozen=True, kw_only=True)
class _Damage:
    """Damage that one worker has found."""

    file: str
    reason: str
    node: str


@dataclass(frozen=True)
class _Unreadable:
    """Reason why checkpoints cannot be listed."""

    reason: str


def _open_next(store: Store, tried: Sequence[str]) -> Checkpoint | _Unreadable | str:
    """Return the next candidate; without any, all mistakes as text, empty if there is nothing."""
    try:
        return _next_candidate(store, tried)
    except Exception as error:
        # The other workers wait for an answer, and without one would wait until they time out.
        _log.exception("cannot read the checkpoints below %s", store.location)
        return _Unreadable(f"{store.location}: its checkpoints cannot be read: {error}")


def _next_candidate(store: Store, tried: Sequence[str]) -> Checkpoint | str:
    wrong = list(tried)
    for name in store.named():
        try:
            found = store.open(name)
            store.check_sizes(found)
        except DamagedManifestError as error:
            wrong.append(f"{name}: {error}")
            _set_aside(store, name, str(error))
        else:
            return found
    listed = {line.partition(":")[0] for line in wrong}
    for bad in store.aside():
        if bad.name.removeprefix("bad-") not in listed:
            wrong.append(f"{bad.name}: {bad.reason}")
    return "\n".join(wrong)


def _store_of(location: str) -> tuple[Store, str]:
    """Return the store of a checkpoint, and the checkpoint's name in the store."""
    folder, _, name = location.rstrip("/").rpartition("/")
    return open_store(folder or ".", keep=1, memory=name.startswith(IN_MEMORY)), name


def _set_aside(store: Store, name: str, reason: str) -> None:
    _log.error(
        "checkpoint %s/%s is bad and is set aside: %s; takes the one before",
        store.location,
        name,
        reason,
    )
    store.set_aside(name, cause="damage", reason=reason)


def _check_seen(store: Store, checkpoint: Checkpoint, group: dist.ProcessGroup) -> None:
    """Check that every worker sees the checkpoint: a missing mount is no damage."""
    unseen = torch.tensor(int(not _sees(store, checkpoint)))
    dist.all_reduce(unseen, group=group)
    if int(unseen):
        raise OutsideError(
            f"--output-dir: {int(unseen)} workers do not see {checkpoint.location}, which the "
            "first one sees; use a file system that all nodes mount"
        )


def _sees(store: Store, checkpoint: Checkpoint) -> bool:
    # Opened and not read: each of 16,000 workers would read the sums of all files.
    manifest = store.objects.open(f"{checkpoint.name}/{MANIFEST}")
    with suppress(FileNotFoundError, NotADirectoryError), manifest:
        return True
    return False


def _confirmed_damage(store: Store, checkpoint: Checkpoint, group: dist.ProcessGroup) -> str | None:
    """Return the damage of a checkpoint, the same on every worker.

    A second worker reads a file that the first reports as damaged. Otherwise a single node with a
    broken mount or broken memory would set all checkpoints of the run aside.

    Raises:
        UnreadableError: On every worker: the second worker reads the file without damage.
    """
    _check_seen(store, checkpoint, group)
    world = dist.get_world_size(group)
    finder, found = _first_damage(group, _damage(store, checkpoint, group))
    if found is None:
        return None
    # Ranks of a node are consecutive, so the second worker is on another node if there is any.
    judge = (finder + world // 2) % world
    own = _file_damage(store, checkpoint, found.file) if dist.get_rank(group) == judge else None
    second = _broadcast(group, own, by=judge)
    if second is None:
        raise UnreadableError(
            f"{checkpoint.location}: worker {finder} on node {found.node} says that "
            f"{found.reason}, and worker {judge} then reads what was written; if it happens again, "
            f"replace node {found.node}, whose mount or memory is bad"
        )
    return found.reason


def _damage(store: Store, checkpoint: Checkpoint, group: dist.ProcessGroup) -> "_Damage | None":
    """Return the first damage in this worker's share of the files."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    for number, name in enumerate(sorted(checkpoint.files)):
        if _reader_of(name, number) % world == rank:
            reason = _file_damage(store, checkpoint, name)
            if reason is not None:
                node = os.environ.get("ULTRASCALE_NODE") or socket.gethostname()
                return _Damage(file=name, reason=reason, node=node)
    return None


def _file_damage(store: Store, checkpoint: Checkpoint, name: str) -> str | None:
    written = checkpoint.files[name]
    try:
        with store.open_file(checkpoint, name) as stream:
            read = sum_of(stream)
    except (OSError, MemoryLostError) as error:
        return f"{name} cannot be read: {error}"
    if read == written:
        return None
    return (
        f"{name} differs from what was written: {read.bytes} bytes with SHA-256 "
        f"{read.sha256[:16]}…, of {written.bytes} with {written.sha256[:16]}…"
    )


def _reader_of(name: str, number: int) -> int:
    writer = _WRITER.match(name)
    return int(writer[1]) if writer else number


def _first_damage(
    group: dist.ProcessGroup, found: "_Damage | None"
) -> "tuple[int, _Damage | None]":
    """Return, on every worker, the damage found by the lowest rank, and that rank."""
    world = dist.get_world_size(group)
    speaker = torch.tensor(world if found is None else dist.get_rank(group))
    dist.all_reduce(speaker, op=dist.ReduceOp.MIN, group=group)
    if int(speaker) == world:
        return world, None
    return int(speaker), _broadcast(group, found, by=int(speaker))


def _broadcast(group: dist.ProcessGroup, value: Value, *, by: int = 0) -> Value:
    """Return, on every worker, the ``value`` of the worker ``by``."""
    box: list[Value] = [value]
    dist.broadcast_object_list(box, src=dist.get_global_rank(group, by), group=group)
    return box[0]
