"""Start of a run: its first step, and the settings that it shares with its checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch.distributed as dist

from ultrascale_bert.arguments import Arguments
from ultrascale_bert.shards import Index
from ultrascale_training import fingerprint
from ultrascale_training.agreement import agree, check_shared
from ultrascale_training.checkpoints import (
    Checkpoint,
    DirectoryStore,
    Store,
    newest_sound,
    open_checkpoint,
    verify,
)
from ultrascale_training.errors import TrainingError
from ultrascale_training.fingerprint import Fingerprint

# Settings that make up the model and the samples of a step.
_IDENTITY = ("model", "batch_size", "seed")
# Further settings that a run keeps from one start to the next; a run that begins with the
# checkpoint of another run may choose them anew.
_SCHEDULE = ("lr", "warmup_steps", "weight_decay", "clip", "dropout", "bf16")


@dataclass(frozen=True, kw_only=True)
class Start:
    """Starting point of a run."""

    step: int  # Steps that are done
    micro_batches: int  # Micro-batches of `--batch-size` rows that make up a global batch
    checkpoint: Checkpoint | None  # Checkpoint to load, None at step 0
    name: str  # Unique to this start
    fingerprint: Fingerprint  # Fingerprint of data, tokenizer and order

    @property
    def durable(self) -> bool:
        """Whether the state at ``step`` outlives the nodes already."""
        return self.checkpoint is None or self.checkpoint.durable


def about(arguments: Arguments, index: Index, start: Start) -> Mapping[str, object]:
    """Return the notes of a checkpoint beside its tensors."""
    return {
        "arguments": {name: getattr(arguments, name) for name in (*_IDENTITY, *_SCHEDULE)},
        "micro_batches": start.micro_batches,
        "data": _data(index),
        "fingerprint": start.fingerprint,
    }


def resume_from(
    arguments: Arguments, store: Store, group: dist.ProcessGroup, *, collecting: bool, name: str
) -> Checkpoint | None:
    """Return the checkpoint to go on from; a collective of all workers.

    Args:
        arguments: Arguments of this start.
        store: The run's checkpoints.
        group: Group of all workers.
        collecting: The run only collects graphs: it starts anew, and leaves the checkpoints of a
            run that may be at work in the same directory as they are.
        name: Unique to this start.

    Raises:
        TrainingError: On every worker: no checkpoint of the run is sound, or a worker does not
            see the output directory of the first.
    """
    agree(group, lambda: store.prepare(clean=not collecting))
    if isinstance(store.durable, DirectoryStore):
        check_shared(store.durable, group, name=name)
    if collecting:
        return None
    checkpoint = newest_sound(store, group)
    if checkpoint is None and arguments.resume not in ("auto", "never"):
        checkpoint = agree(group, lambda: open_checkpoint(arguments.resume))
        verify(checkpoint, group)
    return checkpoint


def decide(
    arguments: Arguments,
    index: Index,
    store: Store,
    checkpoint: Checkpoint | None,
    *,
    world: int,
    restarted: bool,
    name: str,
) -> Start:
    """Return where to start; for the first worker.

    Args:
        arguments: Arguments of this start.
        index: Of the dataset.
        store: The run's checkpoints.
        checkpoint: Checkpoint to go on from.
        world: Workers.
        restarted: torchrun has started workers of this job before.
        name: Unique to this start.

    Raises:
        TrainingError: The checkpoint belongs to another run, or the disk has no room for one.
    """
    if checkpoint is None:
        micro_batches = _micro_batches(arguments, world=world)
        step = 0
    else:
        if arguments.resume == "never" and not restarted:
            raise TrainingError(
                f"--resume: 'never' would mix two runs, for {checkpoint.location} is there; "
                "use another --output-dir, delete the checkpoints, or resume"
            )
        own = checkpoint.location.startswith(f"{store.location}/")
        kept = (*_IDENTITY, *_SCHEDULE) if own else _IDENTITY
        micro_batches, step = checkpoint.about["micro_batches"], checkpoint.step
        mistakes = _differences(checkpoint, arguments, index, kept)
        if mistakes:
            raise TrainingError("\n".join(mistakes))
    return Start(
        step=step,
        micro_batches=micro_batches,
        checkpoint=checkpoint,
        name=name,
        fingerprint=_fingerprint(arguments, index, micro_batches=micro_batches),
    )


def _micro_batches(arguments: Arguments, *, world: int) -> int:
    """Return the micro-batches of a global batch of a run that starts at step 0."""
    if arguments.global_batch is not None:
        return arguments.global_batch // arguments.batch_size
    return (arguments.grad_accum_usteps or 1) * world


def _fingerprint(arguments: Arguments, index: Index, *, micro_batches: int) -> Fingerprint:
    """Return the fingerprint of a step's data and settings; for the first worker, as it reads."""
    folder = arguments.data_dir
    return {
        "data": fingerprint.of_files(
            [folder / shard.file for shard in index.shards if (folder / shard.file).is_file()]
        ),
        "tokenizer": fingerprint.of_value(
            [index.vocabulary, fingerprint.of_files(folder.glob("vocab*.txt"))]
        ),
        "order": fingerprint.of_value(
            [
                [shard.rows for shard in index.shards],
                *(arguments.batch_size, micro_batches, arguments.seed),
            ]
        ),
    }


def _data(index: Index) -> dict[str, int]:
    return {
        "rows": index.rows,
        "seq_len": index.seq_len,
        "max_pred_len": index.max_pred_len,
        "vocabulary": index.vocabulary,
    }


def _differences(
    checkpoint: Checkpoint, arguments: Arguments, index: Index, kept: Sequence[str]
) -> list[str]:
    where = f"of {checkpoint.location}"
    before = checkpoint.about["arguments"]
    mistakes = [
        f"--{name.replace('_', '-')}: resumes a run {where} with {before[name]!r}, got "
        f"{getattr(arguments, name)!r}; keep it, or use another --output-dir"
        for name in kept
        if before[name] != getattr(arguments, name)
    ]
    data, now = dict(checkpoint.about["data"]), _data(index)
    if arguments.accept_new_data:
        data["rows"] = now["rows"]
    if data != now:
        mistakes.append(
            f"--data-dir: resumes a run {where} on {checkpoint.about['data']}, got {now}; "
            "use the same dataset, or another --output-dir"
        )
    elif not mistakes and not arguments.accept_new_data:
        today = _fingerprint(arguments, index, micro_batches=checkpoint.about["micro_batches"])
        parts = fingerprint.differences(checkpoint.about.get("fingerprint"), today)
        mistakes += fingerprint.refusal(parts, checkpoint.location)
    rows = checkpoint.about["micro_batches"] * before["batch_size"]
    if arguments.global_batch is not None and arguments.global_batch != rows:
        mistakes.append(
            f"--global-batch: resumes a run {where} with {rows}, got {arguments.global_batch}; "
            "leave it out, or use another --output-dir"
        )
    return mistakes
