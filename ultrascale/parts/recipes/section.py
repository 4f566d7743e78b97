"""`jobs.NAME.recipe`: the recipe of a training job."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec

from ultrascale import config
from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes.table import RECIPES


class Method(Frozen):
    """A method of post-training by TRL."""

    name: str  # Name in the job file
    script: str  # TRL's script
    rows: str  # Columns of its data, in words
    columns: tuple[tuple[str, ...], ...] = ()  # Columns of a row, one of these sets
    does: str  # Its task
    trainium: str = ""  # Library that trains so on Trn1 and Trn2, not run by us; empty for none
    options: tuple[str, ...] = ()  # Options of the script that make it this method
    needs: tuple[str, ...] = ()  # Options beside the model and the data that it needs
    sequences: int = 1  # Sequences of a row that are trained on together
    frozen_models: int = 0  # Models of the same size that do not learn, such as a reference


METHOD_OF: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in msgspec.json.decode(
            Path(__file__).with_name("methods.json").read_bytes(), type=list[Method]
        )
    }
)
"""Methods of post-training, by the name of their recipe."""

FORMER: Mapping[str, tuple[str, str]] = MappingProxyType(
    msgspec.json.decode(
        Path(__file__).with_name("former.json").read_bytes(), type=dict[str, tuple[str, str]]
    )
)
"""Recipe and model in the place of recipes that are gone."""

RecipeName = Annotated[str, config.known_in_schema(lambda: [*RECIPES, *METHOD_OF])]
ModelName = Annotated[str, config.known_in_schema(known_models)]


class RecipeKeys(config.TrainingKind):
    """The key of a training job that names a recipe."""

    recipe: RecipeName | None = None
    """One of `ultrascale recipes`, which gives image, script and arguments; other keys win, and so
    do options of TorchTitan, or of TRL, in `args`.

    Default: none.
    """

    model: ModelName | None = None
    """Known language model in the folder that a recipe of post-training begins with, such as
    `Qwen3-8B`: its memory is checked. Default: none, and no check.
    """


def recipe_of(job: config.Job) -> str | None:
    """Return the recipe that a job names; None where it names none."""
    return job.recipe if isinstance(job, RecipeKeys) else None


def model_of(job: config.Job) -> Transformer | None:
    """Return the known model that a job names; None where it names none."""
    return known_models().get(job.model or "") if isinstance(job, RecipeKeys) else None


@config.rule
def model_is_of_post_training(job: config.TrainingJob) -> config.Mistakes:
    name = job.model if isinstance(job, RecipeKeys) else None
    if name is not None and recipe_of(job) not in METHOD_OF:
        problem = "only recipes of post-training begin with a model of yours"
        yield config.refuse("model", problem, "leave it out")
    elif name is not None and name not in known_models():
        yield config.refuse("model", "no known model", config.near(name, known_models()))


@config.rule
def recipe_is_the_program(job: config.TrainingJob) -> config.Mistakes:
    recipe = recipe_of(job)
    if recipe is None:
        return
    known = [*RECIPES, *METHOD_OF]
    if recipe in FORMER:
        name, model = FORMER[recipe]
        problem = "gone: TRL's recipes go on from a model"
        todo = f"write recipe: {name}, model: {model} and args: docs/post-training.md"
        yield config.refuse("recipe", problem, todo)
    elif recipe not in known:
        problem = "not one of `ultrascale recipes`"
        yield config.refuse("recipe", problem, config.near(recipe, known))
    if job.script is not None or job.command:
        key = "command" if job.command else "script"
        yield config.refuse(key, "a second program beside the recipe", f"keep recipe or {key}")
    if job.roles and recipe != "grpo":
        problem = "a recipe is one program, and roles of this job have their own"
        yield config.refuse("recipe", problem, "leave out recipe or roles")
    if job.compile_cache is not None:
        problem = "the program that runs the recipe keeps no compiled graphs there"
        yield config.refuse("compile_cache", problem, "leave it out", got="")
