"""The part of recipes."""

from collections.abc import Mapping

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts.recipes import inputs, rules
from ultrascale.parts.recipes.plan import largest_program, plan_program
from ultrascale.parts.recipes.posttraining import plan_posttraining
from ultrascale.parts.recipes.section import RecipeKeys
from ultrascale.parts.recipes.table import RECIPES
from ultrascale.plan.jobs.devices import Device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PlannedPart
from ultrascale.plan.model.jobs import ProgramPlan


class _Part(Part[config.Section, PlannedPart]):
    name = "recipes"
    job_keys = RecipeKeys

    def default_nodes(self, keys: Mapping[str, object]) -> int | None:
        recipe = RECIPES.get(str(keys.get("recipe")))
        return None if recipe is None else recipe.nodes

    def program(self, request: JobRequest, share: NodeShare | None) -> ProgramPlan | None:
        return plan_posttraining(request, share) or plan_program(request, share)

    def largest_program(self, device: Device, nodes: int) -> ProgramPlan | None:
        return largest_program(device, nodes)


PART = _Part()

__all__ = ["PART", "inputs", "rules"]
