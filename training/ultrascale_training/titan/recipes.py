"""Recipes: a TorchTitan configuration by name, ready for token files.

A name is a model, with ``-lora`` for adapters or ``-evaluate`` for one pass over the data. The
degrees of parallelism, batch and length of a run come from the command line, where
``ultrascale recipes`` puts them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale_training.errors import TrainingError

_LORA = "-lora"
_EVALUATE = "-evaluate"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Settings of AdamW and the learning rate, which replace those of a configuration."""

    rate: float  # Learning rate after the warm-up
    warmup: int  # Steps in which it rises to ``rate``
    decay: Literal["linear", "cosine"] = "linear"  # Curve along which it falls to zero afterwards
    weight_decay: float = 0.1  # Decay of the weights
    betas: tuple[float, float] = (0.9, 0.95)  # Decays of the two moments


# Schedule for adapters; the other values are torch's defaults.
# Source: https://github.com/pytorch/torchtune/blob/v0.6.1/recipes/configs/llama3_1/8B_lora.yaml
_ADAPTERS = Schedule(rate=3e-4, warmup=100, decay="cosine", weight_decay=0.01, betas=(0.9, 0.999))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of TorchTitan 0.3.0.

    Source: ``torchtitan/models/<module>/config_registry.py`` and ``__init__.py`` of
    https://github.com/pytorch/torchtitan/tree/v0.3.0
    """

    module: str  # Package under ``torchtitan.models``
    config: str  # Function of its ``config_registry``, which states optimizer, schedule and loss
    flavor: str  # Name in its ``model_registry``, which states the layers
    # Linear layers that LoRA adapts: the attention's, as in the paper.
    # Source: https://arxiv.org/abs/2106.09685 section 4.2
    adapted: tuple[str, ...] = ("wqkv", "wo")
    layers: int | None = None  # Layers to keep in a toy model; None for all
    # Schedule if ``config`` belongs to another model; None for the model's own
    schedule: Schedule | None = None


MODELS: Mapping[str, Model] = {
    "llama3-8b": Model(module="llama3", config="llama3_8b", flavor="8B"),
    "llama3-70b": Model(module="llama3", config="llama3_70b", flavor="70B"),
    # The model's own configuration, llama3_405b, needs Float8 of torchao, which the image lacks.
    "llama3-405b": Model(
        module="llama3",
        config="llama3_70b",
        flavor="405B",
        schedule=Schedule(rate=8e-5, warmup=600),
    ),
    # TorchTitan has a fine-tuning configuration for Qwen3's 8B model, and only pre-training for
    # others.
    "qwen3-8b": Model(module="qwen3", config="sft_qwen3_8b_math", flavor="8B"),
    "qwen3-14b": Model(module="qwen3", config="qwen3_14b", flavor="14B"),
    "qwen3-32b": Model(module="qwen3", config="qwen3_32b", flavor="32B"),
    "qwen3-30b-a3b": Model(module="qwen3", config="qwen3_30b_a3b", flavor="30B-A3B"),
    # Models of a few million parameters, with which to try a job file within a minute.
    "llama3-toy": Model(module="llama3", config="llama3_debugmodel", flavor="debugmodel", layers=2),
    "qwen3-toy": Model(module="qwen3", config="qwen3_debugmodel", flavor="debugmodel", layers=2),
    "qwen3-moe-toy": Model(
        module="qwen3", config="qwen3_moe_debug", flavor="debugmodel_moe", layers=1
    ),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe, parsed from its name."""

    name: str
    model: Model
    lora: bool = False
    evaluate: bool = False

    @property
    def schedule(self) -> Schedule | None:
        """Optimizer and learning rate; None for the model's own configuration."""
        return _ADAPTERS if self.lora else self.model.schedule

    @property
    def trained(self) -> str:
        """Name of the recipe whose checkpoints this recipe reads: without ``-evaluate``."""
        return self.name.removesuffix(_EVALUATE)


def recipe(name: str) -> Recipe:
    """Return the recipe called ``name``.

    Raises:
        TrainingError: There is no such recipe.
    """
    base = name.removesuffix(_EVALUATE)
    model = base.removesuffix(_LORA)
    if model not in MODELS:
        raise TrainingError(
            f"--recipe: no such recipe, got {name!r}; use {', '.join(MODELS)}, with {_LORA} for "
            f"adapters or {_EVALUATE} for an evaluation"
        )
    return Recipe(
        name=name,
        model=MODELS[model],
        lora=base.endswith(_LORA),
        evaluate=name.endswith(_EVALUATE),
    )


def names() -> list[str]:
    """Return the names of all recipes."""
    return [f"{name}{suffix}" for name in MODELS for suffix in ("", _LORA, _EVALUATE)]
