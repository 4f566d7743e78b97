"""TorchTitan on a CPU: stand-ins for what it has only for accelerators, for tests.

TorchTitan 0.3.0 takes CUDA where there is no accelerator, compiles attention for one, and has FSDP
average gradients by an operation that gloo lacks. Nothing of a recipe is replaced.
"""

import os
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

# Compilation takes longer here than all steps of a test.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, create_mask
from torchtitan.tools import utils


def _device() -> ModuleType:
    device = ModuleType("cpu_device")
    for name in dir(torch.cpu):
        setattr(device, name, getattr(torch.cpu, name))
    stand_ins: dict[str, Any] = {
        "get_device_name": lambda *_: "cpu",
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: SimpleNamespace(total_memory=1 << 34),
        "memory_stats": lambda *_: {},
        "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda: None,
        "synchronize": lambda *_: None,
    }
    for name, stand_in in stand_ins.items():
        setattr(device, name, stand_in)
    return device


# Before the modules that copy them.
utils.device_type, utils.device_module = "cpu", _device()

from torchtitan.distributed import fsdp  # noqa: E402
from torchtitan.models.common import attention, decoder  # noqa: E402

from ultrascale_training.titan.loader import TokenLoader  # noqa: E402

# What a run needs besides; TorchTitan's newest backend and its graphs are of CUDA.
OPTIONS = (
    "--parallelism.spmd_backend=partial_dtensor",
    "--training.disable_cuda_graphs",
    "--training.mixed_precision_param=float32",
)


def _attention(
    self: Any,
    q_BLNH: Tensor,  # noqa: N803 - TorchTitan's sharding finds arguments by these names
    k_BLNH: Tensor,  # noqa: N803
    v_BLNH: Tensor,  # noqa: N803
    **given: Any,
) -> Tensor:
    mask = given["attention_masks"]
    queries, keys, values = (each.transpose(1, 2) for each in (q_BLNH, k_BLNH, v_BLNH))
    lengths = queries.shape[2], keys.shape[2]
    found = functional.scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=create_mask(mask.mask_mod, mask.shape[0], None, *lengths, device="cpu"),
        scale=given.get("scale"),
        enable_gqa=given.get("enable_gqa", False),
    )
    return found.transpose(1, 2)


attention.FlexAttention.forward = _attention
attention.create_attention_mask = create_block_mask
decoder.create_attention_mask = create_block_mask
_disable_division = fsdp.disable_fsdp_gradient_division


def _sum_up(model: torch.nn.Module) -> None:
    _disable_division(model)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)


fsdp.disable_fsdp_gradient_division = _sum_up


def _slowly(read: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    def batches(loader: Any) -> Iterator[Any]:
        for batch in read(loader):
            time.sleep(0.05)
            yield batch

    return batches


def run() -> None:
    """Run the engine with the arguments of the command line.

    The rank that ``SLOW_RANK`` names reads its data slowly.
    """
    if os.environ.get("SLOW_RANK") == os.environ.get("RANK"):
        setattr(TokenLoader, "__iter__", _slowly(TokenLoader.__iter__))  # noqa: B010
    sys.argv[1:] += OPTIONS
    runpy.run_module("ultrascale_training.titan", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run()
