"""Namespaces and team queues of jobs."""

from ultrascale import config
from ultrascale.plan import names
from ultrascale.plan.pools.pool import node_types


def team_of(cluster: config.Cluster, name: str, job: config.Job) -> str | None:
    """Return the team of task governance whose queue a job waits in; None: it is not governed.

    It is the team that the job names, else the team of the job's own name, where the job's nodes
    are HyperPod's. Quotas hold for these nodes alone: in a team's namespace a job without a queue
    is refused, and a job that can run only on other nodes would wait in a queue for ever.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-cli.html

    Args:
        cluster: Its cluster.
        name: Name of the job or of its template.
        job: The job.
    """
    if job.team is not None:
        return job.team
    if name not in teams(cluster) or isinstance(job, config.ServiceJob) or job.prefer:
        return None
    return name if stays_on_shared_nodes(cluster, job) or not says_where(job) else None


def namespace_of(cluster: config.Cluster, name: str, job: config.Job) -> str:
    """Return the namespace that a job runs in: its team's, or its own.

    Args:
        cluster: Its cluster.
        name: Name of the job or of its template.
        job: The job.
    """
    team = team_of(cluster, name, job)
    return job.namespace if team is None else names.team_namespace(team)


def teams(cluster: config.Cluster) -> frozenset[str]:
    """Return the names of the teams of task governance."""
    governance = cluster.section(config.Teams)
    return frozenset(governance.names) if governance else frozenset()


def stays_on_shared_nodes(cluster: config.Cluster, job: config.Job) -> bool:
    """Return whether the labels that tell pools apart keep a job on nodes that teams share."""
    pools = [pool for pool in cluster.pools if _may_run_on(pool, job)]
    return bool(pools) and all(pool.facts.are_shared for pool in pools)


def says_where(job: config.Job) -> bool:
    """Return whether a job has keys that choose its nodes."""
    return job.pool is not None or bool(job.node_selector) or bool(job.prefer)


def _may_run_on(pool: config.Pool, job: config.Job) -> bool:
    """Return whether a job's labels of pools allow a pool's nodes."""
    has: dict[str, tuple[str, ...]] = {
        names.NODE_TYPE_LABEL: (pool.labels.get(names.NODE_TYPE_LABEL, pool.name),),
        names.POOL_LABEL: (pool.name,),
        names.ROLE_LABEL: (pool.role,),
        names.CAPACITY_LABEL: (pool.purchase.option,),
        names.INSTANCE_TYPE_LABEL: node_types(pool),
    }
    selector = job.node_selector
    fits = all(selector[key] in values for key, values in has.items() if key in selector)
    return fits and job.pool in (None, pool.name)
