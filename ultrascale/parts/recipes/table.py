"""Recipes: TorchTitan's settings to train a language model, by accelerator.

Batches, degrees and steps are defaults that options may change. A layout names the published run
that it repeats; without a published run its memory and time are calculated, and it never ran.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen

Purpose = Literal["pre-train", "fine-tune", "lora", "evaluate"]
Recomputation = Literal["none", "selective", "full"]

ENGINE = "torchtitan 0.3.0"
ENGINE_SOURCE = "https://pypi.org/project/torchtitan/0.3.0/"
PROGRAM = "ultrascale_training.titan"
"""Module that runs a recipe in our images."""

# TorchTitan Neuron 0.2.2+neuron.1 is a fork, in public beta, for Trn2 and Trn3. Its page installs
# it into an image by hand. The module that torchrun starts is that of TorchTitan [inferred].
# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/v2.33.0/training/torchtitan/get-started/setup-torchtitan-neuron.html
NEURON_ENGINE = "TorchTitan Neuron 0.2.2+neuron.1"
NEURON_PROGRAM = "torchtitan.train"
NEURON_MODULES = "torchtitan_neuron.models"
NEURON_SOURCE = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/components/torchtitan-neuron.html"

_BENCHMARKS = (
    "https://github.com/pytorch/torchtitan/blob/31a17bfdb70bab6f62a13d21816a5339b911d6e3/"
    "benchmarks/llama3_h100_202412_torchtitan.md"
)
_REGISTRY = "https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models"
_NEURON_TUTORIAL = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/training/torchtitan/tutorials/tutorial-basic-training.html"

# Peak of dense BF16 arithmetic of one GPU or one Trainium chip.
# Sources: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/tools/utils.py and
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium2.html
PEAK_TERAFLOPS: Mapping[str, float] = MappingProxyType(
    {
        "NVIDIA A100": 312.0,
        "NVIDIA H100": 989.0,
        "NVIDIA H200": 989.0,
        "NVIDIA B200": 2_250.0,
        "NVIDIA B300": 2_250.0,
        "AWS Trainium2": 667.0,
    }
)
FLOAT8_DEVICES = frozenset({"NVIDIA H100", "NVIDIA H200", "NVIDIA B200", "NVIDIA B300"})
"""Accelerators whose matrix units multiply in 8 bits.

Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/components/quantization/float8.py
"""
# Where no run is published: the least that TorchTitan reports of dense models, for Llama 3.1 8B on
# H100, and a third of it for mixtures of experts, whose tokens travel between devices [inferred].
ASSUMED_SHARE, ASSUMED_SHARE_OF_MIXTURES = 0.35, 0.12
# It reports 52 % to 58 % of the peak for 8B and 70B of Llama 3 on 64 A100.
_A100_SOURCE = "https://github.com/pytorch/torchtitan/blob/4d88a8a44fe439f73f564b83d60b29a906ef3507/docs/performance.md"


# Modules of TorchTitan by the architecture of a `config.json`.
# Source: https://github.com/pytorch/torchtitan/tree/v0.3.0/torchtitan/models
_MODULES: Mapping[str, str] = MappingProxyType(
    {"llama": "llama3", "qwen3": "qwen3", "qwen3_moe": "qwen3"}
)
_MODELS = known_models()


class Speed(Frozen):
    """Published speed of a recipe on an accelerator, compiled, and in Float8 if the recipe is."""

    source: str  # Address of the figure
    tokens_per_second: float = 0.0  # Tokens a second of a device; 0 where the share is published
    share: float = 0.0  # Share of the peak in BF16; 0 where the tokens are published


class Layout(Frozen):
    """Division of a model among devices; the remaining devices divide the data."""

    local_batch: int = 1  # Sequences of a data-parallel group in one pass
    tensor: int = 1  # Devices that share each matrix
    pipeline: int = 1  # Groups of layers one after another
    context: int = 1  # Devices that share each sequence
    expert: int = 1  # Devices that share the experts of a layer
    # Activations that are recomputed instead of kept.
    recomputation: Recomputation = "selective"
    # Configuration of TorchTitan Neuron; empty on other devices, or without a source.
    config: str = ""
    source: str = ""  # Published run of this layout; empty for our own layout, which never ran
    speed: Speed | None = None  # Published speed, with the same recomputation; None: unknown


class Schedule(Frozen):
    """Settings of AdamW, and the learning rate from the first step to the last, on GPUs."""

    rate: float  # Learning rate after the warm-up
    warmup: int  # Steps in which it rises to ``rate``
    decay: Literal["linear", "cosine"] = "linear"  # Curve along which it falls
    # Share of all steps, at the end, in which it falls; None: all steps after the warm-up.
    decay_share: float | None = None
    least: float = 0.0  # Learning rate of the last step, as a share of ``rate``
    weight_decay: float = 0.1  # Decay of the weights
    betas: tuple[float, float] = (0.9, 0.95)  # Decays of the two moments
    source: str = ""  # Configuration that states the settings; empty for the recipe's own


class Recipe(Frozen):
    """A way to train a model."""

    name: str  # Name in the job file
    purpose: Purpose  # Its task, such as pre-training
    model: Transformer  # The model
    sequence: int  # Tokens of a sequence
    global_batch: int  # Sequences of a step, on any number of nodes
    steps: int  # Steps of the whole run
    nodes: int  # Default number of nodes
    # Layout by accelerator, in the catalog's names.
    layouts: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    source: str = ""  # Configuration of TorchTitan on which it is based
    schedule: Schedule | None = None  # Its optimizer and learning rate; None without training
    float8: bool = False  # Whether matrices are multiplied in Float8, as in the published runs

    @property
    def family(self) -> str:
        """TorchTitan's module for the model."""
        return _MODULES[self.model.model_type]

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.sequence * self.global_batch


def _table(*recipes: Recipe) -> Mapping[str, Recipe]:
    return MappingProxyType({recipe.name: recipe for recipe in recipes})


# Rank of adapters of attention's matrices, the default of `ultrascale_training.titan`. The paper
# finds that a higher rank adds little.
# Source: https://arxiv.org/abs/2106.09685 (4.2, 7.2)
LORA_RANK = 16

# The scale of an adapter is its alpha divided by its rank, as in ours: the rates carry over.
_TORCHTUNE = "https://github.com/pytorch/torchtune/blob"
_LORA = Schedule(
    rate=3e-4,
    warmup=100,
    decay="cosine",
    weight_decay=0.01,
    betas=(0.9, 0.999),
    source=f"{_TORCHTUNE}/v0.6.1/recipes/configs/llama3_1/8B_lora.yaml",
)
_QWEN3_LORA = (
    f"{_TORCHTUNE}/37d9e04659c84fe8d9d8982a7d16c7d115052438/recipes/configs/qwen3/8B_lora.yaml"
)

# Llama 3 was trained with 4 M tokens a step at first, and with 16 M later on.
# Source: https://arxiv.org/abs/2407.21783 (3.4.1)
RECIPES: Mapping[str, Recipe] = _table(
    Recipe(
        name="llama3-8b",
        purpose="pre-train",
        model=_MODELS["Llama-3.1-8B"],
        sequence=8192,
        global_batch=512,
        steps=100_000,
        nodes=8,
        layouts={
            "NVIDIA A100": Layout(local_batch=1, speed=Speed(source=_A100_SOURCE, share=0.55)),
            "NVIDIA H100": Layout(
                local_batch=1, speed=Speed(source=_BENCHMARKS, tokens_per_second=8_380)
            ),
            "NVIDIA H200": Layout(local_batch=4),
            "NVIDIA B200": Layout(local_batch=4),
            "NVIDIA B300": Layout(local_batch=8),
            "AWS Trainium2": Layout(local_batch=1, tensor=4),
        },
        float8=True,
        source=f"{_REGISTRY}/llama3/config_registry.py (llama3_8b)",
        schedule=Schedule(rate=3e-4, warmup=200),
    ),
    Recipe(
        name="llama3-70b",
        purpose="pre-train",
        model=_MODELS["Llama-3.1-70B"],
        sequence=8192,
        global_batch=512,
        steps=100_000,
        nodes=32,
        layouts={
            "NVIDIA A100": Layout(
                local_batch=8,
                tensor=8,
                recomputation="full",
                speed=Speed(source=_A100_SOURCE, share=0.55),
            ),
            "NVIDIA H100": Layout(
                local_batch=16,
                tensor=8,
                recomputation="full",
                source=_BENCHMARKS,
                speed=Speed(source=_BENCHMARKS, tokens_per_second=829),
            ),
            "NVIDIA H200": Layout(local_batch=8, tensor=8),
            "NVIDIA B200": Layout(local_batch=8, tensor=8),
            "NVIDIA B300": Layout(local_batch=16, tensor=8),
            "AWS Trainium2": Layout(local_batch=1, tensor=8, recomputation="full"),
        },
        float8=True,
        source=f"{_REGISTRY}/llama3/config_registry.py (llama3_70b)",
        schedule=Schedule(rate=1.5e-4, warmup=200),
    ),
    Recipe(
        name="llama3-405b",
        purpose="pre-train",
        model=_MODELS["Llama-3.1-405B"],
        sequence=8192,
        global_batch=2048,
        steps=100_000,
        nodes=64,
        layouts={
            "NVIDIA H100": Layout(
                local_batch=32,
                tensor=8,
                pipeline=8,
                recomputation="full",
                source=_BENCHMARKS,
                speed=Speed(source=_BENCHMARKS, tokens_per_second=100),
            ),
            "NVIDIA H200": Layout(local_batch=32, tensor=8, pipeline=8),
            "NVIDIA B200": Layout(local_batch=32, tensor=8, pipeline=4),
            "NVIDIA B300": Layout(local_batch=32, tensor=8, pipeline=4),
        },
        float8=True,
        source=f"{_REGISTRY}/llama3/config_registry.py (llama3_405b)",
        schedule=Schedule(rate=8e-5, warmup=600),
    ),
    Recipe(
        name="qwen3-8b",
        purpose="fine-tune",
        model=_MODELS["Qwen3-8B"],
        sequence=4096,
        global_batch=64,
        steps=1_000,
        nodes=1,
        layouts={
            "NVIDIA A100": Layout(local_batch=1),
            "NVIDIA H100": Layout(local_batch=2),
            "NVIDIA H200": Layout(local_batch=4),
            "NVIDIA B200": Layout(local_batch=8),
            "NVIDIA B300": Layout(local_batch=8),
            "AWS Trainium2": Layout(
                local_batch=1, tensor=4, config="qwen3_8b_tp4_fsdp16_sac", source=_NEURON_TUTORIAL
            ),
        },
        source=f"{_REGISTRY}/qwen3/config_registry.py (sft_qwen3_8b_math)",
        schedule=Schedule(
            rate=2e-5,
            warmup=15,
            decay="cosine",
            decay_share=0.9,
            least=0.1,
        ),
    ),
    Recipe(
        name="qwen3-32b",
        purpose="pre-train",
        model=_MODELS["Qwen3-32B"],
        sequence=4096,
        global_batch=512,
        steps=100_000,
        nodes=16,
        layouts={
            "NVIDIA A100": Layout(local_batch=2, recomputation="full"),
            "NVIDIA H100": Layout(local_batch=1),
            "NVIDIA H200": Layout(local_batch=2),
            "NVIDIA B200": Layout(local_batch=4),
            "NVIDIA B300": Layout(local_batch=4),
            "AWS Trainium2": Layout(local_batch=1, tensor=8, recomputation="full"),
        },
        source=f"{_REGISTRY}/qwen3/config_registry.py (qwen3_32b)",
        schedule=Schedule(rate=8e-4, warmup=600),
    ),
    Recipe(
        name="qwen3-30b-a3b",
        purpose="pre-train",
        model=_MODELS["Qwen3-30B-A3B"],
        sequence=4096,
        global_batch=1024,
        steps=100_000,
        nodes=8,
        layouts={
            "NVIDIA A100": Layout(local_batch=1, expert=8),
            "NVIDIA H100": Layout(local_batch=2, expert=8),
            "NVIDIA H200": Layout(local_batch=4, expert=8),
            "NVIDIA B200": Layout(local_batch=4, expert=8),
            "NVIDIA B300": Layout(local_batch=8, expert=8),
            "AWS Trainium2": Layout(local_batch=1, tensor=4, expert=16, recomputation="full"),
        },
        source=f"{_REGISTRY}/qwen3/config_registry.py (qwen3_30b_a3b)",
        schedule=Schedule(rate=8e-4, warmup=600),
    ),
    Recipe(
        name="llama3-8b-lora",
        purpose="lora",
        model=_MODELS["Llama-3.1-8B"],
        sequence=8192,
        global_batch=64,
        steps=1_000,
        nodes=1,
        layouts={
            "NVIDIA A100": Layout(local_batch=1),
            "NVIDIA H100": Layout(local_batch=1),
            "NVIDIA H200": Layout(local_batch=2),
            "NVIDIA B200": Layout(local_batch=2),
            "NVIDIA B300": Layout(local_batch=2),
        },
        source=f"{_REGISTRY}/llama3/config_registry.py (llama3_debugmodel_float8_emulate_lora)",
        schedule=_LORA,
    ),
    Recipe(
        name="qwen3-8b-lora",
        purpose="lora",
        model=_MODELS["Qwen3-8B"],
        sequence=4096,
        global_batch=64,
        steps=1_000,
        nodes=1,
        layouts={
            "NVIDIA A100": Layout(local_batch=2),
            "NVIDIA H100": Layout(local_batch=2),
            "NVIDIA H200": Layout(local_batch=4),
            "NVIDIA B200": Layout(local_batch=4),
            "NVIDIA B300": Layout(local_batch=4),
        },
        source="https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/components/lora.py",
        schedule=replace(_LORA, source=_QWEN3_LORA),
    ),
    Recipe(
        name="llama3-8b-evaluate",
        purpose="evaluate",
        model=_MODELS["Llama-3.1-8B"],
        sequence=8192,
        global_batch=64,
        steps=100,
        nodes=1,
        layouts={
            "NVIDIA A100": Layout(local_batch=4),
            "NVIDIA H100": Layout(local_batch=4),
            "NVIDIA H200": Layout(local_batch=4),
            "NVIDIA B200": Layout(local_batch=4),
            "NVIDIA B300": Layout(local_batch=4),
        },
        source="https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/components/validate.py",
    ),
)
"""All recipes, by name."""

DEVICES: tuple[str, ...] = tuple(
    dict.fromkeys(device for recipe in RECIPES.values() for device in recipe.layouts)
)
"""Accelerators for which any recipe has a layout."""
