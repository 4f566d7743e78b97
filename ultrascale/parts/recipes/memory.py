"""Memory of a device that trains a language model, by published formulas.

Parameters, gradients and Adam's moments take 16 bytes a parameter, divided among the devices that
share them (ZeRO, arXiv:1910.02054, section 3.1: FSDP2 is its third stage). Activations are counted
tensor by tensor as in "Reducing Activation Recomputation in Large Transformer Models"
(arXiv:2205.05198, section 4), for a gated network, grouped queries and flash attention, which that
paper's model lacks. Selective recomputation keeps what TorchTitan's does: every second product of
matrices and the result of attention.

Held against TorchTitan's own measurements (see `docs/recipes.md`) the sum with `RESERVED` is within
an eighth of the largest amount of memory that PyTorch reserved; without it, that of compiled runs.
"""

import math
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes.table import Recomputation

# BF16 for results and for gathered parameters, FP32 for kept values.
_HALF, _FULL = 2, 4
# FP32 parameter, gradient and two moments.
TRAINED_BYTES, FROZEN_BYTES = 16, 4
# FP32 parameter and two moments.
_SAVED_BYTES = 12
# Rank of adapters of attention's matrices, the default of TRL's `--lora_r`.
# Source: https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/model_config.py
_LORA_RANK = 16
# BF16 scores, their FP32 copy and its gradient.
_LOGIT_BYTES = _HALF + 2 * _FULL
LOSS_CHUNKS = 8
"""Parts of a batch whose scores are computed one after another.

Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/components/loss.py
"""
# What PyTorch's allocator reserves beyond that: the best fit to TorchTitan's measurements. Compiled
# layers keep fewer results, about as much as that.
RESERVED = 0.15
# CUDA's context and NCCL's buffers take some of a device [inferred].
USABLE = 0.95

# The embedding and the output count as a layer each when TorchTitan parts layers into stages.
# Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/distributed/pipeline_parallel.py
_LAYERS_OF_ENDS = 2


class MemoryPlan(Frozen):
    """Memory of the device that holds most, in bytes."""

    states: int  # Its share of parameters, gradients and the optimizer's moments
    gathered: int  # Parameters and gradients that it holds whole for a while
    activations: int  # Results of layers that the backward pass needs
    logits: int  # Scores over the vocabulary, and their gradients
    reserved: int  # What the allocator keeps beside these
    device: int  # Memory of a device that a program can use

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return self.states + self.gathered + self.activations + self.logits + self.reserved

    @property
    def fits(self) -> bool:
        """Whether a device has so much."""
        return self.total <= self.device


class Division(Frozen):
    """A model on devices."""

    tensor: int  # Devices that share each matrix
    pipeline: int  # Groups of layers one after another
    context: int  # Devices that share each sequence
    expert: int  # Devices that share the experts of a layer
    shard: int  # Devices that share parameters and data
    replicate: int  # Groups of devices that each hold all parameters
    sequence: int  # Tokens of a sequence
    local_batch: int  # Sequences of a group that shares the data, in one pass
    recomputation: Recomputation  # Activations that are computed again
    microbatch: int = 1  # Sequences of a pipeline's pass
    loss_chunks: int = LOSS_CHUNKS  # Parts of a batch whose scores are computed one after another
    compiled: bool = False  # Whether torch.compile makes the layers
    adapters: bool = False  # Whether low-rank adapters of attention learn, and nothing else

    @property
    def others(self) -> int:
        """Devices of each part of the model that is shared."""
        return self.replicate * self.context * self.tensor * self.pipeline

    @property
    def tokens(self) -> int:
        """Tokens of a device in one pass."""
        sequences = self.local_batch if self.pipeline == 1 else self.microbatch
        return sequences * self.sequence // self.context

    @property
    def passes(self) -> int:
        """Passes that a group which shares the data makes of a batch."""
        return 1 if self.pipeline == 1 else max(1, self.local_batch // self.microbatch)


_Stage = Literal["first", "middle", "last", "only"]


def memory_of(model: Transformer, division: Division, *, device_bytes: int) -> MemoryPlan:
    """Return the memory of the device that holds most of ``model``.

    Args:
        model: The model.
        division: How devices share it.
        device_bytes: Memory of a device, as its vendor states it.
    """
    plans = (_of_stage(model, division, stage) for stage in _stages(division.pipeline))
    most = max(plans, key=lambda plan: plan.total)
    return replace(most, device=int(device_bytes * USABLE))


def checkpoint_bytes(model: Transformer, *, adapters: bool = False) -> int:
    """Return the size of a checkpoint: FP32 parameters, and the moments of those that learn."""
    if adapters:
        return FROZEN_BYTES * model.parameters + _SAVED_BYTES * _adapters(model)
    return _SAVED_BYTES * model.parameters


def _stages(pipeline: int) -> Iterator[_Stage]:
    if pipeline == 1:
        yield "only"
        return
    yield "first"
    if pipeline > 2:
        yield "middle"
    yield "last"


def _of_stage(model: Transformer, division: Division, stage: _Stage) -> MemoryPlan:
    layers = _layers(model, division, stage)
    parts = (
        _states(model, division, layers, stage),
        _gathered(model, division, layers, stage),
        _activations(model, division, layers, stage),
        _logits(model, division, stage),
    )
    states, gathered, activations, logits = (int(part) for part in parts)
    return MemoryPlan(
        states=states,
        gathered=gathered,
        activations=activations,
        logits=logits,
        reserved=0 if division.compiled else int(sum(parts) * RESERVED),
        device=0,
    )


def _layers(model: Transformer, division: Division, stage: _Stage) -> int:
    if stage == "only":
        return model.layers
    most = math.ceil((model.layers + _LAYERS_OF_ENDS) / division.pipeline)
    return most if stage == "middle" else most - 1


def _ends(model: Transformer, stage: _Stage) -> int:
    """Return the parameters of the embedding and the output that a stage has."""
    return model.embedding_parameters * {"only": 2, "first": 1, "last": 1, "middle": 0}[stage]


def _states(model: Transformer, division: Division, layers: int, stage: _Stage) -> float:
    shared = division.shard * division.context
    # Experts take the devices of a tensor as well; without that, each of them has whole ones.
    experts_shared = shared * (division.tensor if division.expert > 1 else 1)
    dense = layers * model.dense_layer_parameters + _ends(model, stage)
    held = dense / (shared * division.tensor)
    held += layers * model.expert_layer_parameters / experts_shared
    if not division.adapters:
        return held * TRAINED_BYTES
    adapters = TRAINED_BYTES * _adapters(model) * layers / model.layers
    return held * FROZEN_BYTES + adapters / shared


def _gathered(model: Transformer, division: Division, layers: int, stage: _Stage) -> float:
    """Return the gathered values of FSDP2: a layer and the one after it; in a pipeline, a stage.

    Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/distributed/fsdp.py
    """
    learns = not division.adapters
    layer = model.dense_layer_parameters / division.tensor
    layer += model.expert_layer_parameters / division.expert
    ends = _ends(model, stage) / division.tensor
    if division.pipeline > 1:
        # Gradients of all passes are summed up in FP32 before they are shared.
        return (layers * layer + ends) * (_HALF + (_FULL if learns else 0))
    gradients = (_HALF + _FULL) * layer if learns else 0
    return 2 * _HALF * layer + _HALF * ends + gradients + (_FULL * ends / 2 if learns else 0)


def _activations(model: Transformer, division: Division, layers: int, stage: _Stage) -> float:
    tokens, every = division.tokens, _every_width(model)
    whole = _HALF * tokens * every / division.tensor
    # Sequence parallelism keeps a part of each sequence, and gathers it for each matrix.
    copies = 3 * _HALF * tokens * model.hidden if division.tensor > 1 else 0
    width = {"full": model.hidden, "selective": _kept_width(model), "none": every}
    kept = _HALF * tokens * width[division.recomputation] / division.tensor
    waiting = {"only": 1, "last": 1, "first": division.pipeline, "middle": division.pipeline - 1}
    passes = min(waiting[stage], division.passes)
    # The layer at hand is there in full, with the gradients of it.
    return layers * kept * passes + 2 * whole + copies


def _logits(model: Transformer, division: Division, stage: _Stage) -> float:
    if stage in ("first", "middle"):
        return 0.0
    tokens = division.tokens / division.loss_chunks
    return _LOGIT_BYTES * tokens * model.vocabulary / division.tensor


def _every_width(model: Transformer) -> int:
    """Return the width of all results of a layer: inputs of norms, matrices and attention."""
    attention = 4 * model.hidden + model.attention_width + model.query_width
    if not model.experts:
        return attention + 4 * model.feed_forward
    return attention + model.active_experts * (2 * model.hidden + 4 * model.feed_forward)


def _kept_width(model: Transformer) -> int:
    """Return the width of the values that selective recomputation keeps of a layer."""
    attention = 2 * model.hidden + model.attention_width + model.query_width
    if not model.experts:
        return attention + model.feed_forward
    return attention + model.active_experts * (model.hidden + 2 * model.feed_forward)


def _adapters(model: Transformer) -> int:
    """Return the parameters of low-rank adapters of the two matrices of attention."""
    ends = 2 * model.hidden + model.attention_width + model.query_width
    return model.layers * _LORA_RANK * ends
