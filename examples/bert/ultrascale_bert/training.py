"""The loop: vote, compute, report, save."""

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor

from ultrascale_bert import optimizer as adamw
from ultrascale_bert.arguments import Arguments
from ultrascale_bert.devices import Device
from ultrascale_bert.loader import Loader, Part
from ultrascale_bert.model import Batch
from ultrascale_bert.replica import Replica
from ultrascale_bert.start import Start
from ultrascale_training.checkpoints import NanGuard, Saver, State, tensors_of
from ultrascale_training.launch import note_stop
from ultrascale_training.lease import Lease
from ultrascale_training.order import seed_of
from ultrascale_training.progress import Progress
from ultrascale_training.restarts import RestartLedger
from ultrascale_training.stop import STOPPED_EARLY, StopRequest
from ultrascale_training.stragglers import Stragglers, WorkClock
from ultrascale_training.vote import StopVote


def collects_graphs() -> bool:
    """Return whether neuron_parallel_compile runs the program to collect its graphs.

    The computed values are not valid then, so none of them may be kept. Source:
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/api-reference-guide/training/pytorch-neuron-parallel-compile.html
    """
    return "NEURON_EXTRACT_GRAPHS_ONLY" in os.environ


class _Scalars(NamedTuple):
    losses: Tensor  # masked-LM and next-sentence, means over the global batch
    norm: Tensor
    rate: float


@dataclass(frozen=True, kw_only=True)
class Worker:
    """Parts that the training loop works with."""

    arguments: Arguments
    device: Device
    replica: Replica
    optimizer: torch.optim.Optimizer
    loader: Loader
    saver: Saver
    vote: StopVote  # Decides when all workers stop, without a collective of the device
    clock: WorkClock  # Measures the work of this worker, to find nodes that are slow
    # Workers among which a save is shared out where each has everything; None where each has a
    # shard.
    writers: int | None
    guard: NanGuard  # Judges a loss that is no number
    control: dist.ProcessGroup  # Process group of the host, for what is decided once
    start: Start
    seq_len: int  # Tokens of a row
    about: Mapping[str, object]  # Notes of a checkpoint beside its tensors
    progress: Progress | None  # None on all workers but the first, as the ledger
    ledger: RestartLedger | None
    lease: Lease | None
    stop: StopRequest


def last_step(arguments: Arguments, start: Start) -> int:
    """Return the step at which this start of the run ends."""
    if arguments.steps_this_run is None:
        return arguments.max_steps
    return min(arguments.max_steps, start.step + arguments.steps_this_run)


def train(worker: Worker) -> int:
    """Train to the last step, or until a worker has to stop, and return the exit status.

    Raises:
        TrainingError: The loss is not a number any more, data are missing, or the disk is full.
        SuspectCheckpointError: The loss is not a number soon after a resume.
    """
    arguments, step = worker.arguments, worker.start.step
    last = last_step(arguments, worker.start)
    reported, stragglers = step, Stragglers()
    while step < last:
        with worker.vote.working():
            part = worker.loader.next()
        if worker.vote.cast(worker.stop.requested):
            if step > worker.start.step or not worker.start.durable:
                _save(worker, step)
            _leave(worker, "stopped", step)
            note_stop()
            return STOPPED_EARLY
        if worker.replica.sharded:
            worker.clock.probe(step)
        scalars = _compute(worker, part)
        step += 1
        save = step % arguments.checkpoint_every == 0 or step == last
        passing = arguments.memory_every > 0 and step % arguments.memory_every == 0
        if save or passing or step % arguments.log_every == 0:
            _report(worker, step, scalars, steps=step - reported)
            reported = step
        if save or passing:
            _save(worker, step, durable=save)
        worker.saver.check()
        _report_published(worker)
        stragglers.report(worker.vote, worker.progress, step)
    _leave(worker, "done", step)
    return 0


def _compute(worker: Worker, part: Part) -> _Scalars:
    arguments, device, replica = worker.arguments, worker.device, worker.replica
    rows = worker.start.micro_batches * arguments.batch_size
    masked = torch.tensor([part.masked], dtype=device.sum_dtype).to(device.device)
    device.sum_up([masked])
    means = torch.cat([1 / masked.clamp(min=1), torch.full_like(masked, 1 / rows)]).float()
    losses = torch.zeros(2, dtype=device.sum_dtype, device=device.device)
    for micro_batch in part.micro_batches:
        seed = seed_of(arguments.seed, step=part.step, micro_batch=micro_batch.number)
        device.seed(seed)
        with replica.exchanging(last=micro_batch is part.micro_batches[-1]):
            # Under DDP a forward pass waits for no other worker.
            with nullcontext() if replica.sharded else worker.clock.working():
                losses_of = replica.losses(_moved(micro_batch.batch, device))
            parts = torch.stack(losses_of) * means
            (parts.sum() * replica.scale).backward()
        losses += parts.detach()
        device.end_of_graph()
    norm = replica.finish(clip=arguments.clip)
    rate = adamw.learning_rate(
        part.step, peak=arguments.lr, warmup=arguments.warmup_steps, steps=arguments.max_steps
    )
    adamw.set_rate(worker.optimizer, rate)
    worker.optimizer.step()
    worker.optimizer.zero_grad()
    device.sum_up([losses])
    device.end_of_graph()
    return _Scalars(losses=losses, norm=norm, rate=rate)


def _moved(batch: Batch, device: Device) -> Batch:
    return Batch(*(field.to(device.device, non_blocking=True) for field in batch))


def _report(worker: Worker, step: int, scalars: _Scalars, *, steps: int) -> None:
    """Read the scalars of a step on every worker: all have to leave if one is not a number."""
    norm = scalars.norm
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    masked_lm, next_sentence = scalars.losses.tolist()
    loss = masked_lm + next_sentence
    if not math.isfinite(loss) and not collects_graphs():
        raise _exit_error(worker, step, loss)
    if worker.progress is not None:
        rows = worker.start.micro_batches * worker.arguments.batch_size
        worker.progress.step(
            step,
            loss=loss,
            learning_rate=scalars.rate,
            tokens=steps * rows * worker.seq_len,
            masked_lm_loss=masked_lm,
            next_sentence_loss=next_sentence,
            gradient_norm=float(norm),
        )


def _exit_error(worker: Worker, step: int, loss: float) -> Exception:
    """Return the error with which this worker leaves, on every worker the same."""
    # A save that is going on would publish a checkpoint after the judgement on it.
    worker.saver.wait()
    box = [worker.guard.judge(step, loss) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0, group=worker.control)
    assert box[0] is not None
    return box[0]


def _save(worker: Worker, step: int, *, durable: bool = True) -> None:
    if not collects_graphs() and worker.saver.last_step != step:
        # It waits for the save before it.
        with worker.vote.resting():
            worker.saver.save(step, _share(worker), worker.about, durable=durable)


def _share(worker: Worker) -> State:
    state = tensors_of(worker.replica.model, worker.optimizer)
    if worker.writers is None:
        return state
    rank = dist.get_rank()
    return {
        name: value
        for number, (name, value) in enumerate(state.items())
        if number % worker.writers == rank
    }


def _report_published(worker: Worker) -> None:
    while worker.saver.published:
        step = worker.saver.published.pop(0)
        worker.guard.passed(step)
        if worker.progress is not None:
            worker.progress.event("checkpoint", step=step)
            worker.progress.keep()
        if worker.ledger is not None:
            worker.ledger.saved(step)


def _leave(worker: Worker, event: Literal["stopped", "done"], step: int) -> None:
    """Wait until the last checkpoint is complete, whoever writes it."""
    worker.loader.close()
    with worker.vote.resting():
        worker.saver.close()
    # It waits for all: a worker that went earlier would take its node's other workers with it.
    worker.vote.close()
    _report_published(worker)
    if worker.ledger is not None:
        worker.ledger.end(event)
    if worker.lease is not None:
        worker.lease.release()
    if worker.progress is not None:
        worker.progress.event(event, step=step)
        worker.progress.close()
    dist.destroy_process_group()
