"""Models and recipes, as their publishers state them."""

import pytest

from ultrascale.catalog import language_models as models
from ultrascale.catalog.language_models import LanguageModel
from ultrascale.catalog.recipes import PEAK_TERAFLOPS, RECIPES, Recipe


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (models.LLAMA3_8B, 8_030_261_248),
        (models.LLAMA3_70B, 70_553_706_496),
        (models.LLAMA3_405B, 405_853_388_800),
        (models.QWEN3_8B, 8_190_735_360),
        (models.QWEN3_32B, 32_762_123_264),
        (models.QWEN3_30B_A3B, 30_532_122_624),
    ],
    ids=lambda value: value.name if isinstance(value, LanguageModel) else "",
)
def test_a_model_has_as_many_parameters_as_its_published_weights(
    model: LanguageModel, published: int
) -> None:
    """Source: the safetensors metadata of each model's page on huggingface.co."""
    assert model.parameters == published


def test_a_token_passes_through_three_of_the_thirty_billion_parameters_of_qwen3_30b_a3b() -> None:
    assert models.QWEN3_30B_A3B.active_parameters == pytest.approx(3.3e9, rel=0.02)
    assert models.LLAMA3_8B.active_parameters == models.LLAMA3_8B.parameters


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_recipe_names_its_source_and_accelerators_of_known_speed(recipe: Recipe) -> None:
    assert recipe.source.startswith("https://")
    assert recipe.layouts.keys() <= PEAK_TERAFLOPS.keys()
    assert {"NVIDIA H100", "NVIDIA H200", "NVIDIA B200", "NVIDIA B300"} <= recipe.layouts.keys()
