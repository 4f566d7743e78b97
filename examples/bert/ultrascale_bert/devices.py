"""Devices: process group, random numbers, gradient exchange and precision of each.

`connect` joins the process group that torchrun's environment describes, or one of a single process.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from ultrascale_bert import arguments
from ultrascale_training.errors import OutsideError
from ultrascale_training.process_groups import connect_on_demand, under_torchrun


class Device(Protocol):
    """One worker's device."""

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        ...

    @property
    def wraps(self) -> bool:
        """Torch's own wrappers exchange gradients here; otherwise `sum_up` does."""
        ...

    @property
    def sum_dtype(self) -> torch.dtype:
        """Type in which losses are summed up."""
        ...

    def seed(self, seed: int) -> None:
        """Seed the device's random numbers."""
        ...

    def autocast(self, *, bf16: bool) -> AbstractContextManager[object]:
        """Return the context in which forward passes run."""
        ...

    def sum_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all workers."""
        ...

    def end_of_graph(self) -> None:
        """Have a lazy device execute what was recorded."""
        ...


@dataclass(frozen=True)
class EagerDevice:
    """A CPU with gloo, or a GPU with NCCL."""

    device: torch.device
    wraps = True
    sum_dtype = torch.float64

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the host and of the device.

        ``torch.manual_seed`` also writes a stack for each kind of accelerator that the process does
        not use, in every micro-batch. Source:
        https://github.com/pytorch/pytorch/blob/v2.13.0/torch/cuda/__init__.py
        """
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def autocast(self, *, bf16: bool) -> AbstractContextManager[object]:
        """Return an autocast to bfloat16; weights stay in single precision."""
        return torch.autocast(self.device.type, torch.bfloat16) if bf16 else nullcontext()

    def sum_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all workers."""
        for tensor in tensors:
            dist.all_reduce(tensor)

    def end_of_graph(self) -> None:
        """Do nothing: operations have been executed or queued already."""


def connect(name: arguments.Device, *, bf16: bool, timeout: timedelta) -> Device:
    """Join the process group and return this worker's device.

    Raises:
        OutsideError: The device is not there.
    """
    connect_on_demand()
    if name == "auto":
        name = _found()
    if name == "neuron-xla":
        from ultrascale_bert import neuron_xla

        return neuron_xla.connect(bf16=bf16, timeout=timeout)
    if name == "cpu":
        _join("gloo", timeout)
        return EagerDevice(torch.device("cpu"))
    if not torch.cuda.is_available():
        raise OutsideError("--device: no NVIDIA GPU is visible, got 'cuda'; use cpu or auto")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    _join("cpu:gloo,cuda:nccl", timeout)
    return EagerDevice(device)


def _found() -> arguments.Device:
    if os.path.exists("/dev/neuron0"):  # noqa: PTH110 - a device node
        return "neuron-xla"
    return "cuda" if torch.cuda.is_available() else "cpu"


def _join(backend: str, timeout: timedelta) -> None:
    if under_torchrun():
        dist.init_process_group(backend, timeout=timeout)
    else:
        dist.init_process_group(
            backend, store=dist.HashStore(), rank=0, world_size=1, timeout=timeout
        )
