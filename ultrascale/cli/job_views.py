"""What the commands about jobs print: tables for people, JSON for programs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ultrascale.jobs.pods import STATES, Pod
from ultrascale.jobs.queues import Queues
from ultrascale.jobs.status import JobStatus

_WIDTH = 120
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def print_jobs(jobs: Iterable[JobStatus]) -> None:
    """Print one line for each job."""
    table = Table(
        "job", "phase", "pods", "retries", "nodes", "queue", "age", "namespace", box=SIMPLE
    )
    table.columns[0].no_wrap = True
    for job in jobs:
        table.add_row(
            job.name,
            job.state.phase,
            _pods(job),
            _retries(job),
            str(len(job.nodes)),
            job.queue,
            _age(job.created),
            job.namespace,
        )
    _console().print(table)


def print_job(job: JobStatus) -> None:
    """Print a job and each of its pods."""
    console = _console()
    print_jobs((job,))
    if job.state.reason:
        console.print(f"  {job.state.reason}", markup=False, soft_wrap=True)
    table = Table("index", "pod", "state", "node", "restarts", "reason", box=SIMPLE)
    table.columns[1].no_wrap = True
    for index, pod in enumerate(job.pods):
        cells = (str(index), pod.name, pod.state, pod.node, str(pod.restarts), pod.reason)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)


def print_queues(queues: Queues) -> None:
    """Print each queue, and the jobs that wait, in their order."""
    console = _console()
    columns = ("queue", "state", "weight", "capability", "allocated", "pending", "running")
    table = Table(*columns, box=SIMPLE)
    for each in queues.queues:
        resources = (_amounts(each.capability), _amounts(each.allocated))
        counts = (str(each.pending), str(each.running))
        table.add_row(each.name, each.state, str(each.weight), *resources, *counts)
    console.print(table)
    if queues.namespace is not None:
        console.print(f"only jobs of namespace {queues.namespace}: others may not be read")
    if not queues.waiting:
        console.print("no job waits")
        return
    table = Table("queue", "job", "namespace", "priority", "pods", "waits", "why", box=SIMPLE)
    for each in queues.waiting:
        cells = (each.queue, each.job, each.namespace, str(each.priority), str(each.pods))
        table.add_row(*cells, _age(each.since), escape(each.reason))
    console.print(table)


def as_json(value: object) -> str:
    """Return dataclasses as JSON; times by RFC 3339."""
    return json.dumps(value, indent=2, default=_plain)


def job_document(job: JobStatus) -> Mapping[str, object]:
    """Return a job as `status --json` prints it."""
    return {
        "name": job.name,
        "namespace": job.namespace,
        "kind": job.kind,
        "queue": job.queue,
        "created": job.created,
        **asdict(job.state),
        "counts": job.counts,
        "nodes": job.nodes,
        "pods": [_pod_document(index, pod) for index, pod in enumerate(job.pods)],
    }


def queues_document(queues: Queues) -> Mapping[str, object]:
    """Return the queues as `queue --json` prints them."""
    return asdict(queues)


def _pod_document(index: int, pod: Pod) -> Mapping[str, object]:
    document = asdict(pod)
    return {**document, "index": index}


def _plain(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def _pods(job: JobStatus) -> str:
    counts = [f"{job.counts[state]} {state}" for state in STATES if job.counts[state]]
    return f"{', '.join(counts) or '0'} of {job.state.wanted}"


def _retries(job: JobStatus) -> str:
    most = job.state.most_retries
    return str(job.state.retries) if most is None else f"{job.state.retries} of {most}"


def _amounts(amounts: Mapping[str, str]) -> str:
    return "\n".join(f"{key} {value}" for key, value in sorted(amounts.items()))


def _age(since: datetime) -> str:
    seconds = int((datetime.now(UTC) - since).total_seconds())
    if seconds < _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h{seconds % _HOUR // _MINUTE}m"
    return f"{seconds // _DAY}d"


def _console() -> Console:
    return Console(width=max(Console().width, _WIDTH))
