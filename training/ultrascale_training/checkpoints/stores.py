"""Checkpoints of a run in any place: listing, order, setting aside and deletion."""

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any

from torch.distributed.checkpoint import StorageReader, StorageWriter

from ultrascale_training.checkpoints.manifest import (
    MANIFEST,
    DamagedManifestError,
    FileSum,
    decode,
)
from ultrascale_training.objects import Objects

_log = logging.getLogger("ultrascale_training")
BAD_NOTE = "bad.json"
_STEP = re.compile(r"(?:step|checkpoint)-(\d+)")
IN_MEMORY = "memory-"
"""Prefix of the names of checkpoints that only the nodes' memory holds."""
Cause = str
"""Cause of a checkpoint's setting aside: ``damage`` or ``nan``."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A published checkpoint."""

    location: str  # Directory, or ``s3://bucket/prefix``
    name: str  # Name within its store
    step: int  # Steps that are done
    about: Mapping[str, Any]  # Notes of the run in addition to its tensors
    files: Mapping[str, FileSum]  # Sums by name

    @property
    def durable(self) -> bool:
        """Whether the checkpoint outlives the nodes."""
        return not self.name.startswith(IN_MEMORY)


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """A checkpoint that must no longer be loaded."""

    name: str
    step: int
    cause: Cause
    reason: str


class Store(ABC):
    """Checkpoints of a run. One worker prepares, publishes and sets aside; any worker may read.

    Args:
        objects: Files below the place of the checkpoints.
        keep: Newest checkpoints that stay when another is published.
    """

    def __init__(self, objects: Objects, *, keep: int) -> None:
        self.objects = objects
        self.keep = keep

    @property
    def location(self) -> str:
        """Place of the checkpoints."""
        return self.objects.location

    @property
    def durable(self) -> "Store":
        """Store whose checkpoints outlive the nodes: this store, if it has no other."""
        return self

    @abstractmethod
    def prepare(self, *, clean: bool = True) -> None:
        """Test the place and, if ``clean``, delete the leftovers of killed writers.

        Raises:
            TrainingError: Checkpoints cannot be written there: the first save would fail, after
                hours.
        """

    @abstractmethod
    def check_room(self, size: int) -> None:
        """Check that ``size`` bytes can be written.

        Raises:
            TrainingError: The bytes do not fit.
        """

    def check_room_of_run(self, size: int) -> None:
        """Check that all checkpoints of ``size`` bytes that stay fit, and the one being written.

        Raises:
            TrainingError: They do not fit: a later save would find the disk full.
        """
        self.check_room(size * max(1, self.keep + 1 - len(self.named())))

    @abstractmethod
    def writer(self, step: int, *, attempt: str, about: Mapping[str, object]) -> StorageWriter:
        """Return the writer of a checkpoint, for `torch.distributed.checkpoint.async_save`.

        Args:
            step: Steps that are done.
            attempt: Unique to this start of the run, the same on all its workers.
            about: Notes of the run; JSON.
        """

    def passing_writer(
        self, step: int, *, attempt: str, about: Mapping[str, object]
    ) -> StorageWriter | None:
        """Return the writer of a checkpoint that need not outlive the nodes.

        Returns:
            None if the store has no faster place for it.
        """
        return None

    @abstractmethod
    def reader(self, checkpoint: Checkpoint) -> StorageReader:
        """Return the reader of a checkpoint, for `torch.distributed.checkpoint.load`."""

    @abstractmethod
    def discard(self, step: int, *, attempt: str) -> None:
        """Delete the files of a failed save."""

    @abstractmethod
    def set_aside(self, name: str, *, cause: Cause, reason: str) -> None:
        """Prevent that a checkpoint is loaded, without deleting it."""

    @abstractmethod
    def named(self) -> Sequence[str]:
        """Return the names of the checkpoints that may be loaded, the newest first."""

    @abstractmethod
    def aside(self) -> Sequence[SetAside]:
        """Return the checkpoints that were set aside."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a checkpoint, even a checkpoint that was set aside."""

    def open(self, name: str) -> Checkpoint:
        """Return the checkpoint called ``name``.

        Raises:
            DamagedManifestError: Its manifest is damaged.
        """
        text = self.objects.get(f"{name}/{MANIFEST}")
        if text is None:
            raise DamagedManifestError(f"it has no {MANIFEST}, so it is incomplete")
        manifest = decode(text)
        return Checkpoint(
            location=f"{self.location}/{name}",
            name=name,
            step=manifest.step,
            about=manifest.about,
            files=manifest.files,
        )

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint with a valid manifest and right file sizes, or None.

        The content of its files is not read: `newest_sound` does that.
        """
        for name in self.named():
            try:
                found = self.open(name)
                self.check_sizes(found)
            except DamagedManifestError as error:
                _log.warning("passes %s/%s over: %s", self.location, name, error)
            else:
                return found
        return None

    def open_file(self, checkpoint: Checkpoint, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file of a checkpoint for reading.

        Raises:
            FileNotFoundError: There is no such file.
        """
        return self.objects.open(f"{checkpoint.name}/{name}")

    def check_sizes(self, checkpoint: Checkpoint) -> None:
        """Check that every file of a checkpoint exists and has the size in the manifest.

        Raises:
            DamagedManifestError: A file is missing or has another size.
        """
        sizes = self.objects.sizes(f"{checkpoint.name}/")
        for name, file in checkpoint.files.items():
            found = sizes.get(f"{checkpoint.name}/{name}")
            if found != file.bytes:
                has = "is missing" if found is None else f"has {found} bytes"
                raise DamagedManifestError(f"{name} {has}, of {file.bytes} that were written")

    def make_way(self) -> None:
        """Delete all but the newest `keep` checkpoints; called after a publication.

        A checkpoint that was set aside is deleted once enough newer ones exist that nobody needs
        it.
        """
        named = self.named()
        for old in named[self.keep :]:
            self.delete(old)
        if len(named) >= self.keep:
            oldest = step_of(named[self.keep - 1])
            for bad in self.aside():
                if bad.step < oldest:
                    self.delete(bad.name)


def step_of(name: str) -> int:
    """Return the step in a name like ``step-00000040``, ``step-00000040-ab12``, ``checkpoint-40``.

    Raises:
        ValueError: The name has no step.
    """
    if (named := _STEP.search(name)) is None:
        raise ValueError(f"{name}: no name of a checkpoint")
    return int(named[1])


def bad_note(cause: Cause, reason: str) -> bytes:
    """Return the content of the note in a checkpoint that is set aside."""
    return json.dumps({"cause": cause, "reason": reason}).encode()


def read_bad_note(name: str, text: bytes | None) -> SetAside:
    """Return the parsed note of a checkpoint that was set aside."""
    try:
        read = json.loads(text or b"{}")
    except ValueError:
        read = {}
    return SetAside(
        name=name,
        step=step_of(name),
        cause=read.get("cause", "damage"),
        reason=read.get("reason", "unknown"),
    )
