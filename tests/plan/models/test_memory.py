"""Memory of devices that serve, held against what others have measured and published."""

import pytest
from msgspec.structs import replace

from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.parts.models.model import ServingDevice, ServingDivision, kv_bytes, memory_of

GIB = 2**30
LLAMA3_8B, LLAMA3_405B = (known_models()[f"Llama-3.1-{size}B"] for size in (8, 405))
H100 = ServingDevice(name="NVIDIA H100", count=8, memory_bytes=int(79.22 * GIB))
TRN2 = ServingDevice(name="AWS Trainium2", count=64, memory_bytes=24 * GIB, kv_share=0.3)
ONE = ServingDivision(tensor=1, pipeline=1, context=8192, tokens=8192, utilization=0.9)
# deepseek-ai/DeepSeek-V3, config.json: 512 values of the latent vector, 64 of the rotated part.
DEEPSEEK_V3 = Transformer(
    weights_bytes=688_586_727_753,
    dtype="fp8",
    layers=61,
    heads=128,
    kv_heads=128,
    head_width=128,
    latent_width=576,
    longest_context=163_840,
)
# openai/gpt-oss-120b, config.json: every second layer sees 128 tokens.
GPT_OSS = Transformer(
    weights_bytes=65_000_000_000,
    dtype="mxfp4",
    layers=36,
    heads=64,
    kv_heads=8,
    head_width=64,
    windowed_layers=18,
    window=128,
    longest_context=131_072,
)


def test_room_for_the_kv_cache_is_within_a_twentieth_of_what_vllm_logged() -> None:
    """Source: https://github.com/vllm-project/vllm/pull/10511."""
    memory = memory_of(LLAMA3_8B, ONE, H100)

    assert memory.weights / GIB == pytest.approx(14.96, rel=0.01)
    assert memory.room / GIB == pytest.approx(53.29, rel=0.05)


@pytest.mark.parametrize(
    ("shape", "kilobytes"),
    [
        pytest.param(DEEPSEEK_V3, 70.272, id="DeepSeek-V3, multi-head latent attention"),
        pytest.param(LLAMA3_405B, 516.096, id="Llama 3.1 405B, grouped queries"),
    ],
)
def test_kv_cache_of_a_token_is_what_deepseek_published(
    shape: Transformer, kilobytes: float
) -> None:
    """Source: https://arxiv.org/abs/2505.09343 (table 1)."""
    assert memory_of(shape, ONE, H100).token == kilobytes * 1000


@pytest.mark.parametrize(("tensor", "of_one"), [(8, 8), (16, 8), (2, 2)])
def test_each_device_keeps_at_least_one_head_of_keys_and_values(tensor: int, of_one: int) -> None:
    alone = memory_of(LLAMA3_8B, ONE, H100).token
    assert memory_of(LLAMA3_8B, replace(ONE, tensor=tensor), H100).token == alone / of_one


def test_the_latent_vector_is_on_every_device() -> None:
    sixteen = replace(ONE, tensor=8, pipeline=2)

    assert memory_of(DEEPSEEK_V3, sixteen, H100).token == 31 * 576 * 2


def test_layers_with_a_window_keep_the_window_and_a_step() -> None:
    long = replace(ONE, context=131_072, tokens=2048)
    of_token = 2 * 8 * 64 * 2

    kept = kv_bytes(GPT_OSS, long, 131_072)

    # 127 tokens and a step are 136 blocks; a window may begin inside another one.
    assert kept == 18 * of_token * (131_072 + 137 * 16)
    assert kv_bytes(GPT_OSS, replace(long, has_windows=False), 131_072) == 36 * of_token * 131_072


_LAYER = replace(GPT_OSS, attention_layers=1)


@pytest.mark.parametrize(
    ("shape", "of_vllm"),
    [
        (replace(_LAYER, windowed_layers=0), 268_435_456),
        (replace(_LAYER, windowed_layers=1), 4_489_216),
        (replace(DEEPSEEK_V3, attention_layers=1), 150_994_944),
    ],
    ids=["full", "window", "latent"],
)
def test_a_layer_takes_what_vllms_own_classes_answer(shape: Transformer, of_vllm: int) -> None:
    """Recorded of vLLM 0.32.0: `max_memory_usage_bytes` of 131,072 tokens, 2,048 of a step."""
    division = replace(ONE, context=131_072, tokens=2048)
    assert kv_bytes(shape, division, 131_072) == of_vllm


@pytest.mark.parametrize(
    ("tensor", "pipeline", "context", "fit"),
    [
        (8, 2, 8192, "fits"),
        (8, 1, 8192, "too-large"),
        (8, 2, 2**23, "too-large"),
        (8, 2, None, "fits"),
    ],
)
def test_a_model_is_too_large_where_weights_and_one_sequence_leave_no_room(
    tensor: int, pipeline: int, context: int | None, fit: str
) -> None:
    division = replace(ONE, tensor=tensor, pipeline=pipeline, context=context)
    assert memory_of(DEEPSEEK_V3, division, H100).fit == fit


def test_a_model_that_fits_only_without_activations_is_tight() -> None:
    free = memory_of(LLAMA3_8B, ONE, H100)
    assert memory_of(LLAMA3_8B, replace(ONE, context=free.longest), H100).fit == "fits"
    beyond = (free.device - free.weights - free.overhead // 2) // free.token
    assert memory_of(LLAMA3_8B, replace(ONE, context=beyond), H100).fit == "tight"


def test_the_longest_sequence_that_fits_is_the_models_own_where_there_is_room() -> None:
    assert memory_of(LLAMA3_8B, ONE, H100).longest == LLAMA3_8B.longest_context
    assert memory_of(DEEPSEEK_V3, replace(ONE, tensor=8), H100).longest == 0


def test_on_neuron_the_kv_cache_gets_three_tenths_of_the_memory_at_most() -> None:
    """Source: AWS Neuron 2.33.0, determine_available_memory design."""
    small = replace(LLAMA3_8B, weights_bytes=GIB)

    memory = memory_of(small, replace(ONE, tensor=4), TRN2)

    assert memory.room == int(24 * GIB * 0.9 * 0.3) == pytest.approx(memory.device * 0.3)


def test_weights_that_shrink_as_they_load_count_as_they_are_in_memory() -> None:
    whole, half = (
        memory_of(LLAMA3_8B, replace(ONE, loaded_share=share), H100).weights for share in (1, 0.5)
    )
    assert half == whole // 2
