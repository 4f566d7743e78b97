"""Kueue as the engine of jobs: its queues, and the controllers of pods in them."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.core.engine import QueueingEngine
from ultrascale.parts.kueue import facts, jobset
from ultrascale.plan.jobs.command import ATTEMPT
from ultrascale.plan.jobs.controllers import INDEXED, JobController
from ultrascale.plan.jobs.request import JobRequest

# --- JobSets in the plan of jobs: their pods, and their meeting -----------------------------------


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


# --- Kueue as the engine of jobs: its queues, and the controllers of pods in them -----------------


class _Engine(QueueingEngine):
    """Kueue: queues with quotas of nodes, and JobSet for jobs of several pods."""

    word = "Kueue"
    queues_jobs = True
    quotas = True
    queue_keys = frozenset({"guarantee", "prefer", "limit", "topology", "fair_share_weight"})

    def known_queues(self, stated: Sequence[str]) -> Sequence[str]:
        return stated or (facts.DEFAULT_LOCAL_QUEUE,)

    def controller(self, request: JobRequest) -> JobController:
        together = request.pods > 1 or request.role is not None
        return JOBSET if isinstance(request.job, config.TrainingJob) and together else INDEXED

    def name_mistakes(self, request: JobRequest) -> Iterator[config.Mistake]:
        """Yield a name that makes those of pods, or of labels of a service's replicas, too long."""
        job = request.job
        if isinstance(job, config.ServiceJob) and request.quota_queue is not None:
            yield from _service_mistakes(request.name, job)
        if isinstance(job, config.TrainingJob) and (request.pods > 1 or request.role is not None):
            yield from _pod_mistakes(request.name, job)


def _pod_mistakes(name: str, job: config.TrainingJob) -> Iterator[config.Mistake]:
    host, _, _ = jobset.host(name, job.role, job.nodes - 1).partition(".")
    beyond = len(host) + jobset.POD_SUFFIX_CHARACTERS - jobset.POD_NAME_CHARACTERS
    if beyond > 0:
        most = len(name) - beyond
        wrong = f"too long: names of the pods of role {job.role} begin with it"
        todo = f"use at most {most} characters" if most > 0 else "use a shorter role"
        yield config.refuse("name", wrong, todo, got=name)


def _service_mistakes(name: str, job: config.ServiceJob) -> Iterator[config.Mistake]:
    """Yield a name with which Kueue could not label the pods of a replica."""
    digits = len(str(job.most_replicas - 1))
    around = len(facts.GROUP_NAME_PREFIX) + len("-") + facts.GROUP_NAME_HASH_CHARACTERS
    most = facts.GROUP_NAME_CHARACTERS - around - len("-") - digits
    if len(name) > most:
        wrong = "too long a name for a service in a queue, whose replicas Kueue names after it"
        yield config.refuse("name", wrong, f"use at most {most} characters", got=name)


ENGINE = _Engine()
