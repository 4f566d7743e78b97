"""BERT for pre-training: masked language model and next-sentence prediction.

The architecture, its sizes and its initialization are those of the paper
(https://arxiv.org/abs/1810.04805) and of the released code
(https://github.com/google-research/bert), which also lists the small sizes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

BERT_VOCABULARY = 30522
_INITIALIZER_RANGE = 0.02
_LAYER_NORM_EPSILON = 1e-12
_SEGMENTS = 2


@dataclass(frozen=True, kw_only=True)
class Size:
    """A published size of BERT."""

    layers: int
    hidden: int
    heads: int


# Source: https://github.com/google-research/bert#bert
SIZES = {
    "tiny": Size(layers=2, hidden=128, heads=2),
    "mini": Size(layers=4, hidden=256, heads=4),
    "small": Size(layers=4, hidden=512, heads=8),
    "base": Size(layers=12, hidden=768, heads=12),
    "large": Size(layers=24, hidden=1024, heads=16),
}


class Batch(NamedTuple):
    """One micro-batch: ``[rows, sequence]`` but for the last three, which have comments."""

    input_ids: Tensor
    input_mask: Tensor
    segment_ids: Tensor
    masked_positions: Tensor  # [rows, predictions], 0 where there is no prediction
    masked_ids: Tensor  # [rows, predictions]
    next_sentence_labels: Tensor  # [rows]
    weights: Tensor  # [rows], 0 for rows that only fill the batch


class Losses(NamedTuple):
    """Sums over a micro-batch, so that parts of a global batch add up whatever their sizes."""

    masked_lm: Tensor
    next_sentence: Tensor


class Embeddings(nn.Module):
    """Word, position and segment embeddings."""

    def __init__(self, size: Size, *, vocabulary: int, positions: int, dropout: float) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, size.hidden)
        self.position = nn.Embedding(positions, size.hidden)
        self.segment = nn.Embedding(_SEGMENTS, size.hidden)
        self.norm = nn.LayerNorm(size.hidden, eps=_LAYER_NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, input_ids: Tensor, segment_ids: Tensor) -> Tensor:
        """Return ``[rows, sequence, hidden]``."""
        positions = self.position.weight[: input_ids.shape[1]]
        return self.dropout(self.norm(self.word(input_ids) + positions + self.segment(segment_ids)))


class Layer(nn.Module):
    """One encoder layer, normalized after each residual as in the paper."""

    def __init__(self, size: Size, *, dropout: float) -> None:
        super().__init__()
        self._heads = size.heads
        self._dropout = dropout
        self.query_key_value = nn.Linear(size.hidden, 3 * size.hidden)
        self.attention_output = nn.Linear(size.hidden, size.hidden)
        self.attention_norm = nn.LayerNorm(size.hidden, eps=_LAYER_NORM_EPSILON)
        self.intermediate = nn.Linear(size.hidden, 4 * size.hidden)
        self.output = nn.Linear(4 * size.hidden, size.hidden)
        self.output_norm = nn.LayerNorm(size.hidden, eps=_LAYER_NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return ``hidden`` after the layer; ``mask`` is False where no token attends."""
        rows, length, width = hidden.shape
        projected = self.query_key_value(hidden).view(
            rows, length, 3, self._heads, width // self._heads
        )
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self._dropout if self.training else 0.0,
        )
        attended = attended.transpose(1, 2).reshape(rows, length, width)
        hidden = self.attention_norm(hidden + self.dropout(self.attention_output(attended)))
        expanded = F.gelu(self.intermediate(hidden))
        return self.output_norm(hidden + self.dropout(self.output(expanded)))


class Bert(nn.Module):
    """BERT with its two pre-training heads; the word embeddings are also the output matrix."""

    def __init__(
        self,
        size: Size,
        *,
        vocabulary: int = BERT_VOCABULARY,
        positions: int,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.embeddings = Embeddings(
            size, vocabulary=vocabulary, positions=positions, dropout=dropout
        )
        self.layers = nn.ModuleList(Layer(size, dropout=dropout) for _ in range(size.layers))
        self.pooler = nn.Linear(size.hidden, size.hidden)
        self.next_sentence = nn.Linear(size.hidden, 2)
        self.transform = nn.Linear(size.hidden, size.hidden)
        self.transform_norm = nn.LayerNorm(size.hidden, eps=_LAYER_NORM_EPSILON)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))
        self.apply(_initialize)

    def forward(self, batch: Batch) -> Losses:
        """Return the summed losses of ``batch``, each in single precision."""
        # [rows, 1, 1, sequence]: no token attends to padding.
        mask = batch.input_mask.bool()[:, None, None, :]
        hidden = self.embeddings(batch.input_ids, batch.segment_ids)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return Losses(self._masked_lm(hidden, batch), self._next_sentence(hidden, batch))

    def _masked_lm(self, hidden: Tensor, batch: Batch) -> Tensor:
        rows, length, _ = hidden.shape
        starts = torch.arange(0, rows * length, length, device=hidden.device)[:, None]
        # Whole vectors: of `gather`, XLA makes a copy of single numbers, slow on a NeuronCore.
        chosen = F.embedding(batch.masked_positions + starts, hidden.flatten(0, 1))
        gathered = self.transform_norm(F.gelu(self.transform(chosen)))
        logits = F.linear(gathered, self.embeddings.word.weight, self.output_bias)
        losses = F.cross_entropy(
            logits.flatten(0, 1).float(), batch.masked_ids.flatten(), reduction="none"
        )
        # Position 0 is [CLS], which is never masked.
        wanted = (batch.masked_positions != 0) * batch.weights[:, None]
        return (losses * wanted.flatten()).sum()

    def _next_sentence(self, hidden: Tensor, batch: Batch) -> Tensor:
        logits = self.next_sentence(torch.tanh(self.pooler(hidden[:, 0])))
        losses = F.cross_entropy(logits.float(), batch.next_sentence_labels, reduction="none")
        return (losses * batch.weights).sum()


def flops_per_token(size: Size, *, vocabulary: int, seq_len: int, predictions: int) -> float:
    """Return the arithmetic of a token, forward and backward, in FLOP.

    Six for each weight that multiplies it, and twelve for each layer, hidden unit and token that it
    attends to. Only the predicted tokens of a row meet the output matrix. Source:
    https://arxiv.org/abs/2204.02311 (appendix B)
    """
    layer = 12 * size.hidden**2
    attention = 12 * size.layers * size.hidden * seq_len
    head = (size.hidden**2 + vocabulary * size.hidden) * predictions / seq_len
    return 6 * (size.layers * layer + head) + attention


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.trunc_normal_(
            module.weight,
            std=_INITIALIZER_RANGE,
            a=-2 * _INITIALIZER_RANGE,
            b=2 * _INITIALIZER_RANGE,
        )
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
