"""Storage writer of torch.distributed.checkpoint that publishes only complete checkpoints.

It uses the steps of every save: the coordinator checks the room when it knows the global plan, each
worker returns the sums of its files with its write results, and the coordinator publishes when it
has the results of all workers. So a save needs no collective in addition to torch's, and an error
of any worker reaches all workers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch.distributed.checkpoint import SavePlan, SavePlanner, StorageWriter
from torch.distributed.checkpoint.filesystem import FileSystemBase
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from ultrascale_training.checkpoints.hashing import AnyPath, HashingFiles
from ultrascale_training.checkpoints.manifest import FileSum, Manifest


class Destination(Protocol):
    """Place that a checkpoint is written to."""

    def begin(self, size: int, *, writers: int) -> None:
        """Check and prepare the place on the coordinator, before any worker writes.

        Args:
            size: Bytes of the tensors that are planned anew.
            writers: Workers that write a part.

        Raises:
            TrainingError: There is not enough room.
        """
        ...

    def publish(self, manifest: Manifest) -> None:
        """Publish the checkpoint as the newest, on the coordinator, after all have written."""
        ...


@dataclass(frozen=True)
class _Sums:
    """Sums of a worker's files, sent with its write results."""

    files: Mapping[str, FileSum]


class CheckpointWriter(StorageWriter):
    """Writer of a checkpoint.

    Args:
        inner: Writer of files, of torch or of AWS's connector for S3.
        folder: Folder to which ``inner`` writes the files.
        destination: Place that checks the room, and publishes.
        step: Steps that are done.
        about: Notes of the run; JSON.
    """

    def __init__(
        self,
        inner: Any,  # noqa: ANN401 - a writer whose attribute ``fs`` can be replaced
        *,
        folder: str,
        destination: Destination,
        step: int,
        about: Mapping[str, object],
    ) -> None:
        super().__init__()
        self._files = HashingFiles(cast(FileSystemBase, inner.fs), folder)
        inner.fs = self._files
        self._inner = inner
        self._destination = destination
        self._step = step
        self._about = about

    def reset(self, checkpoint_id: AnyPath | None = None) -> None:
        """Do nothing: the destination sets the place, and no argument of a save changes it."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: object, **kwargs: object) -> None:
        """Tell the inner writer whether this worker coordinates."""
        self._inner.set_up_storage_writer(is_coordinator, *args, **kwargs)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan unchanged: only the coordinator makes the folder."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Check the room, then let every worker write."""
        self._destination.begin(planned_bytes(plans), writers=len(plans))
        return self._inner.prepare_global_plan(plans)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this worker's files, and return their sums with the results."""
        written = self._inner.write_data(plan, planner).wait()
        result: Future[list[WriteResult]] = Future()
        result.set_result([*written, cast(WriteResult, _Sums(dict(self._files.sums)))])
        return result

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write torch's metadata and the manifest, and publish the checkpoint."""
        self._files.sums.clear()
        everything = [result for worker in results for result in worker]
        sums = [result for result in everything if isinstance(result, _Sums)]
        self._inner.finish(
            metadata, [[result for result in everything if not isinstance(result, _Sums)]]
        )
        files = {name: file for each in sums for name, file in each.files.items()}
        self._destination.publish(
            Manifest(step=self._step, about=self._about, files={**files, **self._files.sums})
        )

    def storage_meta(self) -> StorageMeta | None:
        """Return torch's notes on the storage."""
        return self._inner.storage_meta()

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        """Return False: a save may not choose a place of its own."""
        return False


def planned_bytes(plans: Sequence[SavePlan]) -> int:
    """Return the bytes of the tensors that the workers will write, without headers."""
    return sum(
        math.prod(item.tensor_data.chunk.sizes) * item.tensor_data.properties.dtype.itemsize
        for plan in plans
        for item in plan.items
        if item.tensor_data is not None
    )


def state_bytes(state: Mapping[str, object]) -> int:
    """Return the bytes of a state's tensors; a shard counts as the whole tensor."""
    tensors = [value for value in state.values() if isinstance(value, torch.Tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
