"""Trainium through torch-xla, as in the frozen Neuron image with torch 2.9.

Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/programming-guide/training/pytorch-neuron-programming-guide.html
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ultrascale_training.errors import TrainingError

# The port that torch-neuronx itself used while it still set the address.
_ROOT_PORT = 62182
# The size that torch-neuronx sets for gradients.
_BUCKET_MEBIBYTES = 50
# The AWS tutorial's options of the compiler for BERT.
_COMPILER_FLAG = "--model-type"
_MODEL_TYPE = f"{_COMPILER_FLAG}=transformer"


class NeuronXlaDevice:
    """One NeuronCore. Operations are recorded, and executed at the end of a graph."""

    # Neuron's own guide exchanges gradients by hand; torch's wrapper is experimental there.
    wraps = False
    # NeuronCores have no double precision.
    sum_dtype = torch.float32

    def __init__(self) -> None:
        import torch_xla
        import torch_xla.core.xla_model

        self._torch_xla: Any = torch_xla
        self._model: Any = torch_xla.core.xla_model
        self.device: torch.device = torch_xla.device()

    def seed(self, seed: int) -> None:
        """Seed the device's random numbers."""
        self._model.set_rng_state(seed, device=str(self.device))

    def autocast(self, *, bf16: bool) -> AbstractContextManager[object]:
        """Do nothing: with bfloat16 the weights themselves are in it."""
        return nullcontext()

    def sum_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all workers."""
        # In pieces like those of xm.reduce_gradients, the last layer's first; that one averages.
        self._model.all_reduce_bucketized_gradients(
            list(reversed(tensors)),
            scale=1.0,
            groups=None,
            pin_layout=True,
            bucket_cap_mb=_BUCKET_MEBIBYTES,
        )

    def end_of_graph(self) -> None:
        """Execute the recorded operations."""
        self._torch_xla.sync()


def connect(*, bf16: bool, timeout: timedelta) -> NeuronXlaDevice:
    """Join the process group of a job that torchrun started.

    Raises:
        TrainingError: torch-xla is not installed, or torchrun has not started this process.
    """
    if "RANK" not in os.environ:
        raise TrainingError("--device: neuron-xla needs torchrun, for one worker too; start it so")
    # Both are read when torch-xla is imported, and current releases no longer set the first.
    # https://github.com/ray-project/ray/issues/65070
    os.environ.setdefault("NEURON_RT_ROOT_COMM_ID", f"{os.environ['MASTER_ADDR']}:{_ROOT_PORT}")
    flags = os.environ.get("NEURON_CC_FLAGS", "")
    if _COMPILER_FLAG not in flags:
        os.environ["NEURON_CC_FLAGS"] = f"{flags} {_MODEL_TYPE}".strip()
    if bf16:
        os.environ.setdefault("NEURON_RT_STOCHASTIC_ROUNDING_EN", "1")
    try:
        import torch_xla.distributed.xla_backend  # noqa: F401 - registers the backend
    except ModuleNotFoundError as error:
        raise TrainingError(
            f"--device: torch-xla is not installed ({error}), got 'neuron-xla'; "
            "use the Neuron image"
        ) from None
    dist.init_process_group("xla", timeout=timeout)
    return NeuronXlaDevice()
