"""Figures of published models by their own config.json, cut to what is read."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.cases import for_each
from ultrascale.catalog.transformers import Transformer, UnreadableFiguresError, transformer_of

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
}
OF_LLAMA = Transformer(
    model_type="llama",
    hidden=8192,
    dtype="bfloat16",
    layers=80,
    heads=64,
    kv_heads=8,
    head_width=128,
    longest_context=131_072,
)
SHAPE = {"num_hidden_layers": 48, "num_attention_heads": 16, "hidden_size": 2048}
OF_SHAPE = Transformer(
    dtype="bfloat16", layers=48, heads=16, kv_heads=16, head_width=128, hidden=2048
)
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
W4A16 = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
}


def shaped(**changes: Any) -> dict[str, Any]:
    return {**SHAPE, **changes}


LETTERS = shaped(hybrid_override_pattern="M-M*" * 12)
OLDER = {"n_layer": 48, "n_head": 16, "n_embd": 2048, "multi_query": True}
CONFIGS: dict[str, tuple[dict[str, Any], Transformer]] = {
    "Llama 3.1 70B": (LLAMA, OF_LLAMA),
    "DeepSeek-V3": (
        {
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "hidden_size": 7168,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "max_position_embeddings": 163_840,
            "quantization_config": FP8,
            "torch_dtype": "bfloat16",
        },
        Transformer(
            dtype="fp8",
            layers=61,
            heads=128,
            kv_heads=128,
            head_width=56,
            latent_width=576,
            hidden=7168,
            longest_context=163_840,
        ),
    ),
    "gpt-oss-120b": (
        {
            "num_hidden_layers": 36,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "hidden_size": 2880,
            "sliding_window": 128,
            "layer_types": ["sliding_attention", "full_attention"] * 18,
            "max_position_embeddings": 131_072,
            "quantization_config": {"quant_method": "mxfp4"},
        },
        Transformer(
            dtype="mxfp4",
            layers=36,
            heads=64,
            kv_heads=8,
            head_width=64,
            hidden=2880,
            windowed_layers=18,
            window=128,
            longest_context=131_072,
        ),
    ),
    "Gemma 3 27B, with pictures": (
        {
            "model_type": "gemma3",
            "torch_dtype": "bfloat16",
            "vision_config": {"num_hidden_layers": 27},
            "text_config": {
                "num_hidden_layers": 62,
                "num_attention_heads": 32,
                "num_key_value_heads": 16,
                "head_dim": 128,
                "hidden_size": 5376,
                "sliding_window": 1024,
                "sliding_window_pattern": 6,
            },
        },
        Transformer(
            dtype="bfloat16",
            layers=62,
            heads=32,
            kv_heads=16,
            head_width=128,
            hidden=5376,
            windowed_layers=52,
            window=1024,
        ),
    ),
    "Qwen3-Next, a state in most layers": (
        shaped(
            head_dim=256,
            num_key_value_heads=2,
            layer_types=["linear_attention"] * 36 + ["full_attention"] * 12,
        ),
        replace(OF_SHAPE, kv_heads=2, head_width=256, attention_layers=12),
    ),
    "Qwen2.5, whose window is off": (
        shaped(sliding_window=32_768, use_sliding_window=False, max_window_layers=28),
        OF_SHAPE,
    ),
    "Mistral 7B, a window in each layer": (
        shaped(sliding_window=4096),
        replace(OF_SHAPE, windowed_layers=48, window=4096),
    ),
    # As vLLM 0.32.0 takes it.
    "YaRN, which is in the figure already": (
        shaped(max_position_embeddings=40_960, rope_scaling={"rope_type": "yarn", "factor": 4.0}),
        replace(OF_SHAPE, longest_context=40_960),
    ),
    "a context that is stretched": (
        shaped(max_position_embeddings=4096, rope_scaling={"type": "linear", "factor": 2.0}),
        replace(OF_SHAPE, longest_context=8192),
    ),
    "Nemotron-H, a letter for each layer": (LETTERS, replace(OF_SHAPE, attention_layers=12)),
    "MiniMax, a number for each layer": (
        shaped(attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 6),
        replace(OF_SHAPE, attention_layers=6),
    ),
    "Kimi Linear, a list of some layers": (
        shaped(linear_attn_config={"full_attn_layers": [4, 8, 12]}),
        replace(OF_SHAPE, attention_layers=3),
    ),
    "Jamba, every eighth layer": (
        shaped(attn_layer_period=8),
        replace(OF_SHAPE, attention_layers=6),
    ),
    "W4A16": (shaped(quantization_config=W4A16), replace(OF_SHAPE, dtype="int4")),
    "GPTQ": (
        shaped(quantization_config={"quant_method": "gptq", "bits": 8}),
        replace(OF_SHAPE, dtype="int8"),
    ),
    "float32": (shaped(torch_dtype="float32"), replace(OF_SHAPE, dtype="float32")),
    "older names, one head of keys and values": (OLDER, replace(OF_SHAPE, kv_heads=1)),
}


@for_each(CONFIGS)
def test_the_figures_of_a_model_are_those_of_its_config(
    document: dict[str, Any], expected: Transformer
) -> None:
    assert transformer_of(document) == expected


@for_each(
    [
        ({"model_type": "t5"}, "its config.json has no num_hidden_layers"),
        ({**SHAPE, "layer_types": ["mamba"] * 48}, "its layers keep no keys and values"),
        ({"num_hidden_layers": True}, "its config.json has no num_hidden_layers"),
    ]
)
def test_a_model_without_these_figures_says_so(document: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableFiguresError, match=why):
        transformer_of(document)
