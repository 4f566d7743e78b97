"""The claims that jobs mount by name, which are those of their namespace."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan.jobs import namespaces
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import rule as job_rule
from ultrascale.plan.model import ClaimPlan
from ultrascale.plan.rules import rule
from ultrascale.plan.volumes import plan_claims

Mistakes = Iterator[config.Mistake]


@rule
def claims_of_templates_exist(cluster: config.Cluster) -> Mistakes:
    """Yield claims of templates that the cluster file does not make in the job's namespace."""
    claims = plan_claims(cluster)
    for name, job in cluster.jobs.items():
        namespace = namespaces.namespace_of(cluster, name, job)
        for mistake in _unknown(job, namespace, claims):
            yield replace(mistake, at=("jobs", name, *mistake.at))


@job_rule
def claims_exist(request: JobRequest) -> Mistakes:
    """Yield claims of a job that the cluster file does not make in its namespace."""
    yield from _unknown(request.job, request.namespace, request.claims)


def _unknown(job: config.Job, namespace: str, claims: Collection[ClaimPlan]) -> Mistakes:
    here = sorted(claim.name for claim in claims if claim.namespace == namespace)
    for number, volume in enumerate(job.volumes or ()):
        if not volume.existing and volume.claim not in here:
            wrong = f"no claim that the cluster file makes in namespace {namespace}"
            todo = config.near(volume.claim, here)
            elsewhere = sorted(claim.namespace for claim in claims if claim.name == volume.claim)
            if elsewhere and isinstance(job, config.ServiceJob):
                # Those of teams and their queues choose no namespace.
                wrong = f"pods of {namespace} cannot mount a claim of namespace {elsewhere[0]}"
                todo = (
                    f"write namespace: {elsewhere[0]}, or give its storage a claim in {namespace}"
                )
            todo += "; for a claim of your own write existing: true"
            yield config.refuse(f"volumes.{number}.claim", wrong, todo)
