"""Models and recipes, as their publishers state them."""

import pytest

from ultrascale.catalog.language_models import known_models
from ultrascale.parts.recipes.table import PEAK_TERAFLOPS, RECIPES, Recipe


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("Llama-3.1-8B", 8_030_261_248),
        ("Llama-3.1-70B", 70_553_706_496),
        ("Llama-3.1-405B", 405_853_388_800),
        ("Qwen3-8B", 8_190_735_360),
        ("Qwen3-32B", 32_762_123_264),
        ("Qwen3-30B-A3B", 30_532_122_624),
    ],
)
def test_a_model_has_as_many_parameters_as_its_published_weights(
    model: str, published: int
) -> None:
    """Source: the safetensors metadata of each model's page on huggingface.co."""
    assert known_models()[model].parameters == published


def test_a_token_passes_through_three_of_the_thirty_billion_parameters_of_qwen3_30b_a3b() -> None:
    assert known_models()["Qwen3-30B-A3B"].active_parameters == pytest.approx(3.3e9, rel=0.02)
    llama = known_models()["Llama-3.1-8B"]
    assert llama.active_parameters == llama.parameters


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_recipe_names_its_source_and_accelerators_of_known_speed(recipe: Recipe) -> None:
    assert recipe.source.startswith("https://")
    assert recipe.layouts.keys() <= PEAK_TERAFLOPS.keys()
    assert {"NVIDIA H100", "NVIDIA H200", "NVIDIA B200", "NVIDIA B300"} <= recipe.layouts.keys()
