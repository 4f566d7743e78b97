"""Measure checkpoints on a file system or in a bucket: ``python -m …checkpoint_speed PLACE``.

Under torchrun all workers write and read at once, as in a run; without torchrun a single process
does. The line has the speeds of a save, of a load with its verification, and of ``cp`` on the same
disk, and the time for which a save holds up the training.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from ultrascale_training.checkpoints import Saver, load, newest_sound, open_store
from ultrascale_training.objects import is_bucket
from ultrascale_training.process_groups import host_group, under_torchrun

_TENSOR_BYTES = 64 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line of JSON; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ultrascale_training.checkpoint_speed")
    parser.add_argument("place", help="directory or s3://BUCKET/PREFIX to measure")
    parser.add_argument(
        "--megabytes", type=int, default=2048, help="size of each worker's share (default 2048)"
    )
    asked = parser.parse_args(arguments)
    if under_torchrun():
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        found = measure(asked.place, size=asked.megabytes << 20)
        if dist.get_rank() == 0:
            print(json.dumps(found))
    finally:
        dist.destroy_process_group()
    return 0


def measure(place: str, *, size: int) -> dict[str, float]:
    """Return measured seconds, and MB a second of all workers together, by name.

    Args:
        place: Directory or ``s3://bucket/prefix``; the written files are deleted afterwards.
        size: Bytes of each worker's share.
    """
    group = host_group(timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    box = [f"{place.rstrip('/')}/speed-{uuid.uuid4().hex[:8]}"]
    dist.broadcast_object_list(box)
    store = open_store(box[0], keep=1)
    if rank == 0:
        store.prepare()
    dist.barrier()
    state = {
        f"tensor.{rank}.{number}": torch.randn(min(_TENSOR_BYTES, size) // 4)
        for number in range(max(1, size // _TENSOR_BYTES))
    }
    total = sum(tensor.numel() * 4 for tensor in state.values()) * world
    saver = Saver(store, group=group, attempt="speed")
    # Not measured: the first save makes threads and connections, and maps the memory of the copies.
    saver.save(1, state, {})
    saver.wait()
    began = time.monotonic()
    held = _seconds_of(lambda: saver.save(2, state, {}))
    _seconds_of(saver.wait)
    save = time.monotonic() - began
    verify = _seconds_of(lambda: newest_sound(store, group))
    found = store.newest()
    assert found is not None
    read = _seconds_of(lambda: load(found, state, group=group))
    measured = {
        "workers": world,
        "megabytes": total / 1e6,
        "held_seconds": held,
        "save_seconds": save,
        "verify_seconds": verify,
        "load_seconds": read,
        "save_mb_per_second": total / 1e6 / save,
        "load_mb_per_second": total / 1e6 / (verify + read),
    }
    if not is_bucket(place):
        copies = Path(f"{found.location}-copy-{rank}")
        copy = _seconds_of(lambda: _copy(Path(found.location) / f"__{rank}_0.distcp", copies))
        measured["cp_seconds"] = copy
        measured["cp_mb_per_second"] = total / 1e6 / copy
    dist.barrier()
    if rank == 0:
        store.delete(found.name)
        if not is_bucket(place):
            shutil.rmtree(box[0])
    return {name: round(value, 3) for name, value in measured.items()}


def _seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds until every worker has done ``work``."""
    dist.barrier()
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    slowest = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest)


def _copy(file: Path, copy: Path) -> None:
    """Copy a file as a user would, and wait until it is on the disk."""
    subprocess.run(["cp", "--reflink=never", str(file), str(copy)], check=True)
    subprocess.run(["sync", str(copy)], check=True)
    copy.unlink()


if __name__ == "__main__":
    sys.exit(main())
