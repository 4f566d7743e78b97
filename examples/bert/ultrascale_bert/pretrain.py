"""Pre-train BERT: ``torchrun … -m ultrascale_bert.pretrain``, or one process without torchrun.

The samples of a step, and the dropout in them, depend on nothing but seed and step. Before each
step the workers vote on whether to stop; so either all of them compute the step, or all of them
save the same state and leave. docs/training.md explains it to users.
"""

import logging
import os
import sys
import uuid
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from ultrascale_bert import arguments as command_line
from ultrascale_bert import optimizer as adamw
from ultrascale_bert import start as starting
from ultrascale_bert.arguments import LONGEST_SEQUENCE, Arguments
from ultrascale_bert.devices import Device, connect
from ultrascale_bert.loader import Loader
from ultrascale_bert.model import SIZES, Bert, flops_per_token
from ultrascale_bert.replica import Replica
from ultrascale_bert.shards import Dataset, Index, read_index
from ultrascale_bert.start import Start
from ultrascale_bert.training import Worker, collects_graphs, last_step, train
from ultrascale_training import vote
from ultrascale_training.agreement import agree
from ultrascale_training.checkpoints import (
    NanGuard,
    Saver,
    Store,
    load,
    open_store,
    state_bytes,
    tensors_of,
)
from ultrascale_training.errors import TrainingError
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import keep_state, report_hang
from ultrascale_training.lease import Lease
from ultrascale_training.objects import is_bucket, open_objects
from ultrascale_training.order import Order
from ultrascale_training.process_groups import host_group
from ultrascale_training.progress import Progress, peak_flops
from ultrascale_training.restarts import RestartLedger
from ultrascale_training.stop import StopRequest
from ultrascale_training.stragglers import WorkClock

_log = logging.getLogger("ultrascale_bert")
_DDP_WRITERS = 8


@record
def main(failures: FailureLog | None = None) -> int:
    """Run the program on this worker and return its exit status.

    Args:
        failures: Gets the place of the output.
    """
    failures = failures or FailureLog()
    stop = StopRequest()
    arguments = command_line.parse()
    failures.output = arguments.records
    if not collects_graphs():
        failures.tell_earlier()
    timeout = timedelta(seconds=arguments.timeout_seconds)
    device = connect(arguments.device, bf16=arguments.bf16, timeout=timeout)
    control = host_group(timeout)
    store = open_store(
        arguments.checkpoint_dir, keep=arguments.keep, memory=arguments.memory_every > 0
    )
    index = agree(control, lambda: _index(arguments))
    lease = None
    if dist.get_rank() == 0 and not collects_graphs():
        lease = Lease(open_objects(arguments.records))
    # Before anything of the output is cleaned up.
    agree(control, lambda: lease and lease.take())
    start = _start(arguments, index, store, control)
    ledger = _begin(arguments, start, store, control)
    replica = _replica(arguments, index, device)
    optimizer = adamw.make(replica.model, weight_decay=arguments.weight_decay)
    # Otherwise the first micro-batch would make the optimizer's state, in a large graph that no
    # other one shares, and a run that resumes would begin with graphs that nobody compiled before.
    device.end_of_graph()
    state = tensors_of(replica.model, optimizer)
    agree(control, lambda: store.check_room_of_run(state_bytes(state)))
    if start.checkpoint is not None:
        load(start.checkpoint, state, group=control)
    # Under DDP every worker has everything: some write a part each, the others nothing.
    writers = dist.get_world_size()
    if not replica.sharded:
        writers = min(writers, _DDP_WRITERS)
    group = host_group(timeout, range(writers))
    saver = Saver(
        store,
        group=group if dist.get_rank() < writers else None,
        attempt=start.name,
        background=arguments.save_async,
        device=device.device.type,
    )
    progress = _progress(arguments, index, start, device)
    ballot = vote.join(
        timeout,
        hang_seconds=arguments.timeout_seconds / 2,
        on_hang=lambda hang: report_hang(hang, failures, progress),
        on_asked=lambda suspected: keep_state(failures, suspected=suspected),
        on_lost=failures.lost,
    )
    return train(
        Worker(
            arguments=arguments,
            device=device,
            replica=replica,
            optimizer=optimizer,
            loader=_loader(arguments, index, start),
            saver=saver,
            vote=ballot,
            clock=WorkClock(ballot, device.device),
            ledger=ledger,
            lease=lease,
            start=start,
            control=control,
            seq_len=index.seq_len,
            about=starting.about(arguments, index, start),
            writers=None if replica.sharded else writers,
            guard=NanGuard(store, start.checkpoint, within=arguments.nan_steps),
            progress=progress,
            stop=stop,
        )
    )


def _index(arguments: Arguments) -> Index:
    index = read_index(arguments.data_dir)
    mistakes = [
        f"{flag}: the dataset {arguments.data_dir} has {has}, got {asked}; prepare another one"
        for flag, has, asked in (
            ("--seq-len", index.seq_len, arguments.seq_len),
            ("--max-pred-len", index.max_pred_len, arguments.max_pred_len),
        )
        if asked is not None and asked != has
    ]
    if index.seq_len > LONGEST_SEQUENCE:
        mistakes.append(
            f"--data-dir: BERT has {LONGEST_SEQUENCE} positions, got rows of {index.seq_len} tokens"
        )
    if all(shard.rows < arguments.batch_size for shard in index.shards):
        mistakes.append(
            f"--batch-size: no shard of {arguments.data_dir} has so many rows, "
            f"got {arguments.batch_size}; lower it"
        )
    if mistakes:
        raise TrainingError("\n".join(mistakes))
    return index


def _start(arguments: Arguments, index: Index, store: Store, control: dist.ProcessGroup) -> Start:
    restarts = torch.tensor([int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))])
    dist.all_reduce(restarts, op=dist.ReduceOp.MAX, group=control)
    name = agree(control, lambda: uuid.uuid4().hex[:12])
    checkpoint = starting.resume_from(
        arguments, store, control, collecting=collects_graphs(), name=name
    )
    start = agree(
        control,
        lambda: starting.decide(
            arguments,
            index,
            store,
            checkpoint,
            world=dist.get_world_size(),
            restarted=int(restarts) > 0,
            name=name,
        ),
    )
    log = _log.info if dist.get_rank() == 0 else _log.debug
    log(
        "starts at step %d of %d with %d workers; %d rows a step",
        start.step,
        arguments.max_steps,
        dist.get_world_size(),
        start.micro_batches * arguments.batch_size,
    )
    return start


def _replica(arguments: Arguments, index: Index, device: Device) -> Replica:
    # Alike on every worker.
    torch.manual_seed(arguments.seed)
    model = Bert(
        SIZES[arguments.model],
        vocabulary=index.vocabulary,
        positions=LONGEST_SEQUENCE,
        dropout=arguments.dropout,
    )
    return Replica(
        model,
        parallel=arguments.parallel,
        device=device,
        bf16=arguments.bf16,
        world=dist.get_world_size(),
    )


def _loader(arguments: Arguments, index: Index, start: Start) -> Loader:
    order = Order(
        [shard.rows for shard in index.shards],
        rows=arguments.batch_size,
        micro_batches=start.micro_batches,
        seed=arguments.seed,
    )
    return Loader(
        Dataset(arguments.data_dir, index),
        order,
        micro_batches=start.micro_batches,
        rank=dist.get_rank(),
        world=dist.get_world_size(),
        step=start.step,
        until=last_step(arguments, start),
    )


def _begin(
    arguments: Arguments, start: Start, store: Store, control: dist.ProcessGroup
) -> RestartLedger | None:
    """Note the start in the ledger of the run; returns it on the first worker."""
    ledger = None
    if dist.get_rank() == 0 and not collects_graphs():
        ledger = RestartLedger(open_objects(arguments.records))

    def note(ledger: RestartLedger) -> None:
        nodes = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
        aside = {bad.name: bad.step for bad in store.durable.aside()}
        ledger.begin(nodes=nodes, step=start.step, durable=start.durable, aside=aside)

    agree(control, lambda: ledger and note(ledger))
    return ledger


def _progress(arguments: Arguments, index: Index, start: Start, device: Device) -> Progress | None:
    if dist.get_rank() != 0 or collects_graphs():
        return None
    progress = Progress(
        arguments.output_dir,
        step=start.step,
        steps=arguments.max_steps,
        common={"world": dist.get_world_size(), "start": start.name},
        flops_per_token=flops_per_token(
            SIZES[arguments.model],
            vocabulary=index.vocabulary,
            seq_len=index.seq_len,
            predictions=index.max_pred_len,
        ),
        devices=dist.get_world_size(),
        peak_flops=peak_flops(device.device),
        bucket=open_objects(arguments.records) if is_bucket(arguments.records) else None,
    )
    progress.event(
        "start",
        step=start.step,
        global_batch=start.micro_batches * arguments.batch_size,
        restarts=int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")),
    )
    return progress


if __name__ == "__main__":
    logging.basicConfig(
        format=f"%(asctime)s worker {os.environ.get('RANK', '0')}: %(message)s", level=logging.INFO
    )
    log = FailureLog()
    sys.excepthook = log.leave
    sys.exit(main(log))
