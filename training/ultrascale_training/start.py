"""Start of a run: the first worker tells the others where to start, or why it cannot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import torch
import torch.distributed as dist

from ultrascale_training.arguments import Arguments
from ultrascale_training.checkpoints import Checkpoint, CheckpointDirectory, open_checkpoint
from ultrascale_training.errors import TrainingError
from ultrascale_training.shards import Index

Result = TypeVar("Result")
# What makes up the model and the samples of a step.
_IDENTITY = ("model", "batch_size", "seed")
# What a run keeps as well from one start to the next; one that begins with the checkpoint of
# another run may choose it anew.
_SCHEDULE = ("lr", "warmup_steps", "weight_decay", "clip", "dropout", "bf16")


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where a run begins.

    Attributes:
        step: Steps that are done.
        micro_batches: Micro-batches of `--batch-size` rows that make up a global batch.
        checkpoint: What to load, None at step 0.
        name: Unique to this start.
        marker: What every worker must see.
    """

    step: int
    micro_batches: int
    checkpoint: Path | None
    name: str
    marker: Path


def agree(group: dist.ProcessGroup, decide: Callable[[], Result]) -> Result:
    """Return on every worker what ``decide`` returned on the first.

    Raises:
        TrainingError: On every worker, what it raised on the first.
    """
    box: list[Result | str | None] = [None, None]
    if dist.get_rank() == 0:
        try:
            box[0] = decide()
        except TrainingError as error:
            box[1] = str(error)
    dist.broadcast_object_list(box, src=0, group=group)
    if box[1] is not None:
        raise TrainingError(str(box[1]))
    return cast(Result, box[0])


def about(arguments: Arguments, index: Index, *, micro_batches: int) -> Mapping[str, object]:
    """Return what a checkpoint notes beside its tensors."""
    return {
        "arguments": {name: getattr(arguments, name) for name in (*_IDENTITY, *_SCHEDULE)},
        "micro_batches": micro_batches,
        "data": _data(index),
    }


def decide(
    arguments: Arguments,
    index: Index,
    directory: CheckpointDirectory,
    *,
    world: int,
    restarted: bool,
    collecting: bool,
    name: str,
) -> Start:
    """Return where to start; for the first worker.

    Args:
        arguments: As this start was given them.
        index: Of the dataset.
        directory: The run's checkpoints.
        world: Workers.
        restarted: torchrun has started workers of this job before.
        collecting: The run only collects graphs: it starts anew, and leaves the checkpoints of a
            run that may be at work in the same directory as they are.
        name: Unique to this start.

    Raises:
        TrainingError: The checkpoint to resume from is not there, or belongs to another run.
    """
    directory.prepare(clean=not collecting)
    if collecting:
        return _anew(arguments, directory, world=world, name=name)
    found = directory.newest()
    kept = (*_IDENTITY, *_SCHEDULE)
    if arguments.resume == "never" and found is not None and not restarted:
        raise TrainingError(
            f"--resume: 'never' would mix two runs, for {found.path} is there; "
            "use another --output-dir, delete the checkpoints, or resume"
        )
    if arguments.resume not in ("auto", "never") and found is None:
        found, kept = open_checkpoint(Path(arguments.resume)), _IDENTITY
    if found is not None:
        mistakes = _differences(found, arguments, index, kept)
        if mistakes:
            raise TrainingError("\n".join(mistakes))
    if found is None:
        return _anew(arguments, directory, world=world, name=name)
    return Start(
        step=found.step,
        micro_batches=found.about["micro_batches"],
        checkpoint=found.path,
        name=name,
        marker=directory.mark(name),
    )


def check_shared(start: Start, output: Path, group: dist.ProcessGroup) -> None:
    """Check that every worker sees the output directory of the first.

    A worker that wrote its part of a checkpoint to a disk of its own would make it worthless.

    Raises:
        TrainingError: On every worker, if one does not.
    """
    sees = start.marker.is_dir() and (start.checkpoint is None or start.checkpoint.is_dir())
    blind = torch.tensor([0 if sees else 1])
    dist.all_reduce(blind, group=group)
    if dist.get_rank() == 0:
        start.marker.rmdir()
    if int(blind) > 0:
        raise TrainingError(
            f"--output-dir: {int(blind)} workers do not see what the first one wrote there, got "
            f"{str(output)!r}; use a file system that all nodes mount"
        )


def _anew(arguments: Arguments, directory: CheckpointDirectory, *, world: int, name: str) -> Start:
    return Start(
        step=0,
        micro_batches=_micro_batches(arguments, world=world),
        checkpoint=None,
        name=name,
        marker=directory.mark(name),
    )


def _micro_batches(arguments: Arguments, *, world: int) -> int:
    """Return the micro-batches of a global batch of a run that starts at step 0."""
    if arguments.global_batch is not None:
        return arguments.global_batch // arguments.batch_size
    return (arguments.grad_accum_usteps or 1) * world


def _data(index: Index) -> dict[str, int]:
    return {
        "rows": index.rows,
        "seq_len": index.seq_len,
        "max_pred_len": index.max_pred_len,
        "vocabulary": index.vocabulary,
    }


def _differences(
    found: Checkpoint, arguments: Arguments, index: Index, kept: Sequence[str]
) -> list[str]:
    where = f"of {found.path}"
    before = found.about["arguments"]
    mistakes = [
        f"--{name.replace('_', '-')}: resumes a run {where} with {before[name]!r}, got "
        f"{getattr(arguments, name)!r}; keep it, or use another --output-dir"
        for name in kept
        if before[name] != getattr(arguments, name)
    ]
    if found.about["data"] != _data(index):
        mistakes.append(
            f"--data-dir: resumes a run {where} on {found.about['data']}, got {_data(index)}; "
            "use the same dataset, or another --output-dir"
        )
    rows = found.about["micro_batches"] * before["batch_size"]
    if arguments.global_batch is not None and arguments.global_batch != rows:
        mistakes.append(
            f"--global-batch: resumes a run {where} with {rows}, got {arguments.global_batch}; "
            "leave it out, or use another --output-dir"
        )
    return mistakes
