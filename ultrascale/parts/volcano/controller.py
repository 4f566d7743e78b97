"""Jobs of Volcano in the plan of jobs: their pods, and their meeting."""

from collections.abc import Mapping

from ultrascale.parts.volcano import facts
from ultrascale.parts.volcano.division import divide
from ultrascale.plan.jobs.command import ATTEMPT, FIRST_INDEX, POD_IP
from ultrascale.plan.jobs.controllers import Division, JobController

_POD_GROUP = "POD_GROUP"


class _VolcanoJob(JobController):
    name = "volcano"
    resource = ("batch.volcano.sh", "jobs")
    waits_in_queue = True
    word = "Volcano"
    counts_lost_nodes = True
    index = f"{FIRST_INDEX}+VC_TASK_INDEX"
    index_annotation = facts.TASK_INDEX_ANNOTATION
    most_listed_pods = facts.PODS_PER_TASK

    def fields(self) -> Mapping[str, str]:
        return {
            POD_IP: "status.podIP",
            _POD_GROUP: f"metadata.annotations['{facts.POD_GROUP_ANNOTATION}']",
            ATTEMPT: f"metadata.annotations['{facts.RETRY_COUNT_ANNOTATION}']",
        }

    def run(self, name: str, *, attempted: bool) -> str:
        """Return a name unlike that of an earlier job with the same name.

        etcd keeps an ended meeting for two hours, and refuses a pod that comes to it again.
        """
        run = f"${{{_POD_GROUP}:-{name}}}"
        return f"{run}-${{{ATTEMPT}:-0}}" if attempted else run

    def host(self, name: str, role: str, index: int) -> str:
        return facts.host(name, role, index)

    def divide(self, *, name: str, role: str, pods: int, min_available: int) -> Division:
        return divide(name=name, role=role, pods=pods, min_available=min_available)

    def deadline_note(self, hours: float) -> str:
        return (
            "Volcano has no deadline for a job: coreutils' timeout ends the program after "
            f"{hours:g} hours, counted from each restart of its pods, and the job with it."
        )


VOLCANO_JOB = _VolcanoJob()
CONTROLLERS = (VOLCANO_JOB,)
