"""Language models whose shapes are known, and the parameters that follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Family = Literal["llama3", "qwen3"]

_LLAMA = "https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models/llama3/__init__.py"
_QWEN = "https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models/qwen3/__init__.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A decoder of equal layers: grouped-query attention, then a gated network or experts.

    Attributes:
        name: Name under which it is published.
        family: TorchTitan's module of it.
        layers: Number of layers.
        hidden: Width between layers.
        heads: Heads of queries.
        kv_heads: Heads of keys and values.
        head_width: Width of a head.
        feed_forward: Inner width of the gated network, or of one expert.
        vocabulary: Tokens that it knows.
        longest_sequence: Most tokens of a sequence.
        source: Where these figures stand.
        experts: Experts of each layer; 0 where it has one network.
        active_experts: Experts that one token passes through.
        has_head_norms: Whether queries and keys are normalized.
    """

    name: str
    family: Family
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    longest_sequence: int
    source: str
    experts: int = 0
    active_experts: int = 0
    has_head_norms: bool = False

    @property
    def weights(self) -> str:
        """Folder of its published weights, without spaces."""
        return self.name.replace(" ", "-")

    @property
    def attention_width(self) -> int:
        """Width of all queries, keys and values of a token."""
        return (self.heads + 2 * self.kv_heads) * self.head_width

    @property
    def query_width(self) -> int:
        """Width of the queries of a token, and of what attention makes of them."""
        return self.heads * self.head_width

    @property
    def dense_layer_parameters(self) -> int:
        """Parameters of a layer that every token passes through."""
        attention = self.hidden * (self.attention_width + self.query_width)
        norms = 2 * self.hidden + (2 * self.head_width if self.has_head_norms else 0)
        network = self.hidden * self.experts if self.experts else self._network
        return attention + norms + network

    @property
    def expert_layer_parameters(self) -> int:
        """Parameters of all experts of a layer."""
        return self.experts * self._network

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding; the output layer has as many."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters."""
        layer = self.dense_layer_parameters + self.expert_layer_parameters
        return self.layers * layer + 2 * self.embedding_parameters + self.hidden

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through."""
        idle = (self.experts - self.active_experts) * self._network
        return self.parameters - self.layers * idle

    @property
    def _network(self) -> int:
        return 3 * self.hidden * self.feed_forward


LLAMA3_8B = LanguageModel(
    name="Llama 3.1 8B",
    family="llama3",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_width=128,
    feed_forward=14_336,
    vocabulary=128_256,
    longest_sequence=131_072,
    source=_LLAMA,
)
LLAMA3_70B = LanguageModel(
    name="Llama 3.1 70B",
    family="llama3",
    layers=80,
    hidden=8192,
    heads=64,
    kv_heads=8,
    head_width=128,
    feed_forward=28_672,
    vocabulary=128_256,
    longest_sequence=131_072,
    source=_LLAMA,
)
LLAMA3_405B = LanguageModel(
    name="Llama 3.1 405B",
    family="llama3",
    layers=126,
    hidden=16_384,
    heads=128,
    kv_heads=8,
    head_width=128,
    feed_forward=53_248,
    vocabulary=128_256,
    longest_sequence=131_072,
    source=_LLAMA,
)
QWEN3_8B = LanguageModel(
    name="Qwen3-8B",
    family="qwen3",
    layers=36,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_width=128,
    feed_forward=12_288,
    vocabulary=151_936,
    longest_sequence=40_960,
    source=_QWEN,
    has_head_norms=True,
)
QWEN3_32B = LanguageModel(
    name="Qwen3-32B",
    family="qwen3",
    layers=64,
    hidden=5120,
    heads=64,
    kv_heads=8,
    head_width=128,
    feed_forward=25_600,
    vocabulary=151_936,
    longest_sequence=40_960,
    source=_QWEN,
    has_head_norms=True,
)
QWEN3_30B_A3B = LanguageModel(
    name="Qwen3-30B-A3B",
    family="qwen3",
    layers=48,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_width=128,
    feed_forward=768,
    vocabulary=151_936,
    longest_sequence=40_960,
    source=_QWEN,
    experts=128,
    active_experts=8,
    has_head_norms=True,
)

MODELS: Mapping[str, LanguageModel] = MappingProxyType(
    {
        model.weights: model
        for model in (
            LLAMA3_8B,
            LLAMA3_70B,
            LLAMA3_405B,
            QWEN3_8B,
            QWEN3_32B,
            QWEN3_30B_A3B,
        )
    }
)
"""Models by the folder of their published weights."""
