"""Queues and the jobs that wait in them, of any engine."""

from collections.abc import Mapping
from datetime import datetime

from ultrascale.frozen import Frozen


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
