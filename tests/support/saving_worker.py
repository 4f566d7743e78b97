"""One worker of a run that only saves: all numbers of a checkpoint are its step.

``python -m tests.support.saving_worker STORE LAYOUT PAUSE_SECONDS`` goes on from the newest sound
checkpoint, which must hold nothing but its step, and saves every later step until it is killed; of
``DURABLE_EVERY`` steps, all but one only to the memory of HyperPod's nodes. It prints ``resumes
STEP`` when it has loaded, or ends with status 3 and ``wrong`` if it loaded anything else.
"""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import itertools
import logging
import os
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from ultrascale_training.checkpoints import Saver, load, newest_sound, open_store

# No multiple of any world, so that shards differ in size.
_ROWS, _COLUMNS = 37, 29


def state(layout: str) -> dict[str, Any]:
    """Return the parameters as this worker holds them."""
    if layout == "ddp":
        return {f"model.{n}": torch.zeros(_ROWS, _COLUMNS) for n in range(4)}
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if layout == "fsdp":
        model = torch.nn.Sequential(*(torch.nn.Linear(_COLUMNS, _ROWS) for _ in range(2)))
        for layer in model:
            fully_shard(layer, mesh=mesh)
        parameters = [parameter.detach() for parameter in model.parameters()]
        # The same names and shapes as elsewhere, so that one layout reads what another wrote.
        return {f"model.{n}": parameter for n, parameter in enumerate(_matrices(parameters))}
    return {
        f"model.{n}": distribute_tensor(torch.zeros(_ROWS, _COLUMNS), mesh, [Shard(1)])
        for n in range(4)
    }


def _matrices(parameters: list[Any]) -> list[Any]:
    weights = [each for each in parameters if each.dim() == 2]
    return [*weights, *(torch.zeros_like(each) for each in weights)]


def local(tensor: Any) -> Any:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def share(tensors: dict[str, Any], layout: str) -> dict[str, Any]:
    """Return what this worker writes of tensors that every worker has."""
    if layout != "ddp":
        return tensors
    rank, world = dist.get_rank(), dist.get_world_size()
    return {name: value for n, (name, value) in enumerate(tensors.items()) if n % world == rank}


def main() -> int:
    place, layout, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    durable_every = int(os.environ.get("DURABLE_EVERY", "1"))
    store = open_store(place, keep=2, memory=durable_every > 1)
    group = dist.group.WORLD
    assert group is not None
    if dist.get_rank() == 0:
        store.prepare()
    dist.barrier()
    tensors = state(layout)
    found = newest_sound(store, group)
    step = 0
    if found is not None:
        step = found.step
        load(found, tensors)
        for name, value in tensors.items():
            if not bool((local(value) == step).all()):
                print(f"wrong {name} at step {step}", flush=True)
                os._exit(3)
    print(f"resumes {step}", flush=True)
    attempt = f"{step}-{os.environ['MASTER_PORT']}"
    saver = Saver(store, group=group, attempt=attempt)
    for now in itertools.count(step + 1):
        for value in tensors.values():
            local(value).fill_(now)
        durable = now % durable_every == 0
        saver.save(now, share(tensors, layout), {}, durable=durable)
        time.sleep(pause)
    return 0


if __name__ == "__main__":
    sys.exit(main())
