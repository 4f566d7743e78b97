"""Division of an accelerator's memory by vLLM when it serves a language model.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/kv_cache_interface.py
    https://awsdocs-neuron.readthedocs-hosted.com/en/v2.33.0/vllm-neuron/docs/design/vllm/determine_available_memory_design.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

_GIB = 2**30

BLOCK_TOKENS = 16
"""Tokens of a block of the KV cache by default."""

NEURON_KV_SHARE = 0.30
"""Default share of a device's memory that vLLM Neuron may use for the KV cache."""

NEURON_KV_VARIABLE = "VLLM_NEURON_KV_GMU_BUDGET_CAP_FRACTION"
"""Variable that sets `NEURON_KV_SHARE`."""

NEURON_PLUGIN_SINCE = (0, 24)
"""First release of vLLM for which AWS's images hold vLLM Neuron, no longer NxD Inference."""

STATIC_CACHE = frozenset({"AWS Inferentia2", "AWS Trainium"})
"""Accelerators served only by NxD Inference, which reserves a whole batch's cache [inferred]."""

# 3.1 to 4.8 of 79.2 GiB of an H100 in vLLM's log: CUDA, NCCL and the profiling run's activations.
# Source: https://github.com/vllm-project/vllm/pull/10511
OVERHEAD_SHARE = 0.06
"""Estimated share of a device's memory that holds neither weights nor KV cache."""
OVERHEAD_SOURCE = "https://github.com/vllm-project/vllm/pull/10511"

FORMULA_SOURCE = "https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/kv_cache_interface.py"
NEURON_SOURCE = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/v2.33.0/vllm-neuron/docs/design/vllm/"
    "determine_available_memory_design.html"
)

VALUE_BYTES: Mapping[str, float] = MappingProxyType(
    {"float32": 4, "bfloat16": 2, "float16": 2, "half": 2, "float": 4}
)
"""Bytes of a value, by vLLM's data type for computation."""

# Methods by which vLLM quantizes weights of 16 bits when it loads them.
# Source: https://docs.vllm.ai/en/v0.32.0/features/quantization/
LOADED_SHARE: Mapping[str, float] = MappingProxyType({"fp8": 0.5, "bitsandbytes": 0.25})
"""Size of loaded weights as a share of their files, by the value of ``--quantization``."""


class BatchDefaults(Frozen):
    """Default batch of vLLM's server."""

    tokens: int  # Tokens of a step
    sequences: int  # Sequences at the same time


def batch_defaults(accelerator: str, memory_bytes: int) -> BatchDefaults:
    """Return the default batch of vLLM's server on a device.

    Args:
        accelerator: Name of the accelerator.
        memory_bytes: Memory of the device.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/engine/arg_utils.py
    """
    if memory_bytes >= 160 * _GIB:
        return BatchDefaults(tokens=16_384, sequences=1024)
    if memory_bytes >= 70 * _GIB and "A100" not in accelerator:
        return BatchDefaults(tokens=8192, sequences=1024)
    return BatchDefaults(tokens=2048, sequences=256)


def kv_value_bytes(dtype: str, model_bytes: float) -> float:
    """Return the bytes of a value in the KV cache.

    Args:
        dtype: Value of ``--kv-cache-dtype``.
        model_bytes: Bytes of a value of the model, which ``auto`` takes.
    """
    if dtype == "auto":
        return model_bytes
    if dtype in VALUE_BYTES:
        return VALUE_BYTES[dtype]
    # Without the scales for parts of a token: the true figure is higher.
    four_bits = ("int4", "nvfp4", "turboquant", "ultraquant")
    return 0.5 if dtype.startswith(four_bits) else 1
