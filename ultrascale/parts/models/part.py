"""The part of models that services load."""

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts.models.model import ServedModelPlan
from ultrascale.parts.models.plan import plan_model
from ultrascale.parts.models.section import ModelKeys
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PlannedPart


class _Part(Part[config.Section, PlannedPart]):
    name = "models"
    job_keys = ModelKeys

    def model(self, request: JobRequest, share: NodeShare) -> ServedModelPlan | None:
        return plan_model(request, share)


PART = _Part()
