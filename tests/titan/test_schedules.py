"""Optimizers and learning rates of recipes, held against the configurations that they follow."""

import importlib
import re
from pathlib import Path

import pytest
import worlds
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.trainer import Trainer
from toys import arguments as toy_arguments
from toys import events

from ultrascale.parts.recipes.table import RECIPES, Recipe, Schedule
from ultrascale_training.titan import arguments
from ultrascale_training.titan.configuration import configuration

LEARNING_RATE = "optimizer.param_groups.0.optimizer_kwargs.lr"


def optimizer_of(schedule: Schedule) -> object:
    """Return TorchTitan's settings of the optimizer that the catalog records."""
    return default_adamw(lr=schedule.rate, betas=(0.9, 0.95), weight_decay=0.1).param_groups


def rates_of(schedule: Schedule) -> object:
    """Return TorchTitan's settings of the learning rate that the catalog records."""
    return LRSchedulersContainer.Config(
        warmup_steps=schedule.warmup, decay_ratio=None, decay_type="linear", min_lr_factor=0.0
    )


def run_of(recipe: str, data: Path, *options: str) -> Trainer.Config:
    words = [f"--recipe={recipe}", f"--data={data}", "--output-dir=/tmp/out", *options]
    return configuration(arguments.parse(words))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda each: each.name)
def test_a_recipe_learns_at_the_rate_of_the_configuration_that_it_follows(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, function = re.fullmatch(
        r".*/models/(\w+)/config_registry\.py \((\w+)\)", recipe.source
    ).groups()  # pyright: ignore[reportOptionalMemberAccess]
    models = importlib.import_module(f"torchtitan.models.{module}")
    registry = importlib.import_module(f"torchtitan.models.{module}.config_registry")
    # Layers in Float8 need torchao, and have no part in the schedule.
    monkeypatch.setattr(
        registry, "model_registry", lambda flavor, **_: models.model_registry(flavor)
    )
    followed = getattr(registry, function)()

    assert followed.optimizer.param_groups == optimizer_of(recipe.schedule)
    assert followed.lr_scheduler == rates_of(recipe.schedule)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda each: each.name)
def test_the_program_learns_at_the_rate_that_the_list_of_recipes_shows(
    recipe: Recipe, data: Path
) -> None:
    titan = run_of(recipe.name, data)

    assert titan.optimizer.param_groups == optimizer_of(recipe.schedule)
    assert titan.lr_scheduler == rates_of(recipe.schedule)


@pytest.mark.parametrize("name", ["llama3-405b", "qwen3-32b"])
@pytest.mark.parametrize(
    "option", [LEARNING_RATE, LEARNING_RATE.replace("_", "-")], ids=["underscores", "hyphens"]
)
def test_a_rate_of_the_users_is_the_one_that_the_optimizer_has(
    name: str, option: str, data: Path
) -> None:
    titan = run_of(name, data, f"--{option}=1e-6", "--lr_scheduler.warmup_steps=7")

    assert titan.optimizer.param_groups[0].optimizer_kwargs["lr"] == 1e-6
    assert titan.lr_scheduler.warmup_steps == 7


def test_a_run_that_goes_on_has_the_rate_of_its_new_start(data: Path, tmp_path: Path) -> None:
    toy = toy_arguments("llama3-toy", data, tmp_path, steps=100)
    for rate in (1e-3, 1e-5):
        run = [*toy, f"--{LEARNING_RATE}={rate}", "--lr_scheduler.decay_ratio=0.1"]
        worlds.run(1, [*run, "--steps-this-run=2"], tmp_path)

    found = [step["learning_rate"] for step in events(tmp_path, "step")]
    assert found == [pytest.approx(rate) for rate in (1e-3, 1e-3, 1e-5, 1e-5)]
