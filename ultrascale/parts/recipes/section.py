"""`jobs.NAME.recipe`: the recipe of a training job."""

from typing import Annotated

from ultrascale import config
from ultrascale.parts.recipes.table import RECIPES

RecipeName = Annotated[str, config.known_in_schema(lambda: RECIPES)]


class RecipeKeys(config.TrainingKind):
    """The key of a training job that names a recipe."""

    recipe: RecipeName | None = None
    """One of `ultrascale recipes`, which gives image, script and arguments; other keys win, and so
    do options of TorchTitan in `args`.

    Default: none.
    """


def recipe_of(job: config.Job) -> str | None:
    """Return the recipe that a job names; None where it names none."""
    return job.recipe if isinstance(job, RecipeKeys) else None


@config.rule
def recipe_is_the_program(job: config.TrainingJob) -> config.Mistakes:
    recipe = recipe_of(job)
    if recipe is None:
        return
    if recipe not in RECIPES:
        problem = "not one of `ultrascale recipes`"
        yield config.refuse("recipe", problem, config.near(recipe, RECIPES))
    if job.script is not None or job.command:
        key = "command" if job.command else "script"
        yield config.refuse(key, "a second program beside the recipe", f"keep recipe or {key}")
    if job.roles:
        problem = "a recipe is one program, and roles of this job have their own"
        yield config.refuse("recipe", problem, "leave out recipe or roles")
    if job.compile_cache is not None:
        problem = "TorchTitan, which runs the recipe, keeps no compiled graphs there"
        yield config.refuse("compile_cache", problem, "leave it out", got="")
