"""JobSets in the plan of jobs: their pods, and their meeting."""

from collections.abc import Mapping

from ultrascale.parts.kueue import jobset
from ultrascale.plan.jobs.command import ATTEMPT
from ultrascale.plan.jobs.controllers import JobController

_UID = "JOBSET_UID"


class _JobSet(JobController):
    name = "jobset"
    resource = ("jobset.x-k8s.io", "jobsets")
    waits_in_queue = True
    word = "JobSet"
    makes_service = True
    replaces_pods = True

    def fields(self) -> Mapping[str, str]:
        return {
            **super().fields(),
            _UID: f"metadata.labels['{jobset.UID_LABEL}']",
            ATTEMPT: f"metadata.labels['{jobset.RESTART_LABEL}']",
        }

    def run(self, name: str, *, attempted: bool) -> str:
        """Return a name with the number of the attempt, which JobSet gives each restart."""
        return f"{name}-${{{_UID}}}-${{{ATTEMPT}}}"

    def host(self, name: str, role: str, index: int) -> str:
        return jobset.host(name, role, index)


JOBSET = _JobSet()
CONTROLLERS = (JOBSET,)
