"""Store with two places for a run's checkpoints: a durable place, and the nodes' memory."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO

from torch.distributed.checkpoint import StorageReader, StorageWriter

from ultrascale_training.checkpoints.memory import MemoryStore
from ultrascale_training.checkpoints.stores import (
    IN_MEMORY,
    Cause,
    Checkpoint,
    SetAside,
    Store,
    step_of,
)


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
        """Check the durable place."""
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
