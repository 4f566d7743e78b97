"""Writes and reads the tensors of a run through torch.distributed.checkpoint.

Tensors are stored under the names of the bare model, whole or in shards, so a run resumes on
another number of workers, and under DDP what FSDP wrote and the other way round.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ultrascale_training.checkpoints import CheckpointDirectory
from ultrascale_training.devices import host_group

# Under DDP every worker has everything: so many of them write a part each, the others nothing.
_DDP_WRITERS = 8
State = dict[str, Tensor]


def tensors_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Return the parameters of ``model`` and the optimizer's state of each, by name."""
    found: State = {}
    for name, parameter in model.named_parameters():
        found[f"model.{name}"] = parameter.detach()
        for key, value in optimizer.state[parameter].items():
            found[f"optimizer.{name}.{key}"] = value
    return found


class Saver:
    """Saves a run, beside the training or in its way.

    It has a process group of its own: collectives of the thread that saves would otherwise mix
    with those of the training.

    Args:
        directory: Where checkpoints go.
        sharded: Each worker holds a part of the tensors (FSDP), not all of them (DDP).
        background: Write in a thread while the training goes on.
        writer: Unique to this start of the run, the same on all its workers.
        timeout: Of a collective, and so of the slowest writer.
    """

    def __init__(
        self,
        directory: CheckpointDirectory,
        *,
        sharded: bool,
        background: bool,
        writer: str,
        timeout: timedelta,
    ) -> None:
        self._directory = directory
        self._sharded = sharded
        self._background = background
        self._writer = writer
        world = dist.get_world_size()
        self._writers = world if sharded else min(world, _DDP_WRITERS)
        self._rank = dist.get_rank()
        self._group = host_group(timeout, range(self._writers))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        self.published: list[int] = []
        self.last_step = -1

    def save(self, step: int, tensors: State, about: Mapping[str, object]) -> None:
        """Save the state after ``step`` steps; waits for the save before this one.

        Raises:
            dcp.CheckpointException: This save, or in the background the one before, has failed.
        """
        self.wait()
        self.last_step = step
        if self._rank >= self._writers:
            return
        staged = {name: _copy(value) for name, value in self._mine(tensors)}
        self._pending = self._thread.submit(self._write, step, staged, dict(about))
        if not self._background:
            self.wait()

    def wait(self) -> None:
        """Wait until the last save is published, or has failed on this worker."""
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def check(self) -> None:
        """Raise what made the last save fail, if it has failed by now."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def _mine(self, tensors: State) -> Iterator[tuple[str, Tensor]]:
        for number, (name, value) in enumerate(tensors.items()):
            if isinstance(value, DTensor) or number % self._writers == self._rank:
                yield name, value

    def _write(self, step: int, staged: State, about: Mapping[str, object]) -> None:
        partial = self._directory.partial(step, writer=self._writer)
        if self._rank == 0:
            self._directory.begin(step, writer=self._writer)
        dist.barrier(self._group)
        # It ends, on each writer, when the files of all of them are on the disk.
        dcp.save(
            staged,
            storage_writer=dcp.FileSystemWriter(partial, sync_files=True),
            process_group=self._group,
        )
        if self._rank == 0:
            self._directory.publish(partial, step=step, about=about)
            self.published.append(step)


def load(checkpoint: Path, tensors: State, *, group: dist.ProcessGroup) -> None:
    """Read a checkpoint into ``tensors``, as many of it as this worker holds."""
    # torch.distributed.checkpoint reads into memory of the host or of a GPU, not of XLA.
    direct = {name: value for name, value in tensors.items() if value.device.type != "xla"}
    # What they hold is not asked for: each question would be a graph to compile.
    copied = {
        name: torch.empty(value.shape, dtype=value.dtype)
        for name, value in tensors.items()
        if name not in direct
    }
    dcp.load({**direct, **copied}, checkpoint_id=checkpoint, process_group=group)
    for name, value in copied.items():
        tensors[name].copy_(value)


def _copy(value: Tensor) -> Tensor:
    return value.detach().to("cpu", copy=True)
