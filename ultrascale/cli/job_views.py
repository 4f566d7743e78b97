"""Tables and JSON of jobs, queues and pools, and the progress of a job."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE

from ultrascale import plan
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UsageError, printable
from ultrascale.frozen import to_document
from ultrascale.jobs.arrays import ArrayState
from ultrascale.jobs.part_reports import PartReport
from ultrascale.jobs.pods import STATES, Pod
from ultrascale.jobs.queues import Queues
from ultrascale.jobs.serving_report import ScalingReport, ServingReport
from ultrascale.jobs.status import JobStatus
from ultrascale.jobs.training_report import TrainingReport

if TYPE_CHECKING:
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.operate.pool_status import PoolNodes
import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ultrascale.jobs.progress import Progress

_SHOWN = ("pending", "scheduled", "pulling", "running")
_PASSING = ("terminating", "succeeded", "failed")
# Seconds between two plain lines that differ only in numbers. A job of ten thousand pods takes
# minutes to start.
_PLAIN_EVERY = 5.0
# The end of a traceback says most about the error.
_MOST_LINES = 12
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
            _pod_counts(job),
            _retries(job),
            str(len(job.nodes)),
            job.queue,
            _age_text(job.created),
            job.namespace,
        )
    screen().print(table)


def print_job(job: JobStatus) -> None:
    """Print a job and each of its pods."""
    console = screen()
    print_jobs((job,))
    if job.state.reason:
        say(f"  {job.state.reason}")
    for line in job.idle.lines(datetime.now(UTC)) if job.idle is not None else ():
        say(f"  {printable(line)}")
    table = Table("index", "pod", "state", "node", "restarts", "reason", box=SIMPLE)
    table.columns[1].no_wrap = True
    if array := job.state.array:
        say(f"  at most {array.max_failed} may fail; failed: {array.failed_indexes or 'none'}")
    for index, pod in _indexed_pods(job):
        if array and pod.state == "succeeded":
            continue
        cells = (str(index), pod.name, pod.state, pod.node, str(pod.restarts), pod.reason)
        table.add_row(*cells)
    if table.rows:
        console.print(table)


def print_report(report: TrainingReport) -> None:
    """Print the progress of a training job, and why its pods failed."""
    if report.progress:
        say(f"  progress: {printable(_words(report.progress))}")
    for slow in report.stragglers:
        say(f"  slow node: {printable(_words(slow))}")
    for failure in report.failures:
        say(f"  failed before: {printable(_words(failure))}")
    for end in report.ends:
        say(f"  {end.pod} on {end.node or 'no node'} ended with:")
        for line in end.message.splitlines()[-_MOST_LINES:]:
            say(f"    {printable(line)}")
    if report.earlier_logs:
        say("  errors of pods that a restart has deleted are in CloudWatch:")
        say(f"    {report.earlier_logs}")


def print_serving(report: ServingReport) -> None:
    """Print the requests, tokens and waits of a service."""
    found = report.traffic
    if found is None:
        waits = "no pod is ready" if not report.ready else "no pod tells its metrics"
        say(f"  requests: unknown, {waits}")
    else:
        cache = found.cache_percent
        say(
            f"  requests: {found.waiting:,.0f} waiting, {found.running:,.0f} running on "
            f"{found.replicas} of {report.ready} ready replicas"
            + ("" if cache is None else f"; KV cache {cache:.1f} % in use")
        )
        if (rate := found.generated_tokens_per_second) is not None:
            prompts = found.prompt_tokens_per_second or 0
            usd = report.usd_per_million_tokens
            say(
                f"  tokens a second: {rate:,.1f} generated, {prompts:,.1f} of prompts"
                + ("" if usd is None else f"; {usd:,.2f} USD for a million generated")
            )
        if found.first_token_half is not None and found.first_token_most is not None:
            of = "now" if report.recent else "since its pods started"
            say(
                f"  time to first token: {found.first_token_half:.2f} s, 95 % within "
                f"{found.first_token_most:.2f} s, of {found.answers:,.0f} answers {of}"
            )
    for reason in report.unread:
        say(f"  metrics that are missing: {printable(reason)}")


def print_scaling(report: ScalingReport) -> None:
    """Print the range in which a service's replicas follow the load, or why they do not."""
    say(f"  autoscale: {report.least} to {report.most} replicas")
    for problem in report.problems:
        say(f"    {printable(problem)}")


def print_lines(reports: Iterable[PartReport]) -> None:
    """Print the lines of the reports of parts on a job."""
    for report in reports:
        for line in report.lines:
            say(printable(line))


def _words(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in fields.items())


def _indexed_pods(job: JobStatus) -> Iterator[tuple[int | None, Pod]]:
    """Yield the pods with their indexes; only pods of an array have an index."""
    for place, pod in enumerate(job.pods):
        yield pod.index if job.state.array else place, pod


def print_queues(queues: Queues) -> None:
    """Print each queue, and the waiting jobs in their order."""
    console = screen()
    columns = ("queue", "state", "weight", "capability", "allocated", "pending", "running")
    table = Table(*columns, box=SIMPLE)
    for queue in queues.queues:
        resources = (_amounts(queue.capability), _amounts(queue.allocated))
        counts = (str(queue.pending), str(queue.running))
        table.add_row(queue.name, queue.state, str(queue.weight), *resources, *counts)
    console.print(table)
    if queues.namespace is not None:
        say(f"only jobs of namespace {queues.namespace}: others may not be read")
    if not queues.waiting:
        say("no job waits")
        return
    table = Table("queue", "job", "namespace", "priority", "pods", "waits", "why", box=SIMPLE)
    for each in queues.waiting:
        cells = (each.queue, each.job, each.namespace, str(each.priority), str(each.pods))
        table.add_row(*cells, _age_text(each.since), each.reason)
    console.print(table)


def as_json(value: object) -> str:
    """Return dataclasses as JSON; times are written by RFC 3339."""
    return json.dumps(value, indent=2, default=_plain_text)


def job_document(
    job: JobStatus,
    report: TrainingReport | None = None,
    serving: ServingReport | None = None,
    scaling: ScalingReport | None = None,
    of_parts: Iterable[PartReport] = (),
) -> Mapping[str, object]:
    """Return a job as `status --json` prints it; a single job is printed with its reports."""
    return {
        "name": job.name,
        "namespace": job.namespace,
        "kind": job.kind,
        "queue": job.queue,
        "created": job.created,
        **to_document(job.state),
        "array": None if (array := job.state.array) is None else _array_document(array),
        "counts": job.counts,
        "nodes": job.nodes,
        **({} if job.idle is None else {"idle": to_document(job.idle)}),
        "pods": [_pod_document(index, pod) for index, pod in _indexed_pods(job)],
        **({} if report is None else to_document(report)),
        **({} if serving is None else {"serving": to_document(serving)}),
        **({} if scaling is None else {"scaling": to_document(scaling)}),
        **{report.name: to_document(report.document) for report in of_parts},
    }


def queues_document(queues: Queues) -> Mapping[str, object]:
    """Return the queues as `queue --json` prints them."""
    return to_document(queues)


def _pod_document(index: int | None, pod: Pod) -> Mapping[str, object]:
    document = to_document(pod)
    return {**document, "index": index}


def _array_document(array: ArrayState) -> Mapping[str, object]:
    return {**to_document(array), "left": array.left}


def _plain_text(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def _pod_counts(job: JobStatus) -> str:
    if job.state.array:
        return str(job.state.array)
    counts = [f"{job.counts[state]} {state}" for state in STATES if job.counts[state]]
    return f"{', '.join(counts) or '0'} of {job.state.wanted}"


def _retries(job: JobStatus) -> str:
    most = job.state.most_retries
    return str(job.state.retries) if most is None else f"{job.state.retries} of {most}"


def _amounts(amounts: Mapping[str, str]) -> str:
    return "\n".join(f"{key} {value}" for key, value in sorted(amounts.items()))


def _age_text(since: datetime) -> str:
    seconds = int((datetime.now(UTC) - since).total_seconds())
    if seconds < _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h{seconds % _HOUR // _MINUTE}m"
    return f"{seconds // _DAY}d"


def show_pools(
    file: Path | None, job: str | None, connect: Callable[[], "Cluster"], *, as_json: bool
) -> None:
    """Print the nodes of each pool, and why some take no work.

    Raises:
        QuestionError: There is no cluster file, or a job beside it.
        ClusterError: The user may not list nodes, or the API server cannot be reached.
    """
    from ultrascale.operate.pool_status import pool_nodes

    if file is None or job is not None:
        raise UsageError(["--pools: goes with a cluster file alone; write status FILE --pools"])
    states = pool_nodes(connect(), plan.load(file))
    if as_json:
        typer.echo(json.dumps([to_document(state) for state in states], indent=2))
    else:
        _print_pools(states)


def _print_pools(pools: "Iterable[PoolNodes]") -> None:
    table = Table("pool", "set to", "nodes", "take work", "drifted", "the others", box=SIMPLE)
    table.columns[0].no_wrap = True
    for pool in pools:
        size = f"{pool.fewest} to {pool.most}" if pool.kept is None else str(pool.kept)
        reasons = [*pool.unfit.items(), *pool.coming.items()]
        others = ", ".join(f"{count} {why}" for why, count in reasons)
        table.add_row(pool.pool, size, str(pool.nodes), str(pool.ready), str(pool.drifted), others)
    screen().print(table)


@contextmanager
def progress_display() -> Generator[Callable[[Progress], None]]:
    """Yield a function that shows the progress of a job on standard error."""
    console = screen(stderr=True)
    if not console.is_terminal:
        yield _Plain()
        return
    spinner = Spinner("dots")
    with Live(spinner, console=console, refresh_per_second=4) as live:

        def show(progress: Progress) -> None:
            spinner.update(text=Text("\n".join(_lines(progress))))
            if progress.up or progress.state.result is not None:
                live.update(Text("\n".join(_lines(progress))))

        yield show


class _Plain:
    def __init__(self) -> None:
        self._said: tuple[object, ...] = ()
        self._counts = ""
        self._when = 0.0

    def __call__(self, progress: Progress) -> None:
        state = progress.state
        saying = (state.phase, state.retries, progress.waiting, progress.up)
        counts = _counts(progress)
        now = time.monotonic()
        passed = now - self._when >= _PLAIN_EVERY
        if saying == self._said and (counts == self._counts or not passed):
            return
        self._said, self._counts, self._when = saying, counts, now
        for line in _lines(progress):
            say(line, err=True)


def _lines(progress: Progress) -> list[str]:
    state = progress.state
    retries = f", restart {state.retries} of {state.most_retries}" if state.retries else ""
    first = f"{progress.name}: {state.phase}{retries}: {_counts(progress)}"
    return [first, *(f"  {reason}" for reason in progress.waiting)]


def _counts(progress: Progress) -> str:
    pods = progress.pods
    shown = [f"{each} {pods[each]}" for each in _SHOWN]
    if progress.state.array:
        return f"{' · '.join(shown)}; {progress.state.array}"
    shown += [f"{each} {pods[each]}" for each in _PASSING if pods[each]]
    return f"{' · '.join(shown)} of {progress.state.wanted}"
