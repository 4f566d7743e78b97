"""The part of checks of nodes."""

from collections.abc import Mapping
from typing import get_args

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts.fabric import plan
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import JobPlan, PlannedPart


class _Part(Part[config.Section, PlannedPart]):
    name = "fabric"
    has_gate = True
    has_acceptance = True

    def with_checks(self, request: JobRequest, job: JobPlan) -> JobPlan:
        return plan.with_checks(request, job)

    def images_of_checks(self, cluster: config.Cluster, accelerator: str) -> Mapping[str, str]:
        checks = get_args(config.PreflightCheck)
        return {check: plan.check_image(cluster, check, accelerator) for check in checks}


PART = _Part()
