"""Saving of a run's tensors through torch.distributed.checkpoint.

Tensors are stored under the names of the bare model, whole or in shards, so a run resumes on
another number of workers, and DDP and FSDP read each other's checkpoints.
"""

import itertools
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.staging import AsyncStager

from ultrascale_training.checkpoints.memory import MemoryLostError
from ultrascale_training.checkpoints.stores import Store
from ultrascale_training.errors import OutsideError, TrainingError, full_disk

_log = logging.getLogger("ultrascale_training")
State = dict[str, Tensor]
# Names under which torch keeps the plans of saves in this process.
_PLANS = map(str, itertools.count())


def tensors_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Return the parameters of ``model``, and the optimizer's state of each, by name."""
    found: State = {}
    for name, parameter in model.named_parameters():
        found[f"model.{name}"] = parameter.detach()
        for key, value in optimizer.state[parameter].items():
            found[f"optimizer.{name}.{key}"] = value
    return found


class _Planner(DefaultSavePlanner):
    """Planner of saves whose tensors never change: planned at the first save, and then kept.

    The first worker plans for all, tensor by tensor, in the interpreter that trains as well.
    """

    def __init__(self, key: str) -> None:
        super().__init__(enable_plan_caching=True)
        self._cached_plans_key = key


class Saver:
    """Saver of a run's state, in parallel with the training or while it waits.

    Args:
        store: Store of the checkpoints.
        group: Group of the workers that write, for tensors of the host; nothing else may use it:
            collectives of the saving thread would otherwise mix with the training's.
            None on a worker that writes nothing.
        attempt: Unique to this start of the run, the same on all its workers.
        background: Write in a thread while the training continues.
        device: Type of the device that holds the state.
    """

    def __init__(
        self,
        store: Store,
        *,
        group: dist.ProcessGroup | None,
        attempt: str,
        background: bool = True,
        device: str = "cpu",
    ) -> None:
        self._store = store
        self._group = group
        self._attempt = attempt
        self._background = background
        self._leads = group is not None and dist.get_rank(group) == 0
        self._stager = stager_of(device)
        self._pending: Future[Any] | None = None
        self._saving = -1
        self._durable = True
        self._memory_lost = False
        self._plans = next(_PLANS)
        # Steps of durable checkpoints that this worker has published and nobody has read yet; only
        # the first worker publishes
        self.published: list[int] = []
        self.last_step = -1  # Step of the last durable save, -1 before the first

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        about: Mapping[str, object],
        *,
        durable: bool = True,
    ) -> None:
        """Save the state after ``step`` steps, after waiting for the previous save.

        Args:
            step: Steps that are done.
            state: Tensors by name, and other values that torch can save.
            about: Notes of the run; JSON.
            durable: Whether the checkpoint must outlive the nodes. Otherwise it goes to the nodes'
                    memory; a store without memory saves nothing.

        Raises:
            TrainingError: This save, or the previous save in the background, found no room.
            CheckpointException: A save failed in another way.
        """
        self.wait()
        made = self._store.writer if durable else self._store.passing_writer
        if durable:
            self._memory_lost = False
        elif self._memory_lost:
            return
        writer = made(step, attempt=self._attempt, about=about)
        if writer is None:
            return
        self._durable, self._saving = durable, step
        if durable:
            self.last_step = step
        if self._group is None:
            return
        self._pending = cast(
            Future[Any],
            dcp.async_save(
                dict(state),
                storage_writer=writer,
                planner=_Planner(self._plans),
                process_group=self._group,
                async_stager=self._stager,
            ),
        )
        if not self._background:
            self.wait()

    def wait(self) -> None:
        """Wait until the last save is published or has failed.

        Raises:
            TrainingError: The save found no room.
            CheckpointException: The save failed in another way.
        """
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        try:
            pending.result()
        except CheckpointException as error:
            # The plan of a failed save may be kept by some workers alone.
            self._plans = next(_PLANS)
            lost = _memory_error(error)
            if lost is not None:
                # Every worker knows the error, so no worker tries again before the next save.
                self._memory_lost = True
                if self._leads:
                    _log.warning("%s; no such checkpoint before the next durable one", lost)
                return
            if self._leads:
                self._store.discard(self._saving, attempt=self._attempt)
            raise explained(error) from error
        if self._leads and self._durable:
            self.published.append(self._saving)

    def check(self) -> None:
        """Raise the error of the last save if it has already failed."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def close(self) -> None:
        """Wait for the last save, and free the memory of the copies."""
        self.wait()
        self._stager.close()


def _memory_error(error: CheckpointException) -> MemoryLostError | None:
    """Return the memory service's error within ``error``; None for another failure."""
    for cause, _ in error.failures.values():
        if isinstance(cause, MemoryLostError):
            return cause
    return None


def explained(error: CheckpointException) -> BaseException:
    """Return the error of a failed save for users, or ``error`` itself.

    Returns:
        A `TrainingError` if the disk is full, another start of the run has deleted the files of
        this save, or ``error`` contains another mistake; otherwise ``error``.
    """
    causes = [cause for cause, _ in error.failures.values()]
    for cause in causes:
        if isinstance(cause, TrainingError):
            return cause
    for cause in causes:
        if (full := full_disk(cause)) is not None:
            return full
        if isinstance(cause, FileNotFoundError):
            return replaced(str(cause.filename or cause))
    return error


def replaced(file: str) -> OutsideError:
    """Return the error for ``file`` of a checkpoint that disappeared while it was written."""
    return OutsideError(
        f"{file}: is gone before its checkpoint is complete. Another start of this run has begun "
        "since, and deletes what is incomplete; stop one of the two, or give one another output"
    )


class _Copies(AsyncStager):
    """Stager that copies state to the host's memory: torch's own cannot copy XLA's tensors.

    The memory of the copies is kept from save to save: new memory has to be mapped page by page,
    which takes longer than copying.
    """

    _synchronize_after_execute = False

    def __init__(self) -> None:
        self._copies: State = {}

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self._copy(name, value.detach()) if isinstance(value, Tensor) else value
            for name, value in state_dict.items()
        }

    def synchronize_staging(self) -> None:
        """Do nothing: `stage` returns when the copies are made."""

    def close(self) -> None:
        """Free the memory of the copies."""
        self._copies.clear()

    def _copy(self, name: str, value: Tensor) -> Tensor:
        copy = self._copies.get(name)
        if copy is not None and (copy.shape, copy.dtype) == (value.shape, value.dtype):
            return copy.copy_(value)
        self._copies[name] = copy = value.to("cpu", copy=True)
        return copy


def stager_of(device: str) -> AsyncStager:
    """Return the stager that copies the state before it is written."""
    if device != "cuda":
        return _Copies()
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    # Pinned memory is kept from save to save: pinning takes longer than copying. The training waits
    # only for the copy, a second for tens of gigabytes.
    options = StagingOptions(
        use_pinned_memory=True,
        use_shared_memory=False,
        use_async_staging=False,
        use_non_blocking_copy=True,
    )
    return DefaultStager(options)
