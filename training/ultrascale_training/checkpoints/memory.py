"""Checkpoints in the memory of HyperPod's nodes, between two durable checkpoints.

HyperPod's managed tiered checkpointing runs a service on every node that holds the newest steps of
a namespace, replicated to other nodes; AWS's library has the client. Each start of a run has a
namespace of its own, because a namespace has a fixed number of writers. The service has no
manifests: they are stored with the durable checkpoints and hold the SHA-256 of each part, so that
checkpoints in memory are completed, verified and dropped by the same rules as others. Sources:
https://docs.aws.amazon.com/sagemaker/latest/dg/managed-tier-checkpointing.html
https://pypi.org/project/amzn-sagemaker-checkpointing/1.1.3/
"""

import functools
import io
import logging
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Any, cast

from torch.distributed.checkpoint import (
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
    StorageWriter,
)
from torch.distributed.checkpoint.filesystem import FileSystemBase

from ultrascale_training.checkpoints.hashing import AnyPath
from ultrascale_training.checkpoints.manifest import MANIFEST, Manifest
from ultrascale_training.checkpoints.noted import NotedStore
from ultrascale_training.checkpoints.stores import IN_MEMORY, Checkpoint
from ultrascale_training.checkpoints.writer import CheckpointWriter
from ultrascale_training.errors import TrainingError
from ultrascale_training.objects import Objects

_log = logging.getLogger("ultrascale_training")
_PREFIX = f"{IN_MEMORY}step-"
_NAME = re.compile(rf"{_PREFIX}\d{{8,}}-[0-9a-z-]+")
_NAMESPACE = re.compile(rf"{IN_MEMORY}namespace-([0-9a-z-]+)")
_NOTE = "namespace.json"
_PART = re.compile(r"__(\d+)_\d+\.distcp")
_RETRIES = 1


class MemoryLostError(Exception):
    """Error: the memory service failed to accept or return a part; durable checkpoints stay."""


class MemoryStore(NotedStore):
    """Checkpoints of a run in the memory of HyperPod's nodes.

    Args:
        objects: Files stored with the durable checkpoints, which hold the manifests.
        keep: Newest checkpoints that stay when another is published.
    """

    def __init__(self, objects: Objects, *, keep: int) -> None:
        super().__init__(objects, keep=keep, names=_NAME)
        # A missing library causes an error here, not at the first save.
        _library()

    def prepare(self, *, clean: bool = True) -> None:
        """Test the service and, if ``clean``, drop namespaces without checkpoints.

        A service that does not answer is logged, and is no error: durable checkpoints still work.
        """
        try:
            _client("ultrascale", writers=1, keep=self.keep).get_namespace_config()
        except _library().exceptions.InMemoryStorageError as error:
            _log.warning(
                "HyperPod's memory service does not answer at %s (%s): checkpoints go to %s alone; "
                "enable TieredStorageConfig of the cluster, and let the job's pods reach it",
                _url(),
                error,
                self.location,
            )
        if clean:
            self._drop_namespaces()

    def check_room(self, size: int) -> None:
        """Do nothing: the service itself drops the oldest steps."""

    def writer(self, step: int, *, attempt: str, about: Mapping[str, object]) -> StorageWriter:
        """Return the writer of a checkpoint."""
        name = _name(step, attempt)
        files = _Parts(attempt, step=step, keep=self.keep)
        inner = FileSystemWriter(name, sync_files=False)
        inner.fs = files  # type: ignore[assignment] - torch names the class, and uses the interface
        return CheckpointWriter(
            inner,
            folder=name,
            destination=_Destination(self, files, name),
            step=step,
            about=about,
        )

    def reader(self, checkpoint: Checkpoint) -> StorageReader:
        """Return the reader of a checkpoint."""
        reader = FileSystemReader(checkpoint.name)
        reader.fs = self._parts(checkpoint)  # type: ignore[assignment]
        return reader

    @contextmanager
    def open_file(self, checkpoint: Checkpoint, name: str) -> Generator[IO[bytes]]:
        """Open a part for reading."""
        with self._parts(checkpoint).create_stream(name, "rb") as stream:
            yield cast(IO[bytes], stream)

    def check_sizes(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the service reports no sizes, and each part is read before it is used."""

    def discard(self, step: int, *, attempt: str) -> None:
        """Do nothing: nobody reads parts without a manifest, and the service drops old steps."""

    def delete(self, name: str) -> None:
        """Forget a checkpoint; the service drops its parts with old steps or with the namespace."""
        self.objects.delete(f"{name}/{MANIFEST}")
        for left in self.objects.names(f"{name}/"):
            self.objects.delete(left)

    def make_way(self) -> None:
        """Forget superfluous checkpoints, and namespaces of starts without any checkpoint."""
        super().make_way()
        self._drop_namespaces()

    def note_namespace(self, attempt: str, *, writers: int) -> None:
        """Note, before anything is stored, that this start has a namespace in the service."""
        self.objects.put(f"{IN_MEMORY}namespace-{attempt}/{_NOTE}", str(writers).encode())

    def _drop_namespaces(self) -> None:
        used = {_attempt_of(name) for name in self.folders()}
        for folder in self.objects.folders():
            found = _NAMESPACE.fullmatch(folder)
            if found is None or found[1] in used:
                continue
            try:
                _client(found[1], writers=1, keep=self.keep).delete_namespace()
            except _library().exceptions.InMemoryResourceNotFoundError:
                pass
            except _library().exceptions.InMemoryStorageError:
                continue
            self.objects.delete(f"{folder}/{_NOTE}")

    def _parts(self, checkpoint: Checkpoint) -> "_Parts":
        parts = _Parts(_attempt_of(checkpoint.name), step=checkpoint.step, keep=self.keep)
        parts.writers = sum(_PART.fullmatch(name) is not None for name in checkpoint.files)
        return parts


class _Parts(FileSystemBase):
    """Files of a checkpoint in the service: a part of each writer, then torch's metadata."""

    def __init__(self, attempt: str, *, step: int, keep: int) -> None:
        self._attempt, self._step, self._keep = attempt, step, keep
        self.writers = 0  # Workers that write a part; known to the coordinator and to readers

    def make_namespace(self) -> None:
        """Make the namespace of this start if it does not exist."""
        with _memory_lost_errors("make a namespace"):
            self._client().get_or_create_namespace()

    @contextmanager
    def create_stream(self, path: AnyPath, mode: str) -> Generator[io.IOBase]:
        """Open a part; a written part is sent to the service as a whole at its close."""
        name = os.path.basename(os.fspath(path))  # noqa: PTH119 - no path of a disk
        if mode == "rb":
            with _memory_lost_errors(f"give {name}"):
                content = self._client().get_checkpoint(self._step, rank=self._slot(name))
            if content is None:
                raise FileNotFoundError(f"no node holds {name} in memory any more")
            yield io.BytesIO(content)
            return
        buffer = _Buffer()
        yield buffer
        with _memory_lost_errors(f"take {name}"):
            self._client().put_checkpoint(self._step, buffer.getvalue(), rank=self._slot(name))

    def concat_path(self, path: AnyPath, suffix: str) -> AnyPath:
        """Return the path of a part."""
        return f"{os.fspath(path)}/{suffix}"

    def init_path(self, path: AnyPath) -> AnyPath:
        """Return the path unchanged."""
        return path

    def rename(self, path: AnyPath, new_path: AnyPath) -> None:
        """Do nothing: torch's metadata are stored in one slot under both of their names."""

    def mkdir(self, path: AnyPath) -> None:
        """Do nothing: there are no folders."""

    def exists(self, path: AnyPath) -> bool:
        """Return False: each save uses names of its own."""
        return False

    def rm_file(self, path: AnyPath) -> None:
        """Do nothing: the service drops old steps."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        """Return True: the store itself makes the names."""
        return True

    def _client(self) -> Any:  # noqa: ANN401 - the library may be missing
        return _client(self._attempt, writers=self.writers, keep=self._keep)

    def _slot(self, name: str) -> int:
        part = _PART.fullmatch(name)
        return int(part[1]) if part else self.writers


class _Buffer(io.BytesIO):
    """A buffer that keeps its content after torch closes it."""

    def close(self) -> None:
        """Do nothing: the part must still be sent."""


class _Destination:
    def __init__(self, store: MemoryStore, parts: _Parts, name: str) -> None:
        self._store, self._parts, self._name = store, parts, name

    def begin(self, size: int, *, writers: int) -> None:
        """Make the namespace of this start."""
        self._store.note_namespace(_attempt_of(self._name), writers=writers)
        self._parts.writers = writers
        self._parts.make_namespace()

    def publish(self, manifest: Manifest) -> None:
        self._store.publish(self._name, manifest)


def _name(step: int, attempt: str) -> str:
    return f"{_PREFIX}{step:08d}-{attempt}"


def _attempt_of(name: str) -> str:
    return name.removeprefix(_PREFIX).partition("-")[2]


@contextmanager
def _memory_lost_errors(what: str) -> Generator[None]:
    """Turn an error of AWS's library into a `MemoryLostError`, which workers can send."""
    try:
        yield
    except (_library().exceptions.InMemoryStorageError, KeyError, ValueError) as error:
        raise MemoryLostError(
            f"HyperPod's memory service at {_url()} did not {what}: {error}"
        ) from None


def _url() -> str:
    """Return the address of the service, which the environment may replace for tests or a proxy."""
    return os.environ.get("ULTRASCALE_MEMORY_URL") or _library().InMemoryClientConfig().base_url


class _Library:
    """The parts of AWS's library that this module uses."""

    def __init__(self) -> None:
        from amzn_sagemaker_checkpointing.config.in_memory_client import InMemoryClientConfig
        from amzn_sagemaker_checkpointing.storage.clients.inmemory import exceptions
        from amzn_sagemaker_checkpointing.storage.clients.inmemory.inmemory_client import (
            InMemoryCheckpointClient,
        )

        self.InMemoryClientConfig = InMemoryClientConfig
        self.InMemoryCheckpointClient = InMemoryCheckpointClient
        self.exceptions = exceptions


@functools.cache
def _library() -> _Library:
    try:
        return _Library()
    except ModuleNotFoundError as error:
        raise TrainingError(
            "--memory-every: checkpoints in the memory of HyperPod's nodes need AWS's library, "
            f"which is not installed ({error.name}); install amzn-sagemaker-checkpointing 1.1.3"
        ) from None


def _client(attempt: str, *, writers: int, keep: int) -> Any:  # noqa: ANN401
    library = _library()
    return library.InMemoryCheckpointClient(
        f"ultrascale-{attempt}",
        rank="0",
        world_size=str(writers),
        config=library.InMemoryClientConfig(base_url=_url(), request_retries=_RETRIES),
        # One more than the kept checkpoints is being written.
        steps_retained=keep + 1,
        logger=_quiet_logger(),
    )


def _quiet_logger() -> logging.Logger:
    """Return a logger that writes nothing: this module logs each error once."""
    logger = logging.getLogger("ultrascale_training.memory_service")
    logger.setLevel(logging.CRITICAL)
    return logger
