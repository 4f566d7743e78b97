"""Learning rates of recipes; `tests/titan` holds the others against TorchTitan's configurations."""

from pathlib import Path

import pytest
import yaml

from ultrascale.parts.recipes.table import RECIPES

DATA = Path(__file__).parents[2] / "data"
TORCHTUNE = yaml.safe_load((DATA / "torchtune-lora.yaml").read_text(encoding="utf-8"))
# Of AdamW in torch, which a configuration without `betas` has.
BETAS = (0.9, 0.999)


@pytest.mark.parametrize("name", ["llama3-8b-lora", "qwen3-8b-lora"])
def test_adapters_learn_as_in_the_configuration_that_their_recipe_names(name: str) -> None:
    schedule = RECIPES[name].schedule
    assert schedule is not None
    stated = TORCHTUNE[schedule.source]
    optimizer, rates = stated["optimizer"], stated["lr_scheduler"]

    assert optimizer["_component_"] == "torch.optim.AdamW"
    assert (schedule.rate, schedule.weight_decay) == (optimizer["lr"], optimizer["weight_decay"])
    assert schedule.betas == BETAS
    assert schedule.warmup == rates["num_warmup_steps"]
    assert rates["_component_"].endswith("get_cosine_schedule_with_warmup")
    assert (schedule.decay, schedule.decay_share, schedule.least) == ("cosine", None, 0)


def test_no_recipe_spends_its_run_on_the_warm_up() -> None:
    """TorchTitan's own rule is a fifth of the steps."""
    for recipe in RECIPES.values():
        if recipe.schedule is not None:
            assert recipe.schedule.warmup <= recipe.steps / 5, recipe.name


def test_each_recipe_that_learns_says_at_what_rate() -> None:
    without = [recipe.name for recipe in RECIPES.values() if recipe.schedule is None]

    assert without == ["llama3-8b-evaluate"]
