"""Where jobs run: in the namespace of their team, or in their own."""

from ultrascale import config
from ultrascale.plan import names


def namespace_of(cluster: config.Cluster, name: str, job: config.AnyJob) -> str:
    """Return the namespace that a job runs in.

    It is that of the team that the job names. Without one, it is that of the team that is called
    as the job is, where task governance has such a team, and the job's own else.

    Args:
        cluster: The cluster that it runs in.
        name: Name of the job or of its template.
        job: The job.
    """
    governance = cluster.hyperpod.task_governance
    teams = {team.name for team in governance.teams} if governance else set[str]()
    if job.team is not None:
        return names.team_namespace(job.team)
    return names.team_namespace(name) if name in teams else job.namespace
