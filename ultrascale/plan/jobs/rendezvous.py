"""Rendezvous of a job: the backend by which the nodes of a job meet.

With `static` the index of a pod is the rank of its node, and the first pod keeps the store. There
is no vote on the members, so that thousands of nodes join within seconds. No agent learns of
another that restarts, so the job has to restart as a whole. With `c10d` all agents rewrite one
state in turn, each time that one joins and every five seconds: 128 of them met in 7 s, 256 never in
four minutes.

Sources:
    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py
    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py
"""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.config.scheduling import RendezvousBackend
from ultrascale.core.engine import QueueingEngine

MOST_C10D_NODES = 64


def backend_of(
    job: config.TrainingJob,
    server: RendezvousBackend,
    engine: QueueingEngine,
    *,
    pods_come_back: bool,
) -> RendezvousBackend:
    """Return the backend that a job names, or the one that fits its restarts.

    Args:
        job: The job.
        server: `scheduling.rendezvous.backend` of its cluster.
        engine: The engine that starts its pods together.
        pods_come_back: Whether a lost pod is replaced while the others stay.
    """
    if job.rendezvous is not None:
        return job.rendezvous
    small = job.nodes <= MOST_C10D_NODES
    if not engine.queues_jobs:
        # Pods are replaced one by one, which only c10d notices; etcd needs the number of a try.
        return "c10d" if small else "static"
    if restarts_as_a_whole(job, pods_come_back=pods_come_back):
        return "c10d" if server == "c10d" and small else "static"
    return "c10d" if server == "static" else server


def restarts_as_a_whole(job: config.TrainingJob, *, pods_come_back: bool) -> bool:
    """Return whether each fault of a job in a queue ends all of its pods.

    Args:
        job: The job.
        pods_come_back: Whether a lost pod is replaced while the others stay.
    """
    return job.min_nodes is None and not pods_come_back and not job.restarts.workers


def mistakes_of(
    job: config.TrainingJob,
    backend: RendezvousBackend,
    engine: QueueingEngine,
    *,
    pods_come_back: bool,
) -> Iterator[config.Mistake]:
    """Yield a rendezvous at which the nodes of a job would not meet, or not meet again.

    Args:
        job: The job.
        backend: Meeting place of its nodes.
        engine: The engine that starts its pods together.
        pods_come_back: Whether a lost pod is replaced while the others stay.
    """
    divided = engine.most_pods is not None and job.nodes > engine.most_pods
    if job.nodes == 1 or (divided and job.min_nodes is not None):
        return  # a divided job has no min_nodes, wherever it meets
    key = "rendezvous" if job.rendezvous is not None else "nodes"
    whole = restarts_as_a_whole(job, pods_come_back=pods_come_back)
    if backend in ("etcd", "etcd-v2"):
        if not engine.queues_jobs:
            wrong = f"{backend} needs the number of the attempt, which only Volcano and JobSet give"
            yield config.refuse(key, wrong, _servers_remedy(job), got=backend)
        if divided:
            wrong = f"{backend} cannot span several Volcano jobs: each counts its own restarts"
            yield config.refuse(key, wrong, "leave rendezvous out", got=backend)
    elif backend == "c10d" and job.nodes > MOST_C10D_NODES:
        wrong = (
            f"c10d on {job.nodes:,} nodes: up to {MOST_C10D_NODES} meet within seconds, 256 or "
            "more never"
        )
        todo = "leave rendezvous out" if whole or not engine.queues_jobs else _remedy(job)
        yield config.refuse(key, wrong, todo, got=backend)
    elif backend == "static" and pods_come_back:
        wrong = "static fixes the ranks, and pods of this job come back one by one"
        yield config.refuse(key, wrong, "leave it out, or write c10d or etcd", got=backend)


def _servers_remedy(job: config.TrainingJob) -> str:
    backend = "c10d" if job.nodes <= MOST_C10D_NODES else "static"
    return f"write rendezvous: {backend}"


def _remedy(job: config.TrainingJob) -> str:
    """Return the remedy for a large job that goes on when a part of it is lost."""
    server = "set scheduling.rendezvous.backend: etcd"
    if job.min_nodes is not None:
        return f"{server}, or leave min_nodes out"
    if job.restarts.workers:
        return f"{server}, or write restarts.workers: 0"
    return f"{server}, or leave when_lost out"
