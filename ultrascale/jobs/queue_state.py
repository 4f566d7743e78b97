"""Queues and the jobs that wait in them, whatever engine has them."""

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
    allocated: Mapping[str, str]  # Its use, by the same
    pending: int  # Number of jobs that wait
    running: int  # Number of jobs that run


class Waiting(Frozen):
    """A job that waits in a queue."""

    queue: str  # Where it waits
    # Its name; that of its PodGroup or Workload where it was not submitted by `ultrascale`.
    job: str
    namespace: str  # Its namespace
    priority: int  # Value of its priority class
    pods: int  # Pods that must start together
    since: datetime  # When it was submitted
    reason: str  # Why it waits; empty where the engine says nothing


class Queues(Frozen):
    """All queues, and the jobs that wait in them."""

    queues: tuple[Queue, ...]  # By name
    waiting: tuple[Waiting, ...]  # By queue; the highest priority first, and the oldest of those
    namespace: str | None  # The only namespace whose jobs are counted; None where all are


class HeldBack(Frozen):
    """Reason for which an engine lets jobs wait."""

    reason: str = ""  # Why they wait, as a sentence without its end; empty where nothing is known
    given_up: bool = False  # Whether it admits one of them no more by itself
