"""A file system for torch.distributed.checkpoint that hashes every file while it is written."""

import hashlib
import io
import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any, cast

from torch.distributed.checkpoint.filesystem import FileSystemBase

from ultrascale_training.checkpoints.manifest import FileSum

_CHUNK = 1 << 22
# Bytes above which hashing in another thread is worth the switch of threads.
_BESIDE = 1 << 20
_THREADS = ThreadPoolExecutor(thread_name_prefix="sha256")
AnyPath = str | os.PathLike[str]


class HashingFiles(FileSystemBase):
    """Wrapper of a file system: files are hashed while they are written.

    Args:
        files: File system that writes and reads.
        folder: Folder of the checkpoint.
    """

    def __init__(self, files: FileSystemBase, folder: str) -> None:
        self._files = files
        self._folder = folder
        # Sums of the files that were written through it, by their names in the folder
        self.sums: dict[str, FileSum] = {}

    @contextmanager
    def create_stream(self, path: AnyPath, mode: str) -> Generator[io.IOBase]:
        """Open a file; the sum of a written file is noted at its close."""
        with self._files.create_stream(path, mode) as stream:
            if mode != "wb":
                yield stream
                return
            written = _HashingStream(cast(IO[bytes], stream))
            yield cast(io.IOBase, written)
            self.sums[self._name(path)] = written.sum()

    def rename(self, path: AnyPath, new_path: AnyPath) -> None:
        """Rename a file, and its sum."""
        self._files.rename(path, new_path)
        self.sums[self._name(new_path)] = self.sums.pop(self._name(path))

    def concat_path(self, path: AnyPath, suffix: str) -> AnyPath:
        """Return the path of a file in a folder."""
        return self._files.concat_path(path, suffix)

    def init_path(self, path: AnyPath) -> AnyPath:
        """Return the path as the file system wants it."""
        return self._files.init_path(path)

    def mkdir(self, path: AnyPath) -> None:
        """Make a folder."""
        self._files.mkdir(path)

    def exists(self, path: AnyPath) -> bool:
        """Return whether a file is there."""
        return self._files.exists(path)

    def rm_file(self, path: AnyPath) -> None:
        """Delete a file."""
        self._files.rm_file(path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        """Return True: the owner of the file system has already checked the place."""
        return True

    def _name(self, path: AnyPath) -> str:
        return os.fspath(path).removeprefix(self._folder).lstrip("/")


class _HashingStream:
    """Stream that hashes bytes and passes them on, in the order in which they are written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self._bytes = 0

    def write(self, content: Any) -> int:  # noqa: ANN401 - any buffer
        length = memoryview(content).nbytes
        self._bytes += length
        if length < _BESIDE:
            self._hash.update(content)
            self._stream.write(content)
            return length
        # Both calls release Python's lock. The buffer belongs to its owner again when this returns.
        summed = _THREADS.submit(self._hash.update, content)
        try:
            self._stream.write(content)
        finally:
            summed.result()
        return length

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Do nothing: torch flushes after each of thousands of small tensors."""

    def fileno(self) -> int:
        # torch syncs the descriptor without flushing the buffer first: the last kilobytes of a file
        # would stay in the page cache.
        self._stream.flush()
        return self._stream.fileno()

    def close(self) -> None:
        self._stream.close()

    def sum(self) -> FileSum:
        return FileSum(bytes=self._bytes, sha256=self._hash.hexdigest())


def sum_of(stream: IO[bytes]) -> FileSum:
    """Return the size and SHA-256 of the rest of a stream."""
    found = hashlib.sha256()
    size = 0
    while chunk := stream.read(_CHUNK):
        found.update(chunk)
        size += len(chunk)
    return FileSum(bytes=size, sha256=found.hexdigest())
