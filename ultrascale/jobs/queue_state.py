"""Queues and the jobs that wait in them, whatever engine has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue.

    Attributes:
        name: Its name.
        state: `Open` (Volcano) or `Active` (Kueue) where it takes jobs.
        weight: Its share among the queues.
        capability: Its limits by resource (Volcano), or its own quota by flavor and resource
            (Kueue), as Kubernetes quantities.
        allocated: Its use, by the same.
        pending: Number of jobs that wait.
        running: Number of jobs that run.
    """

    name: str
    state: str
    weight: int
    capability: Mapping[str, str]
    allocated: Mapping[str, str]
    pending: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that waits in a queue.

    Attributes:
        queue: Where it waits.
        job: Its name; that of its PodGroup or Workload where it was not submitted by `ultrascale`.
        namespace: Its namespace.
        priority: Value of its priority class.
        pods: Pods that must start together.
        since: When it was submitted.
        reason: Why it waits; empty where the engine says nothing.
    """

    queue: str
    job: str
    namespace: str
    priority: int
    pods: int
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """All queues, and the jobs that wait in them.

    Attributes:
        queues: By name.
        waiting: By queue; the highest priority first, and the oldest of those.
        namespace: The only namespace whose jobs are counted; None where all are.
    """

    queues: tuple[Queue, ...]
    waiting: tuple[Waiting, ...]
    namespace: str | None
