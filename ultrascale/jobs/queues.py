"""Queues of the cluster's engine: their use, waiting jobs, and the reasons of waiting."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from ultrascale.cluster_api.objects import Object
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen

# --- Queues and the jobs that wait in them, of any engine -----------------------------------------


class Queue(Frozen):
    """A queue."""

    name: str  # Its name
    state: str  # `Open` (Volcano) or `Active` (Kueue) where it takes jobs
    weight: int  # Its share among the queues
    # Its limits by resource (Volcano), or its own quota by flavor and resource (Kueue), as
    # Kubernetes quantities.
    capability: Mapping[str, str]
    allocated: Mapping[str, str]  # Its use, by the same keys
    pending: int  # Number of waiting jobs
    running: int  # Number of running jobs


class Waiting(Frozen):
    """A job that waits in a queue."""

    queue: str  # Its queue
    # Its name; that of its PodGroup or Workload where it was not submitted by `ultrascale`.
    job: str
    namespace: str  # Its namespace
    priority: int  # Value of its priority class
    pods: int  # Pods that must start together
    since: datetime  # Time of its submission
    reason: str  # Reason of its waiting; empty where the engine has none


class Queues(Frozen):
    """All queues, and the jobs that wait in them."""

    queues: tuple[Queue, ...]  # Queues by name
    waiting: tuple[Waiting, ...]  # Jobs by queue; the highest priority first, then the oldest
    namespace: str | None  # The only namespace whose jobs are counted; None for all namespaces


class HeldBack(Frozen):
    """Reason why an engine lets jobs wait."""

    reason: str = ""  # The reason, as a sentence without its end; empty where unknown
    given_up: bool = False  # Whether it no longer admits one of them by itself


# --- Queues of the cluster's engine: their use, waiting jobs, and the reasons of waiting ----------


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
