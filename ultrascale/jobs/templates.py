"""The templates of a cluster file, judged as the jobs that they become."""

from collections.abc import Iterator
from dataclasses import replace

from ultrascale import config
from ultrascale.jobs.preparation import JobCluster
from ultrascale.plan.jobs import job as plan_jobs
from ultrascale.plan.jobs import mistakes as job_mistakes
from ultrascale.plan.jobs import unnamed as job_unnamed
from ultrascale.plan.jobs.request import JobRequest

# Whoever sends a job says whose registry it is.
_SOME_ACCOUNT = "111122223333"


def check_templates(cluster: JobCluster) -> None:
    """Judge each template on the nodes, in the queue and with the claims that it names.

    What a template leaves out is given when a job is sent, so that it is no mistake here.

    Args:
        cluster: The cluster whose templates they are.

    Raises:
        ConfigError: Jobs of a template would be refused as it stands: one line for each mistake.
        CatalogError: No source states a value of an instance type.
    """
    mistakes: list[config.Mistake] = []
    for name, job in cluster.cluster.jobs.items():
        request = cluster.request(name, job, template=name, account=_SOME_ACCOUNT)
        found = _mistakes(request)
        mistakes += (replace(mistake, at=("jobs", name, *mistake.at)) for mistake in found)
    if mistakes:
        raise cluster.reading.refusal(mistakes)


def _mistakes(request: JobRequest) -> Iterator[config.Mistake]:
    nodes = request.nodes
    # Where several pools fit, the job names one.
    unnamed = [*job_unnamed.nodes_are_named(request.job, nodes, request.pools)]
    left_open = unnamed if nodes else []
    for mistake in plan_jobs.mistakes_of(request):
        if mistake not in left_open and not mistake.wrong.startswith(job_mistakes.MISSING):
            yield mistake
