"""Decisions of the first worker that all workers follow at the start of a run."""

from collections.abc import Callable
from typing import TypeVar, cast

import torch
import torch.distributed as dist

from ultrascale_training.checkpoints import DirectoryStore
from ultrascale_training.errors import OutsideError, TrainingError

Result = TypeVar("Result")


def agree(group: dist.ProcessGroup, decide: Callable[[], Result]) -> Result:
    """Return, on every worker, the result of ``decide`` on the first worker.

    Raises:
        TrainingError: On every worker, the error that ``decide`` raised on the first.
    """
    box: list[Result | TrainingError | None] = [None, None]
    if dist.get_rank() == 0:
        try:
            box[0] = decide()
        except TrainingError as error:
            kind = OutsideError if isinstance(error, OutsideError) else TrainingError
            box[1] = kind(str(error))
    dist.broadcast_object_list(box, src=0, group=group)
    if isinstance(box[1], TrainingError):
        raise box[1]
    return cast(Result, box[0])


def check_shared(store: DirectoryStore, group: dist.ProcessGroup, *, name: str) -> None:
    """Check that every worker sees the same output directory as the first worker.

    A checkpoint would be worthless if a worker wrote its part to a disk of its own.

    Raises:
        TrainingError: On every worker, if any worker does not see it.
    """
    marker = agree(group, lambda: store.mark(name))
    blind = torch.tensor([0 if marker.is_dir() else 1])
    dist.all_reduce(blind, group=group)
    if dist.get_rank() == 0:
        marker.rmdir()
    if int(blind) > 0:
        raise OutsideError(
            f"--output-dir: {int(blind)} workers do not see what the first one wrote there, got "
            f"{store.location!r}; use a file system that all nodes mount"
        )
