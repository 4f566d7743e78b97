"""A language model that is served: its memory on a device, and the time to load it.

vLLM takes a share of each device, loads its part of the weights, runs a batch to see what
activations need, and gives the rest to the KV cache. It does not start unless that holds one
sequence of full length. Weights and KV cache follow from the model; the activations are estimated.
So a model is refused only where it would not fit without any activations.

Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/worker/gpu_worker.py
"""

import math
from collections.abc import Iterator
from typing import Literal

from ultrascale.catalog import serving_memory as facts
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen
from ultrascale.plan.model import Figure
from ultrascale.plan.model.services import ModelPlan

_GIB, _GB = 2**30, 10**9

Fit = Literal["fits", "tight", "too-large", "unknown"]
"""`tight`: it starts only where activations take less than estimated."""


class ServingDevice(Frozen):
    """A device that serves: a GPU, or a logical NeuronCore."""

    name: str  # Name of the accelerator
    count: int  # Devices of a node
    memory_bytes: int  # Memory of one
    # Most of the used memory that the KV cache gets; None: all that is left.
    kv_share: float | None = None

    @property
    def is_neuron(self) -> bool:
        """Whether it is AWS's, whose images have a loader and a cache of their own."""
        return self.name.startswith("AWS ")


class ServingDivision(Frozen):
    """The division of a model among devices, and its batch."""

    tensor: int  # Devices that share each matrix
    pipeline: int  # Groups of layers one after another
    context: int | None  # Most tokens of a sequence; None: as many as fit
    tokens: int  # Tokens of a step
    utilization: float  # Share of a device's memory for the server
    value_bytes: float = 2  # Bytes of a value of the KV cache
    loaded_share: float = 1  # Size of weights in memory, as a share of their size in files
    has_windows: bool = True  # Whether layers with a window keep that alone
    reserved_sequences: int = 1  # Sequences of full length that the KV cache has to hold

    @property
    def devices(self) -> int:
        """Devices of a replica."""
        return self.tensor * self.pipeline


class ServingMemory(Frozen):
    """Memory of one device of a replica, in bytes."""

    device: int  # Memory of the device for the server
    weights: int  # Its share of the weights, at least
    overhead: int  # Estimated memory of activations, CUDA graphs and communication
    room: int  # Estimated rest for the KV cache
    token: int  # KV cache of one more token of a long sequence
    sequence: int  # KV cache of one sequence of full length; 0: its length is not known
    longest: int  # Longest sequence that fits, in tokens, by the estimate
    fit: Fit  # Whether the server starts

    @property
    def sequences(self) -> float:
        """Sequences of full length that the KV cache holds at the same time."""
        return self.room / self.sequence if self.sequence else 0


class ModelLoadPlan(Frozen):
    """Reading of the weights by one replica."""

    place: str  # Place of the weights, such as `bucket models`; empty where it is unknown
    gb_per_second: float | None  # Rate at which each node reads them; None: not known
    seconds: float | None  # Time until all nodes have read them; None: not known
    formula: str  # Formula of both
    sources: tuple[str, ...] = ()  # Sources of the rates


class ColdStart(Frozen):
    """The parts of a cold start beside the weights."""

    seconds: float  # Their sum
    formula: str  # Formula of the value
    sources: tuple[str, ...]  # Their sources


class ServedModelPlan(ModelPlan):
    """The model of a service on its nodes."""

    name: str  # Its name, or the path of its weights
    shape: Transformer  # Its figures
    # A device of its nodes; None where they have none whose memory is known.
    device: ServingDevice | None
    division: ServingDivision  # Its division among them
    memory: ServingMemory | None  # Memory of a device; None where it is unknown
    unknown: str  # Reason that the memory is unknown; empty where it is known
    load: ModelLoadPlan  # Reading of its weights
    start: ColdStart  # Time of a cold start beside that
    engine_seconds: float  # The part of it in which the server starts

    @property
    def cold_start_seconds(self) -> float | None:
        """Time from a pod that waits for a node to answers; None where the load is not known."""
        return None if self.load.seconds is None else self.start.seconds + self.load.seconds

    def figures(self, at: str) -> Iterator[Figure]:
        """Yield its figures: its memory on a device, and the time until it answers."""
        yield from _figures(at, self)


def _figures(at: str, model: ServedModelPlan) -> Iterator[Figure]:
    yield Figure(
        id=f"{at}.weights_gb",
        value=model.shape.weights_bytes / _GB,
        unit="GB",
        formula=f"weight files of {model.name}, {model.shape.dtype}",
    )
    yield from _memory(at, model)
    load, cold = model.load, model.cold_start_seconds
    yield Figure(
        id=f"{at}.load_seconds",
        value=load.seconds,
        unit="seconds",
        formula=load.formula,
        sources=load.sources,
    )
    yield Figure(
        id=f"{at}.cold_start_seconds",
        value=cold,
        unit="seconds",
        formula=load.formula
        if cold is None
        else f"{model.start.formula} + {at}.load_seconds; no node is launched where one is free",
        sources=model.start.sources,
    )


def _memory(at: str, model: ServedModelPlan) -> Iterator[Figure]:
    memory, utilization = model.memory, model.division.utilization
    # What weights, activations and one sequence of full length take of a device.
    needed = None if memory is None else memory.weights + memory.overhead + memory.sequence
    name = "" if model.device is None else model.device.name
    device_words = f"memory of one {name} x {utilization:g}, the share that vLLM takes"
    figures = (
        ("device_gib_needed", _needed_words(model), needed),
        ("device_gib", device_words, None if memory is None else memory.device),
    )
    for key, formula, value in figures:
        yield Figure(
            id=f"{at}.{key}",
            value=None if value is None else value / _GIB,
            unit="GiB",
            formula=model.unknown or formula,
            sources=(facts.FORMULA_SOURCE, facts.OVERHEAD_SOURCE),
        )
    yield Figure(
        id=f"{at}.sequences",
        value=None if memory is None or not memory.sequence else memory.sequences,
        unit="sequences of full length at the same time",
        formula=model.unknown or _sequence_words(model, memory),
        sources=(facts.FORMULA_SOURCE,),
    )


def _needed_words(model: ServedModelPlan) -> str:
    division = model.division
    return (
        f"weights / ({division.tensor} tensor x {division.pipeline} pipeline) + "
        f"{facts.OVERHEAD_SHARE:.0%} of the device for activations, CUDA graphs and "
        "communication (an estimate) + KV cache of one sequence"
    )


def _sequence_words(model: ServedModelPlan, memory: ServingMemory | None) -> str:
    if memory is None or not memory.sequence:
        return "no longest sequence is stated"
    return (
        f"{memory.room / _GIB:,.1f} GiB that are left / {memory.sequence / _GIB:,.2f} GiB of KV "
        f"cache for {model.division.context:,} tokens"
    )


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
