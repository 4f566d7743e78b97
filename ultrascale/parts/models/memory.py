"""Memory of a device that serves a language model, by vLLM's own accounting.

vLLM takes a share of each device, loads its part of the weights, runs a batch to see what
activations need, and gives the rest to the KV cache. It does not start unless that holds one
sequence of full length. Weights and KV cache follow from the model; the activations are estimated.
So a model is refused only where it would not fit without any activations.

Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/worker/gpu_worker.py
"""

import math

from ultrascale.catalog import serving_memory as facts
from ultrascale.catalog.transformers import Transformer
from ultrascale.parts.models.model import Fit, ServingDevice, ServingDivision, ServingMemory


def memory_of(
    shape: Transformer, division: ServingDivision, device: ServingDevice
) -> ServingMemory:
    """Return the memory of the device that holds most of the KV cache.

    Args:
        shape: The model.
        division: Its division among devices.
        device: One of them.
    """
    used = int(device.memory_bytes * division.utilization)
    weights = int(shape.weights_bytes * division.loaded_share / division.devices)
    overhead = int(device.memory_bytes * facts.OVERHEAD_SHARE)
    most = used if device.kv_share is None else int(used * device.kv_share)
    certain = min(used - weights, most)
    room = max(0, min(used - weights - overhead, most))
    context = division.context
    sequence = 0 if context is None else kv_bytes(shape, division, context)
    return ServingMemory(
        device=used,
        weights=weights,
        overhead=overhead,
        room=room,
        token=_token_bytes(shape, division, _full_layers(shape, division)),
        sequence=sequence,
        longest=_longest(shape, division, room // division.reserved_sequences),
        fit=_fit(
            sequence or kv_bytes(shape, division, 1),
            certain=certain,
            room=room // division.reserved_sequences,
        ),
    )


def kv_bytes(shape: Transformer, division: ServingDivision, context: int) -> int:
    """Return the KV cache of one sequence on one device.

    A layer with a window keeps the tokens of the window and of a step.

    Args:
        shape: The model.
        division: Its division among devices.
        context: Tokens of the sequence.
    """
    full = _full_layers(shape, division)
    windowed = _share(shape.caching_layers, division.pipeline) - full
    kept = min((shape.window or 0) - 1 + division.tokens, context)
    # A window may begin inside a block.
    blocks_of_window = _blocks(kept) + 1 if windowed else 0
    tokens = _blocks(context) * facts.BLOCK_TOKENS
    return tokens * _token_bytes(shape, division, full) + (
        blocks_of_window * facts.BLOCK_TOKENS * _token_bytes(shape, division, windowed)
    )


def _full_layers(shape: Transformer, division: ServingDivision) -> int:
    """Return the layers of a device that keep every token."""
    layers = _share(shape.caching_layers, division.pipeline)
    if not (division.has_windows and shape.window):
        return layers
    return max(0, layers - _share(shape.windowed_layers or 0, division.pipeline))


def _token_bytes(shape: Transformer, division: ServingDivision, layers: int) -> int:
    """Return the KV cache of a token in some layers of a device."""
    return math.ceil(layers * shape.kv_values(division.tensor) * division.value_bytes)


def _longest(shape: Transformer, division: ServingDivision, room: int) -> int:
    """Return the longest sequence that ``room`` holds, at most the model's longest."""
    low, high = 0, shape.longest_context or 2**24
    while low < high:
        middle = (low + high + 1) // 2
        if kv_bytes(shape, division, middle) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _fit(sequence: int, *, certain: int, room: int) -> Fit:
    if sequence > certain:
        return "too-large"
    return "fits" if sequence <= room else "tight"


def _blocks(tokens: int) -> int:
    return math.ceil(tokens / facts.BLOCK_TOKENS)


def _share(layers: int, pipeline: int) -> int:
    return math.ceil(layers / pipeline)
