"""Shape of a language model, from the `config.json` of Hugging Face's libraries.

Sources:
    https://huggingface.co/docs/transformers/main_classes/configuration
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/transformers_utils/model_arch_config_convertor.py
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import integer_bounds
from ultrascale.documents import Json, mapping
from ultrascale.frozen import Frozen

# Keys of `config.json` that hold the decoder's figures in a model with pictures or sound.
_DECODER = ("text_config", "llm_config", "language_config", "thinker_config")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "model_dim")
# Keys of an expert's width; the width of other layers' network has a key of its own.
_FEED_FORWARD = ("moe_intermediate_size", "intermediate_size")
_CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
)
_WINDOWED = ("sliding_attention", "chunked_attention", "local_attention")
_ATTENTION = ("full_attention", "attention", "global_attention", "hybrid", *_WINDOWED)
# Architectures that normalize queries and keys of each head.
# Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models/qwen3/__init__.py
_NORMALIZED_HEADS = frozenset({"qwen3", "qwen3_moe"})
_HALF = 2
# Model types with alternating layers; their older files have no list of the layers.
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
    """Error: a `config.json` lacks the figures of a decoder with a KV cache."""


class Transformer(Frozen):
    """A decoder: attention, then a gated network or experts, in each layer.

    Memory for serving follows from keys and values, memory for training from the parameters too;
    parameters are known only for models with equal layers.
    """

    # Published name; empty where a job or a bucket states the figures.
    name: str = ""
    model_type: str = ""  # Architecture, as `config.json` names it
    weights_bytes: int = 0  # Size of its weight files; 0 where only `config.json` was read
    dtype: str  # Data type of most weights in the files
    layers: int  # Layers
    heads: int  # Heads of queries
    kv_heads: int  # Heads of keys and values
    head_width: int  # Width of a head
    # Cached values of a token in a layer with multi-head latent attention; None: each head has its
    # own keys and values.
    latent_width: int | None = None
    # Layers that keep keys and values; the others keep a state of fixed size. None: all layers.
    attention_layers: int | None = None
    # Attention layers that keep only the last `window` tokens; None: no layer.
    windowed_layers: int | None = None
    window: int | None = None  # Tokens of that window; None without
    longest_context: int | None = None  # Most tokens of a sequence; None: not stated
    hidden: int = 0  # Width between layers; 0 where it is not stated, like the next two
    feed_forward: int = 0  # Inner width of the gated network, or of one expert
    vocabulary: int = 0  # Tokens of its vocabulary
    experts: int = 0  # Experts of each layer; 0 where it has one network
    active_experts: int = 0  # Experts for each token

    @property
    def folder(self) -> str:
        """Folder for the model's published weights, without spaces."""
        return self.name.replace(" ", "-")

    @property
    def caching_layers(self) -> int:
        """Number of layers that keep keys and values."""
        return self.attention_layers or self.layers

    @property
    def token_bytes(self) -> int:
        """KV cache of a token on all devices together, in 16 bits."""
        return _HALF * self.caching_layers * self.kv_values()

    @property
    def attention_width(self) -> int:
        """Width of all queries, keys and values of a token."""
        return (self.heads + 2 * self.kv_heads) * self.head_width

    @property
    def query_width(self) -> int:
        """Width of a token's queries, and of attention's output for them."""
        return self.heads * self.head_width

    @property
    def dense_layer_parameters(self) -> int:
        """Parameters of a layer without its experts: every token uses them."""
        attention = self.hidden * (self.attention_width + self.query_width)
        norms_of_heads = 2 * self.head_width if self.model_type in _NORMALIZED_HEADS else 0
        network = self.hidden * self.experts if self.experts else self._network
        return attention + 2 * self.hidden + norms_of_heads + network

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
        """Parameters that one token uses."""
        idle = (self.experts - self.active_experts) * self._network
        return self.parameters - self.layers * idle

    @property
    def _network(self) -> int:
        return 3 * self.hidden * self.feed_forward

    def shares_keys(self, tensor: int) -> bool:
        """Return whether vLLM can divide the heads of keys and values among ``tensor`` devices.

        Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/model.py
        """
        if self.latent_width:
            return True
        return self.kv_heads % tensor == 0 or tensor % self.kv_heads == 0

    def kv_values(self, tensor: int = 1) -> int:
        """Return the number of cached values of a token in one layer on one device.

        Each device has some heads of keys and values, and at least one; the latent vector of a
        token is on all of them.

        Args:
            tensor: Devices that share each matrix.
        """
        return self.latent_width or 2 * max(1, self.kv_heads // tensor) * self.head_width


def transformer_of(document: Mapping[str, Json]) -> Transformer:
    """Return the figures of a model.

    Args:
        document: Its `config.json`.

    Raises:
        UnreadableFiguresError: The document describes no decoder, or lacks a figure.
    """
    decoder = next(
        (part for key in _DECODER if (part := mapping(document.get(key)))), dict(document)
    )
    layers = _required_number(decoder, _LAYERS)
    heads = _required_number(decoder, _HEADS)
    latent = _first_positive(decoder, ("kv_lora_rank",))
    windowed, attention, window = _layer_counts(decoder, layers)
    return Transformer(
        model_type=str(decoder.get("model_type", "")),
        dtype=_dtype(document, decoder),
        layers=layers,
        heads=heads,
        kv_heads=_kv_heads(decoder, heads),
        head_width=_head_width(decoder, heads),
        latent_width=None
        if latent is None
        else latent + (_first_positive(decoder, ("qk_rope_head_dim",)) or 0),
        attention_layers=None if attention == layers else attention,
        windowed_layers=windowed or None,
        window=window if windowed else None,
        longest_context=_longest_sequence(decoder),
        hidden=_first_positive(decoder, _HIDDEN) or 0,
        feed_forward=_first_positive(decoder, _FEED_FORWARD) or 0,
        vocabulary=_first_positive(decoder, ("vocab_size",)) or 0,
        experts=_first_positive(decoder, ("num_experts",)) or 0,
        active_experts=_first_positive(decoder, ("num_experts_per_tok",)) or 0,
    )


def _kv_heads(decoder: Mapping[str, Json], heads: int) -> int:
    if decoder.get("multi_query") is True:
        return 1
    return _first_positive(decoder, _KV_HEADS) or heads


def _head_width(decoder: Mapping[str, Json], heads: int) -> int:
    return (
        _first_positive(decoder, ("head_dim", "attention_head_dim"))
        or _required_number(decoder, _HIDDEN) // heads
    )


def _layer_counts(decoder: Mapping[str, Json], layers: int) -> tuple[int, int, int | None]:
    """Return the numbers of windowed and of attention layers, and the tokens of the window."""
    window = _first_positive(decoder, ("sliding_window", "attention_chunk_size", "window_size"))
    if kinds := _listed_layers(decoder):
        attention = [kind for kind in kinds if kind in _ATTENTION]
        if not attention:
            raise UnreadableFiguresError("its layers keep no keys and values")
        windowed = sum(kind in _WINDOWED for kind in attention) if window else 0
        return windowed, len(attention), window
    if (some := _attention_layers(decoder, layers)) is not None:
        return 0, some, None
    if window is None or decoder.get("use_sliding_window") is False:
        return 0, layers, None
    if every := _first_positive(decoder, ("sliding_window_pattern",)):
        return layers - layers // every, layers, window
    if decoder.get("model_type") in _EVERY_SECOND:
        return layers - layers // 2, layers, window
    first = (
        _first_positive(decoder, ("max_window_layers",)) if "use_sliding_window" in decoder else 0
    )
    return max(0, layers - (first or 0)), layers, window


def _attention_layers(decoder: Mapping[str, Json], layers: int) -> int | None:
    """Return the number of attention layers if other layers keep a state; None: all layers."""
    pattern = decoder.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.count("*")
    kinds = decoder.get("attn_type_list")
    if isinstance(kinds, list):
        return sum(kind == 1 for kind in kinds)
    linear = mapping(decoder.get("linear_attn_config"))
    for indices in (decoder.get("attn_layer_indices"), linear.get("full_attn_layers")):
        if isinstance(indices, list) and indices:
            return len(indices)
    every = _first_positive(decoder, ("full_attention_interval", "attn_layer_period"))
    return None if every is None else layers // every


def _listed_layers(decoder: Mapping[str, Json]) -> Sequence[str]:
    for key in ("layer_types", "layers_block_type"):
        kinds = decoder.get(key)
        if isinstance(kinds, list):
            return [str(kind) for kind in kinds]
    return ()


def _longest_sequence(decoder: Mapping[str, Json]) -> int | None:
    """Return the longest sequence as vLLM derives it: the model's figure may need a scaling factor.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/model.py
    """
    stated = _first_positive(decoder, _CONTEXT)
    if stated is not None and stated > integer_bounds.MODEL_WIDTH:
        return None  # Such a number means: any length
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
        return next(_compressed_types(compressed), "int8")
    for part in (document, decoder):
        for key in ("dtype", "torch_dtype"):
            if (name := _TYPES.get(str(part.get(key)))) is not None:
                return name
    return "bfloat16"


def _compressed_types(stated: Mapping[str, Json]) -> Iterator[str]:
    """Yield the data types of compressed weights, from the settings of the compression."""
    for key in ("quant_method", "quant_algo", "fmt"):
        name = str(stated.get(key, "")).lower()
        if name in _TYPES:
            yield _TYPES[name]
    for part in _settings_with_bits(stated):
        bits, kind = part.get("num_bits", part.get("bits")), part.get("type")
        if bits == 8:
            yield "fp8" if kind == "float" else "int8"
        if bits == 4:
            yield "nvfp4" if kind == "float" else "int4"
    if stated.get("load_in_4bit") is True:
        yield "int4"


def _settings_with_bits(stated: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    yield stated
    for group in mapping(stated.get("config_groups")).values():
        yield mapping(mapping(group).get("weights"))


def _required_number(decoder: Mapping[str, Json], keys: Sequence[str]) -> int:
    number = _first_positive(decoder, keys)
    if number is None:
        raise UnreadableFiguresError(f"its config.json has no {keys[0]}")
    return number


def _first_positive(decoder: Mapping[str, Json], keys: Sequence[str]) -> int | None:
    """Return the first positive number under ``keys``; None without one."""
    for key in keys:
        number = decoder.get(key)
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return number
    return None
