"""The namespaces of the platform, and those of jobs among them."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.engine import engine_of
from ultrascale.core.table import all_parts
from ultrascale.plan import names
from ultrascale.plan.model import NamespacePlan, PoolPlan, QueueingPlan
from ultrascale.plan.network.layers import pools_with_layers

Resource = tuple[str, str]
"""API group, and plural of a kind of the group."""

LEADER_WORKER_SET_KIND: Resource = ("leaderworkerset.x-k8s.io", "leaderworkersets")
SCALED_OBJECT_KIND: Resource = ("keda.sh", "scaledobjects")
HTTP_ROUTE_KIND: Resource = ("gateway.networking.k8s.io", "httproutes")

"""The namespace of the object that a write canary writes."""


def plan_namespaces(cluster: config.Cluster) -> tuple[NamespacePlan, ...]:
    """Return our namespaces: of jobs, of controllers, of parts.

    `plan_team_namespaces` returns those of teams.
    """
    teams = team_namespaces(cluster)
    plans = [_training(cluster, name) for name in training_namespaces(cluster) if name not in teams]
    plans += (namespace for part in all_parts() for namespace in part.namespaces(cluster))
    return tuple(plans)


def plan_team_namespaces(cluster: config.Cluster) -> tuple[NamespacePlan, ...]:
    """Return the namespaces of teams, which the part that has teams makes, in their final form.

    They are applied after it: its documents do not say whether HyperPod task governance takes over
    an existing namespace.
    """
    return tuple(_training(cluster, name) for name in team_namespaces(cluster))


def training_namespaces(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the namespaces that jobs run in, those of teams last.

    A job names a namespace in which the file claims a file system or a bucket, or none.
    """
    storage = cluster.storage
    claims = [*(lustre.claim for lustre in storage.lustre), *storage.bucket_claims.values()]
    named = {names.TRAINING_NAMESPACE, *(claim.namespace for claim in claims if claim is not None)}
    teams = team_namespaces(cluster)
    return (*sorted(named - {*teams}), *teams)


def scaled_namespaces(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the namespaces that KEDA watches; empty means all.

    KEDA's chart binds a role in every listed namespace, but HyperPod creates the teams' namespaces
    only after the chart is installed.
    """
    return () if team_namespaces(cluster) else training_namespaces(cluster)


def queued_namespaces(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the namespaces whose jobs queues with quotas take.

    Jobs run in them; a namespace of services is none of them.
    """
    services = service_namespaces(cluster)
    return tuple(
        name
        for name in training_namespaces(cluster)
        if name == names.TRAINING_NAMESPACE or name not in services
    )


def service_namespaces(cluster: config.Cluster) -> frozenset[str]:
    """Return the namespaces of services: beside them there are at most people's pods.

    A namespace with a service that names a queue is none of them.
    """
    queued = {
        job.namespace
        for job in cluster.jobs.values()
        if isinstance(job, config.ServiceJob) and job.queue is not None
    }
    return serving_namespaces(cluster) - queued


def queued_jobs(cluster: config.Cluster, namespace: str) -> tuple[str, ...]:
    """Return the templates that make a namespace of services one of queues; none of `training`."""
    if namespace == names.TRAINING_NAMESPACE:
        return ()
    return tuple(
        name
        for name, job in cluster.jobs.items()
        if job.namespace == namespace
        and not job.is_personal
        and not (isinstance(job, config.ServiceJob) and job.queue is None)
    )


def serving_namespaces(cluster: config.Cluster) -> frozenset[str]:
    """Return the namespaces whose templates are services, queued ones too, and people's pods."""
    jobs = [job for job in cluster.jobs.values() if not job.is_personal]
    services = {job.namespace for job in jobs if isinstance(job, config.ServiceJob)}
    others = {job.namespace for job in jobs if not isinstance(job, config.ServiceJob)}
    return frozenset(services - others)


def team_namespaces(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the namespaces of the teams of task governance, in the order of the file."""
    governance = cluster.section(config.Teams)
    return tuple(map(names.team_namespace, governance.names)) if governance else ()


def _training(cluster: config.Cluster, name: str) -> NamespacePlan:
    reached_from = tuple(way for part in all_parts() for way in part.ways_to_jobs(cluster))
    closed = (part.closed_pods(cluster) for part in all_parts())
    return NamespacePlan(
        name=name,
        closed=tuple(label for label in closed if label is not None),
        hides_metadata=any(part.hides_metadata(cluster) for part in all_parts()),
        pod_security="baseline",
        training=True,
        reached_from=reached_from,
        is_routed=HTTP_ROUTE_KIND in kinds_of_services(cluster),
    )


def kinds_of_services(cluster: config.Cluster) -> tuple[Resource, ...]:
    """Return the kinds beyond Kubernetes' own that a service of the cluster may be sent as."""
    return tuple(kind for part in all_parts() for kind in part.kinds_of_services(cluster))


# --- Namespaces whose pods may read their Nodes, to have ranks in the order of the network --------


FEWEST_ORDERED = 3
"""Fewest nodes whose order matters: the first pod of two is rank 0 in any."""


def plan_node_readers(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    queueing: QueueingPlan | None,
    namespaces: Sequence[NamespacePlan],
) -> tuple[str, ...]:
    """Return the namespaces whose pods may read nodes; none where no job of theirs does.

    Args:
        cluster: The cluster file.
        pools: Plans of its pools.
        queueing: Queues with quotas; None where the engine has none.
        namespaces: Namespaces that the platform makes.
    """
    scheduling = cluster.scheduling
    by_scheduler = queueing is not None and all(queue.topology for queue in queueing.queues)
    if (
        scheduling.rendezvous.ranks != "topology"
        or not engine_of(scheduling).queues_jobs
        or by_scheduler
    ):
        return ()
    # A job may run on several pools.
    if sum(pool.max_nodes for pool in pools_with_layers(pools)) < FEWEST_ORDERED:
        return ()
    return tuple(namespace.name for namespace in namespaces if namespace.training)
