"""Figures of a model by its `config.json`, as Hugging Face's libraries write it.

Sources:
    https://huggingface.co/docs/transformers/main_classes/configuration
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/transformers_utils/model_arch_config_convertor.py
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ultrascale.catalog import integer_bounds
from ultrascale.documents import Json, mapping

# A model with pictures or sound has the decoder's figures below one of these.
_DECODER = ("text_config", "llm_config", "language_config", "thinker_config")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "model_dim")
_CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
)
_WINDOWED = ("sliding_attention", "chunked_attention", "local_attention")
_ATTENTION = ("full_attention", "attention", "global_attention", "hybrid", *_WINDOWED)
# Types whose layers take turns without a list of them in older files.
_EVERY_SECOND = frozenset({"gemma2", "cohere2"})
_SCALED_ALREADY = frozenset(
    {"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"}
)
_TYPES = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
}


class UnreadableFiguresError(Exception):
    """A `config.json` without the figures of a decoder that keeps keys and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The keys of `jobs.NAME.model` that follow from a `config.json`.

    Attributes:
        dtype: Data type of most weights.
        layers: Layers.
        heads: Heads of queries.
        kv_heads: Heads of keys and values.
        head_width: Width of a head.
        latent_width: Values of a token with multi-head latent attention; None without.
        attention_layers: Layers that keep keys and values; None: all.
        windowed_layers: Layers with a window; None: none.
        window: Tokens of the window; None without.
        longest_context: Most tokens of a sequence; None: not stated.
    """

    dtype: str
    layers: int
    heads: int
    kv_heads: int
    head_width: int
    latent_width: int | None = None
    attention_layers: int | None = None
    windowed_layers: int | None = None
    window: int | None = None
    longest_context: int | None = None


def figures_of(document: Mapping[str, Json]) -> Figures:
    """Return the figures of a model.

    Args:
        document: Its `config.json`.

    Raises:
        UnreadableFiguresError: It describes no decoder, or lacks a figure.
    """
    decoder = next(
        (part for key in _DECODER if (part := mapping(document.get(key)))), dict(document)
    )
    layers = _needed(decoder, _LAYERS)
    heads = _needed(decoder, _HEADS)
    latent = _whole(decoder, ("kv_lora_rank",))
    windowed, attention, window = _kinds(decoder, layers)
    return Figures(
        dtype=_dtype(document, decoder),
        layers=layers,
        heads=heads,
        kv_heads=_kv_heads(decoder, heads),
        head_width=_head_width(decoder, heads),
        latent_width=None
        if latent is None
        else latent + (_whole(decoder, ("qk_rope_head_dim",)) or 0),
        attention_layers=None if attention == layers else attention,
        windowed_layers=windowed or None,
        window=window if windowed else None,
        longest_context=_context(decoder),
    )


def _kv_heads(decoder: Mapping[str, Json], heads: int) -> int:
    if decoder.get("multi_query") is True:
        return 1
    return _whole(decoder, _KV_HEADS) or heads


def _head_width(decoder: Mapping[str, Json], heads: int) -> int:
    return _whole(decoder, ("head_dim", "attention_head_dim")) or _needed(decoder, _HIDDEN) // heads


def _kinds(decoder: Mapping[str, Json], layers: int) -> tuple[int, int, int | None]:
    """Return the layers with a window, those with attention, and the tokens of the window."""
    window = _whole(decoder, ("sliding_window", "attention_chunk_size", "window_size"))
    if kinds := _listed(decoder):
        attention = [kind for kind in kinds if kind in _ATTENTION]
        if not attention:
            raise UnreadableFiguresError("its layers keep no keys and values")
        windowed = sum(kind in _WINDOWED for kind in attention) if window else 0
        return windowed, len(attention), window
    if (some := _some_layers(decoder, layers)) is not None:
        return 0, some, None
    if window is None or decoder.get("use_sliding_window") is False:
        return 0, layers, None
    if every := _whole(decoder, ("sliding_window_pattern",)):
        return layers - layers // every, layers, window
    if decoder.get("model_type") in _EVERY_SECOND:
        return layers - layers // 2, layers, window
    first = _whole(decoder, ("max_window_layers",)) if "use_sliding_window" in decoder else 0
    return max(0, layers - (first or 0)), layers, window


def _some_layers(decoder: Mapping[str, Json], layers: int) -> int | None:
    """Return the layers with attention of a model in which others keep a state; None: all."""
    pattern = decoder.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.count("*")
    kinds = decoder.get("attn_type_list")
    if isinstance(kinds, list):
        return sum(kind == 1 for kind in kinds)
    linear = mapping(decoder.get("linear_attn_config"))
    for found in (decoder.get("attn_layer_indices"), linear.get("full_attn_layers")):
        if isinstance(found, list) and found:
            return len(found)
    every = _whole(decoder, ("full_attention_interval", "attn_layer_period"))
    return None if every is None else layers // every


def _listed(decoder: Mapping[str, Json]) -> Sequence[str]:
    for key in ("layer_types", "layers_block_type"):
        found = decoder.get(key)
        if isinstance(found, list):
            return [str(kind) for kind in found]
    return ()


def _context(decoder: Mapping[str, Json]) -> int | None:
    """Return the longest sequence, as vLLM derives it: some scalings are in the figure already.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/model.py
    """
    stated = _whole(decoder, _CONTEXT)
    if stated is not None and stated > integer_bounds.MODEL_WIDTH:
        return None  # in other words: as long as you like
    scaling = mapping(decoder.get("rope_scaling")) or mapping(decoder.get("rope_parameters"))
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    within = kind in _SCALED_ALREADY or "gemma3" in str(decoder.get("model_type"))
    if stated is None or within or not isinstance(factor, int | float):
        return stated
    return int(stated * factor)


def _dtype(document: Mapping[str, Json], decoder: Mapping[str, Json]) -> str:
    compressed = mapping(document.get("quantization_config")) or mapping(
        decoder.get("quantization_config")
    )
    if compressed:
        return next(_compressed(compressed), "int8")
    for part in (document, decoder):
        for key in ("dtype", "torch_dtype"):
            if (found := _TYPES.get(str(part.get(key)))) is not None:
                return found
    return "bfloat16"


def _compressed(stated: Mapping[str, Json]) -> Iterator[str]:
    """Yield the types that compressed weights have by the settings of their method."""
    for key in ("quant_method", "quant_algo", "fmt"):
        name = str(stated.get(key, "")).lower()
        if name in _TYPES:
            yield _TYPES[name]
    for part in _with_bits(stated):
        bits, kind = part.get("num_bits", part.get("bits")), part.get("type")
        if bits == 8:
            yield "fp8" if kind == "float" else "int8"
        if bits == 4:
            yield "nvfp4" if kind == "float" else "int4"
    if stated.get("load_in_4bit") is True:
        yield "int4"


def _with_bits(stated: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    yield stated
    for group in mapping(stated.get("config_groups")).values():
        yield mapping(mapping(group).get("weights"))


def _needed(decoder: Mapping[str, Json], keys: Sequence[str]) -> int:
    found = _whole(decoder, keys)
    if found is None:
        raise UnreadableFiguresError(f"its config.json has no {keys[0]}")
    return found


def _whole(decoder: Mapping[str, Json], keys: Sequence[str]) -> int | None:
    """Return the first of ``keys`` with a number above 0; None without one."""
    for key in keys:
        found = decoder.get(key)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None
