"""A language model that is served: its shape, its memory on a device, and the time to load it."""

from dataclasses import dataclass
from typing import Literal

from ultrascale.catalog.transformers import Transformer

Fit = Literal["fits", "tight", "too-large", "unknown"]
"""`tight`: it starts only where activations take less than is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingDevice:
    """A device that serves: a GPU, or a logical NeuronCore.

    Attributes:
        name: Name of the accelerator.
        count: Devices of a node.
        memory_bytes: Memory of one.
        kv_share: Most of the memory that is used which the KV cache gets; None: all that is left.
    """

    name: str
    count: int
    memory_bytes: int
    kv_share: float | None = None

    @property
    def is_neuron(self) -> bool:
        """Whether it is of AWS, whose images have a loader and a cache of their own."""
        return self.name.startswith("AWS ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingDivision:
    """The division of a model among devices, and the batch that it serves.

    Attributes:
        tensor: Devices that share each matrix.
        pipeline: Groups of layers one after another.
        context: Most tokens of a sequence; None: as many as fit.
        tokens: Tokens of a step.
        utilization: Share of a device's memory that the server takes.
        value_bytes: Bytes of a value of the KV cache.
        loaded_share: Share of their size in files that weights take in memory.
        has_windows: Whether layers with a window keep that alone.
        reserved_sequences: Sequences of full length that the KV cache is set aside for.
    """

    tensor: int
    pipeline: int
    context: int | None
    tokens: int
    utilization: float
    value_bytes: float = 2
    loaded_share: float = 1
    has_windows: bool = True
    reserved_sequences: int = 1

    @property
    def devices(self) -> int:
        """Devices of a replica."""
        return self.tensor * self.pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory of one device of a replica, in bytes.

    Attributes:
        device: Memory of the device that the server takes.
        weights: Its share of the weights, at least.
        overhead: Estimate of what activations, CUDA graphs and communication take.
        room: Estimate of what is left to the KV cache.
        token: KV cache of one more token of a long sequence.
        sequence: KV cache of one sequence of full length; 0: its length is not known.
        longest: Longest sequence that fits, in tokens, by the estimate.
        fit: Whether the server starts.
    """

    device: int
    weights: int
    overhead: int
    room: int
    token: int
    sequence: int
    longest: int
    fit: Fit

    @property
    def sequences(self) -> float:
        """Sequences of full length that the KV cache holds at the same time."""
        return self.room / self.sequence if self.sequence else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoadPlan:
    """Reading of the weights by one replica.

    Attributes:
        place: Place of the weights, such as `bucket models`; empty where it is unknown.
        gb_per_second: Rate at which each node reads them; None: not known.
        seconds: Time until all nodes have read them; None: not known.
        formula: Formula of both.
        sources: Sources of the rates.
    """

    place: str
    gb_per_second: float | None
    seconds: float | None
    formula: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModelPlan:
    """The model of a service on its nodes.

    Attributes:
        name: Its name, or the path of its weights.
        shape: Its figures.
        device: A device of its nodes; None where they have none whose memory is known.
        division: Its division among them.
        memory: Memory of a device; None where that cannot be told.
        unknown: Reason that the memory is unknown; empty where it is known.
        load: Reading of its weights.
        start_seconds: Time of a cold start beside that.
        start_formula: Formula of that time.
        start_sources: Sources of its parts.
    """

    name: str
    shape: Transformer
    device: ServingDevice | None
    division: ServingDivision
    memory: ServingMemory | None
    unknown: str
    load: ModelLoadPlan
    start_seconds: float
    start_formula: str
    start_sources: tuple[str, ...]

    @property
    def cold_start_seconds(self) -> float | None:
        """Time from a pod that waits for a node to answers; None where the load is not known."""
        return None if self.load.seconds is None else self.start_seconds + self.load.seconds
