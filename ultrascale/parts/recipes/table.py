"""Recipes: TorchTitan's settings to pre-train a language model, by accelerator.

Batches, degrees and steps are defaults that options may change. A layout names the published run
that it repeats; without a published run its memory and time are calculated, and it never ran.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import field

from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen

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

# Modules of TorchTitan by the architecture of a `config.json`.
# Source: https://github.com/pytorch/torchtitan/tree/v0.3.0/torchtitan/models
_MODULES: Mapping[str, str] = MappingProxyType(
    {"llama": "llama3", "qwen3": "qwen3", "qwen3_moe": "qwen3"}
)


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
    source: str = ""  # Published run of this layout; empty for our own layout, which never ran
    speed: Speed | None = None  # Published speed, with the same recomputation; None: unknown


class Schedule(Frozen):
    """Learning rate on GPUs; after the warm-up it falls along a line to 0 at the last step."""

    rate: float  # Learning rate after the warm-up
    warmup: int  # Steps in which it rises to ``rate``


class Recipe(Frozen):
    """A way to pre-train a model."""

    name: str  # Name in the job file
    model: Transformer  # The model
    sequence: int  # Tokens of a sequence
    global_batch: int  # Sequences of a step, on any number of nodes
    steps: int  # Steps of the whole run
    nodes: int  # Default number of nodes
    schedule: Schedule  # Its learning rate
    # Layout by accelerator, in the catalog's names.
    layouts: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    source: str = ""  # Configuration of TorchTitan on which it is based
    float8: bool = False  # Whether matrices are multiplied in Float8, as in the published runs

    @property
    def family(self) -> str:
        """TorchTitan's module for the model."""
        return _MODULES[self.model.model_type]

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.sequence * self.global_batch


def _recorded() -> Iterator[Recipe]:
    models = known_models()
    stated = Path(__file__).with_name("recipes.json").read_bytes()
    for recipe in msgspec.json.decode(stated, type=list[dict[str, object]]):
        yield msgspec.convert({**recipe, "model": models[str(recipe["model"])]}, Recipe)


# Llama 3 was trained with 4 M tokens a step at first, and with 16 M later on. 0.55 of the peak is
# the middle of what TorchTitan reports for 8B and 70B of Llama 3 on 64 A100.
# Source: https://arxiv.org/abs/2407.21783 (3.4.1)
RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in _recorded()})
"""All recipes, by name."""

DEVICES: tuple[str, ...] = tuple(
    dict.fromkeys(device for recipe in RECIPES.values() for device in recipe.layouts)
)
"""Accelerators for which any recipe has a layout."""
