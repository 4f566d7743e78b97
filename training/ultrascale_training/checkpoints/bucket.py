"""Checkpoints in a bucket of S3, written by AWS's connector for PyTorch.

S3 renames nothing. Each save writes below a prefix of its own, ``step-00000040-<attempt>/``, and
its manifest is the last object. S3 shows an object whole or not at all, and shows it to everybody
at once, so a prefix with a manifest is complete. Source for the consistency:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
"""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch.distributed.checkpoint import StorageReader, StorageWriter

from ultrascale_training.checkpoints.manifest import MANIFEST, Manifest
from ultrascale_training.checkpoints.noted import NotedStore
from ultrascale_training.checkpoints.saver import replaced
from ultrascale_training.checkpoints.stores import Checkpoint
from ultrascale_training.checkpoints.writer import CheckpointWriter
from ultrascale_training.errors import OutsideError
from ultrascale_training.objects import BucketObjects

_NAME = re.compile(r"step-\d{8,}-[0-9a-z-]+")
# The connector deletes one object per request, and a checkpoint has an object for each writer.
_DELETIONS_AT_ONCE = 32


class BucketStore(NotedStore):
    """Checkpoints of a run below ``s3://bucket/prefix``.

    Args:
        location: ``s3://bucket/prefix``.
        keep: Newest checkpoints that stay when another is published.
    """

    def __init__(self, location: str, *, keep: int) -> None:
        self._bucket = BucketObjects(location)
        super().__init__(self._bucket, keep=keep, names=_NAME)

    def prepare(self, *, clean: bool = True) -> None:
        """Write, read and delete an object and, if ``clean``, delete incomplete checkpoints.

        Raises:
            OutsideError: The pod's role may not write, read or delete there.
        """
        tried = "tried"
        try:
            self.objects.put(tried, b"1")
            self.objects.get(tried)
            self.objects.delete(tried)
            folders = self.folders()
        except Exception as error:  # The connector raises the same error for everything.
            raise OutsideError(
                f"{self.location}: the first worker cannot write, list, read and delete objects "
                f"there ({error}); check the bucket's name and region, and that the job's service "
                "account has a role that may"
            ) from None
        if clean:
            for name in folders:
                if not self.is_published(name):
                    self.delete(name)

    def check_room(self, size: int) -> None:
        """Do nothing: a bucket has no size limit."""

    def writer(self, step: int, *, attempt: str, about: Mapping[str, object]) -> StorageWriter:
        """Return the writer of a checkpoint."""
        from s3torchconnector.dcp import S3StorageWriter

        name = _name(step, attempt)
        folder = f"{self.location}/{name}"
        inner = S3StorageWriter(self._bucket.region, folder)
        inner.fs = self._files()
        return CheckpointWriter(
            inner,
            folder=folder,
            destination=_Destination(self, name),
            step=step,
            about=about,
        )

    def reader(self, checkpoint: Checkpoint) -> StorageReader:
        """Return the reader of a checkpoint."""
        from s3torchconnector import S3ReaderConstructor
        from s3torchconnector.dcp import S3StorageReader

        # This reader fetches only the ranges of a file that the worker needs, and joins ranges that
        # are near.
        ranges = S3ReaderConstructor.dcp_optimized()
        reader = S3StorageReader(
            self._bucket.region, checkpoint.location, reader_constructor=ranges
        )
        reader.fs = self._files(ranges)
        return reader

    def discard(self, step: int, *, attempt: str) -> None:
        """Delete the files of a failed save."""
        self.delete(_name(step, attempt))

    def delete(self, name: str) -> None:
        """Delete a checkpoint, its manifest first, so that it no longer counts as complete."""
        self.objects.delete(f"{name}/{MANIFEST}")
        with ThreadPoolExecutor(_DELETIONS_AT_ONCE) as threads:
            # The list waits for all deletions, so that an error of any deletion is raised here.
            list(threads.map(self.objects.delete, self.objects.names(f"{name}/")))

    def _files(self, reader: Any = None) -> Any:  # noqa: ANN401 - the connector has loose types
        from s3torchconnector.dcp import S3FileSystem

        return S3FileSystem(
            self._bucket.region, s3_client=self._bucket.client, reader_constructor=reader
        )


class _Destination:
    def __init__(self, store: BucketStore, name: str) -> None:
        self._store, self._name = store, name

    def begin(self, size: int, *, writers: int) -> None:
        """Do nothing: a prefix need not be made."""

    def publish(self, manifest: Manifest) -> None:
        sizes = self._store.objects.sizes(f"{self._name}/")
        for name, file in manifest.files.items():
            if sizes.get(f"{self._name}/{name}") != file.bytes:
                raise replaced(f"{self._store.location}/{self._name}/{name}")
        self._store.publish(self._name, manifest)


def _name(step: int, attempt: str) -> str:
    return f"step-{step:08d}-{attempt}"
