"""The model on this worker, and the sum of its gradients over the global batch."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ultrascale_bert.arguments import Parallel
from ultrascale_bert.devices import Device
from ultrascale_bert.model import Batch, Bert, Losses


class Replica:
    """A model under DDP, under FSDP, or bare on a device that torch's wrappers do not know.

    Args:
        model: Initialized alike on every worker.
        scale: Attribute; factor of a worker's loss, for torch's wrappers average gradients where
            parts of a global batch need their sum.
    """

    def __init__(
        self, model: Bert, *, parallel: Parallel, device: Device, bf16: bool, world: int
    ) -> None:
        self.model = model
        self.sharded = parallel == "fsdp"
        self._device = device
        self._bf16 = bf16
        self.scale = world if device.wraps else 1
        model.to(device.device, dtype=torch.bfloat16 if bf16 and not device.wraps else None)
        self._ddp: DistributedDataParallel | None = None
        if self.sharded:
            _shard(model, bf16=bf16)
        elif device.wraps:
            self._ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)

    def losses(self, batch: Batch) -> Losses:
        """Return the losses of ``batch``, ready for a backward pass."""
        with self._device.autocast(bf16=self._bf16 and not self.sharded):
            return (self._ddp or self.model)(batch)

    def exchanging(self, *, last: bool) -> AbstractContextManager[object]:
        """Return the context of a micro-batch; the last one of a step exchanges gradients."""
        if self.sharded:
            self.model.set_requires_gradient_sync(last)  # pyright: ignore - added by fully_shard
        if self._ddp is not None and not last:
            return self._ddp.no_sync()
        return nullcontext()

    def finish(self, *, clip: float) -> torch.Tensor:
        """Complete the gradients of a step, clip them, and return their norm before that."""
        if self._device.wraps:
            return nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        self._device.sum_up(gradients)
        # In single precision: millions of squares do not add up in bfloat16.
        norm = nn.utils.get_total_norm([gradient.float() for gradient in gradients])
        factor = (clip / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)
        return norm


def _shard(model: Bert, *, bf16: bool) -> None:
    # Its import takes half a second, which DDP need not wait for.
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if bf16 else None, reduce_dtype=torch.float32 if bf16 else None
    )
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
