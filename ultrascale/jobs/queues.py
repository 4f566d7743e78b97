"""Queues of the cluster's engine: their use, waiting jobs, and the reasons of waiting."""

from collections.abc import Iterable

from ultrascale.cluster_api.objects import Object
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.errors import ClusterError
from ultrascale.jobs.queue_state import HeldBack, Queues


def read_queues(cluster: Cluster, namespace: str) -> Queues:
    """Return the queues and the jobs in them.

    Args:
        cluster: Their cluster.
        namespace: Namespace to count, where the user may not read all namespaces.

    Raises:
        ClusterError: No engine is installed, or the API server refuses or cannot be reached.
    """
    engines = [(part, part.engine) for part in all_parts() if part.engine is not None]
    for part, _ in engines:
        queues: Queues | None = part.module("queues").read_queues(cluster, namespace)
        if queues is not None:
            return queues
    kinds = " nor ".join(part.module("queues").KIND.resource for part, _ in engines)
    words = " and ".join(engine.word for _, engine in engines)
    raise ClusterError(
        f"the cluster serves neither {kinds}: {words} are not installed, and jobs of Kubernetes "
        "itself wait in no queue"
    )


def held_back(cluster: Cluster, namespace: str, jobs: Iterable[Object]) -> HeldBack:
    """Return why an engine lets ``jobs`` wait; nothing where it does not, or may not be asked."""
    manifests = [*jobs]
    for part in all_parts():
        if part.is_engine:
            held: HeldBack = part.module("queues").held_back(cluster, namespace, manifests)
            if held != HeldBack():
                return held
    return HeldBack()
