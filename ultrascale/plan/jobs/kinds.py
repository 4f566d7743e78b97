"""Kinds of Kubernetes objects by which a cluster runs jobs, and which show that they wait."""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import training_operator
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.serving import controllers_of

Resource = tuple[str, str]
"""API group, and plural of a kind of the group."""


def controllers_of_jobs(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Iterator[Resource]:
    """Yield the kinds beyond Kubernetes' own that a job of the cluster may be sent as.

    Args:
        cluster: The cluster.
        pools: Plans of its pools.
    """
    if cluster.scheduling.engine == "volcano":
        yield "batch.volcano.sh", "jobs"
    if cluster.scheduling.engine == "kueue":
        yield "jobset.x-k8s.io", "jobsets"
    if any(pool.is_hyperpod for pool in pools):
        yield "kubeflow.org", "pytorchjobs"
    if cluster.hyperpod.training_operator:
        yield training_operator.API_VERSION.partition("/")[0], "hyperpodpytorchjobs"


def kinds_of_services(cluster: config.Cluster) -> Iterator[Resource]:
    """Yield the kinds beyond Kubernetes' own that a service of the cluster may be sent as."""
    controllers = controllers_of(cluster)
    if "leader-worker-set" in controllers:
        yield "leaderworkerset.x-k8s.io", "leaderworkersets"
    if "keda" in controllers:
        yield "keda.sh", "scaledobjects"
    if cluster.serving.front is not None:
        yield "gateway.networking.k8s.io", "httproutes"


def has_kueue(cluster: config.Cluster) -> bool:
    """Return whether jobs wait in queues of Kueue, be it that of task governance."""
    return cluster.scheduling.engine == "kueue" or cluster.hyperpod.task_governance is not None
