"""Recipes: a TorchTitan configuration by name, ready for token files.

The degrees of parallelism, batch and length of a run come from the command line, where
``ultrascale recipes`` puts them.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Pre-training of a model of TorchTitan 0.3.0.

    Source: ``torchtitan/models/<module>/config_registry.py`` and ``__init__.py`` of
    https://github.com/pytorch/torchtitan/tree/v0.3.0
    """

    name: str
    module: str  # Package under ``torchtitan.models``
    config: str  # Function of its ``config_registry``, which states optimizer, schedule and loss
    flavor: str  # Name in its ``model_registry``, which states the layers
    layers: int | None = None  # Layers to keep in a toy model; None for all
    # Learning rate and steps of the warm-up, if ``config`` belongs to another model
    schedule: tuple[float, int] | None = None


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("llama3-8b", "llama3", "llama3_8b", "8B"),
        Recipe("llama3-70b", "llama3", "llama3_70b", "70B"),
        # The model's own configuration, llama3_405b, needs Float8 of torchao.
        Recipe("llama3-405b", "llama3", "llama3_70b", "405B", schedule=(8e-5, 600)),
        Recipe("qwen3-14b", "qwen3", "qwen3_14b", "14B"),
        Recipe("qwen3-32b", "qwen3", "qwen3_32b", "32B"),
        Recipe("qwen3-30b-a3b", "qwen3", "qwen3_30b_a3b", "30B-A3B"),
        # Models of a few million parameters, with which to try a job file within a minute.
        Recipe("llama3-toy", "llama3", "llama3_debugmodel", "debugmodel", layers=2),
        Recipe("qwen3-toy", "qwen3", "qwen3_debugmodel", "debugmodel", layers=2),
        Recipe("qwen3-moe-toy", "qwen3", "qwen3_moe_debug", "debugmodel_moe", layers=1),
    )
}
