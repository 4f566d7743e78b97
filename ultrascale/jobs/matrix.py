"""Many jobs from one template and a table of parameters, each sent once.

A job is called after its parameters, and carries their digest as a label. Whoever sends the table
again finds the jobs that are there, and sends those that are not.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Literal, Unpack, cast

from ultrascale import config
from ultrascale.cluster_api.identity import same_cluster
from ultrascale.cluster_api.kinds import Kind
from ultrascale.cluster_api.objects import Object, label
from ultrascale.cluster_api.server import CONFLICT, Cluster
from ultrascale.config.jobs import LONGEST_JOB_NAME
from ultrascale.documents import JsonObject, text
from ultrascale.errors import (
    ClusterError,
    ConfigError,
    Diagnostic,
    RefusedError,
    Span,
    UsageError,
)
from ultrascale.jobs import submission, tiers
from ultrascale.jobs.listing import listed
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.matrix_table import Row, Table, digest_of, read_table
from ultrascale.jobs.options import JobOptions
from ultrascale.jobs.preparation import JobCluster, prepare, read, read_cluster
from ultrascale.jobs.workloads import WORKLOADS, WorkloadState, read_workload, together
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.tiers import Choice, Tier
from ultrascale.plan.model.jobs import RowPlan
from ultrascale.plan.names import JOB_LABEL, MATRIX_JOB_LABEL, MATRIX_LABEL, ROW_LABEL

_DIGEST = 8
_ATTEMPTS = 99
LONGEST_NAME = LONGEST_JOB_NAME - len(f"-{'0' * _DIGEST}-{_ATTEMPTS}")
"""Most characters of a name to which a row's digest and the number of its attempt are added."""
_AT_ONCE = 8
_HOUR = 3600

State = Literal["ready", "sent", "there", "failed", "left"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixJob:
    """The job of a row.

    Attributes:
        row: The row.
        name: Its name.
        state: `ready` to be sent, `sent` now, `there` from before, `failed` before and not sent
            again, or `left` because an earlier one could not be sent.
        phase: How far a job is that was there; empty for others.
    """

    row: Row
    name: str
    state: State
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The jobs of a table, or (``dry_run``) what would be sent.

    Attributes:
        name: Name of the job that the table is of.
        namespace: Their namespace.
        jobs: The jobs, in the order of the rows.
        manifests: What was prepared for each row.
        notes: Notes for the user, each a sentence.
        error: Why the rest was not sent; None where all of it was.
        interrupted: Whether the user stopped it.
    """

    name: str
    namespace: str
    jobs: tuple[MatrixJob, ...]
    manifests: tuple[JobManifests, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    error: ClusterError | None = None
    interrupted: bool = False

    def count(self, state: State) -> int:
        """Return the number of jobs in ``state``."""
        return sum(job.state == state for job in self.jobs)


def submit_matrix(
    cluster_file: Path | str,
    job: str | Path | JsonObject,
    table: Path | str,
    *,
    retry_failed: bool = False,
    dry_run: bool = False,
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    **options: Unpack[JobOptions],
) -> Matrix:
    """Send a job for each row of a table, and return at once. Jobs that are there stay as they are.

    Args:
        cluster_file: The cluster file.
        job: Name of one of the file's `jobs`, path of a file that holds one job, or the job.
        table: The CSV file; see `ultrascale.jobs.matrix_table`.
        retry_failed: Send rows again whose earlier job failed, under another name.
        dry_run: Send nothing, and ask no cluster.
        kubeconfig: Kubeconfig, as `ultrascale.submit` has it.
        context: Context of the kubeconfig; by default its current one.
        options: See `JobOptions`.

    Raises:
        ConfigError: The table, the job or the cluster file has mistakes; one line for each.
        UsageError: The graphs of each row were to be compiled, or nodes checked for each.
        ClusterError: The cluster lacks something that all the jobs need, or cannot be reached.
            Nothing was sent. A later refusal is `Matrix.error`, beside what was sent.
    """
    if options.get("precompile"):
        todo = "compile the graphs of the job once, without the table"
        raise UsageError([f"--precompile: not with a table of parameters; {todo}"])
    file = Path(cluster_file)
    cluster = None
    if not dry_run:
        cluster = Cluster.connected(Path(kubeconfig) if kubeconfig else None, context)
        options["account"] = options.get("account") or cluster.account
    into = read_cluster(file)
    work = _Work(
        into=into,
        job=job,
        options=options,
        reading=read(into, job, options),
        chooser=_Chooser(cluster) if cluster is not None else None,
        now=datetime.now(UTC),
    )
    prepared = _prepared(work, Path(table))
    if any(manifests.checks for _, manifests in prepared):
        todo = "check its nodes once by `ultrascale fabric`, and send it with --set preflight=none"
        raise UsageError([f"--matrix: not for a job with preflight, once a row; {todo}"])
    if cluster is None:
        jobs = [MatrixJob(row=row, name=each.name, state="ready") for row, each in prepared]
        return _matrix(work, prepared, jobs)
    if context is None:
        same_cluster(file, cluster)
    return _sent(cluster, work, prepared, retry_failed=retry_failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Command, job and cluster that all rows have in common."""

    into: JobCluster
    job: str | Path | JsonObject
    options: JobOptions
    reading: config.JobReading
    chooser: "_Chooser | None"
    now: datetime

    @property
    def name(self) -> str:
        """Name of the job that the table is of."""
        return self.reading.name

    @property
    def digest(self) -> str:
        """Digest of the keys of the job that the table is of."""
        job = self.reading.job
        return digest_of("" if job is None else job.model_dump_json(exclude_defaults=True))

    def prepared(self, row: Row | None, name: str = "") -> JobManifests:
        stated = self.reading.job.args if self.reading.job is not None else ()
        own: JobOptions = {}
        if row is not None:
            own = {
                "name": name,
                "args": [*stated, *row.args],
                "env": {**(self.options.get("env") or {}), **row.env},
            }
        return prepare(
            self.into,
            self.job,
            choose=self.chooser,
            now=self.now,
            row=RowPlan(
                matrix=self.name,
                digest=row.digest if row is not None else "",
                job_digest=self.digest,
            ),
            **cast("JobOptions", {**self.options, **own}),
        )


class _Chooser:
    """Chooses one tier for all rows: the first of them do not show in what is free yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._choice: Choice | None = None

    def __call__(self, request: JobRequest, available: Sequence[Tier]) -> Choice:
        if self._choice is None:
            self._choice = tiers.choose(self._cluster, request, available)
        return self._choice


_Prepared = Sequence[tuple[Row, JobManifests]]


def _prepared(work: _Work, file: Path) -> _Prepared:
    """Return each row with its job.

    Raises:
        ConfigError: The table or the job has mistakes, be it with some rows alone.
    """
    table: Table | None = None
    mistakes: list[Diagnostic] = []
    try:
        table = read_table(file)
    except ConfigError as error:
        mistakes += error.diagnostics
    if len(work.name) > LONGEST_NAME:
        wrong = "too long for the digest of a row and the number of its attempt"
        fix = f"choose one of at most {LONGEST_NAME} characters by --name"
        mistakes.append(Diagnostic(message=wrong, key="name", value=repr(work.name), fix=fix))
    else:
        try:
            work.prepared(None)
        except ConfigError as error:
            mistakes += error.diagnostics
    if table is not None:
        mistakes += _of_roles(work.reading, table)
    if mistakes or table is None:
        raise ConfigError(mistakes)
    return _rows(work, table)


def _of_roles(reading: config.JobReading, table: Table) -> Iterator[Diagnostic]:
    """Yield options for roles, which have arguments of their own."""
    options = [name for row in table.rows for name in row.cells if name.startswith("--")]
    if options and isinstance(reading.job, config.TrainingJob) and reading.job.roles:
        wrong, fix = "an option of a job of several roles", "name a variable of the environment"
        yield Diagnostic(message=wrong, file=table.source, key=options[0], fix=fix)


def _rows(work: _Work, table: Table) -> _Prepared:
    found: list[tuple[Row, JobManifests]] = []
    # Lines on which a mistake stands, which many rows may have in common.
    wrong: dict[tuple[str, str, str], tuple[Diagnostic, list[int]]] = {}
    for row in table.rows:
        try:
            found.append((row, work.prepared(row, _name(work.name, row, 1))))
        except ConfigError as error:
            for each in error.diagnostics:
                key = (each.key, each.message, each.fix)
                wrong.setdefault(key, (each, []))[1].append(row.line)
    if wrong:
        raise ConfigError(_told(table, each, lines) for each, lines in wrong.values())
    return found


def _told(table: Table, mistake: Diagnostic, lines: Sequence[int]) -> Diagnostic:
    """Return a mistake of a row's job at the row's line."""
    more = f" (in {len(lines)} rows, of which this is the first)" if len(lines) > 1 else ""
    span = Span(line=lines[0], column=1)
    return replace(mistake, file=table.source, span=span, message=mistake.message + more)


def _name(matrix: str, row: Row, attempt: int) -> str:
    return f"{matrix}-{row.digest[:_DIGEST]}{f'-{attempt}' if attempt > 1 else ''}"


def _matrix(
    work: _Work,
    prepared: _Prepared,
    jobs: Sequence[MatrixJob],
    *,
    notes: tuple[str, ...] = (),
    error: ClusterError | None = None,
    interrupted: bool = False,
) -> Matrix:
    _, first = prepared[0]
    return Matrix(
        name=work.name,
        namespace=first.namespace,
        jobs=tuple(jobs),
        manifests=tuple(each for _, each in prepared),
        notes=(*first.notes, *notes, *_notes(work.reading.job, prepared)),
        error=error,
        interrupted=interrupted,
    )


def _notes(job: config.AnyJob | None, prepared: _Prepared) -> Iterator[str]:
    columns = dict.fromkeys(name for row, _ in prepared for name in row.cells)
    variables = [name for name in columns if not name.startswith("--")]
    if variables:
        some = "is a variable" if len(variables) == 1 else "are variables"
        yield f"{', '.join(variables)} {some} of the environment; an option begins with --."
    if isinstance(job, config.TrainingJob | config.BatchJob):
        hours = job.ttl_seconds_after_finished / _HOUR
        yield (
            f"A row is sent once while its job is there; one that has ended stays {hours:g} hours "
            "(ttl_seconds_after_finished)."
        )


# --- what is there, and what is sent ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A job of a row that is there."""

    name: str
    job_digest: str
    state: WorkloadState
    leaving: bool


def _sent(cluster: Cluster, work: _Work, prepared: _Prepared, *, retry_failed: bool) -> Matrix:
    there = _there(cluster, prepared[0][1].namespace, work.name)
    jobs: list[MatrixJob] = []
    wanted: list[tuple[Row, JobManifests]] = []
    for row, manifests in prepared:
        attempts = there.get(row.digest, [])
        job = _judged(row, attempts, retry_failed=retry_failed)
        if job is None:
            name = _name(work.name, row, _next(work.name, row, attempts))
            if attempts:
                manifests = work.prepared(row, name)
            wanted.append((row, manifests))
            job = MatrixJob(row=row, name=name, state="left")
        jobs.append(job)
    unchecked = submission.check(cluster, wanted[0][1]) if wanted else ()
    results, interrupted = _create_all(cluster, wanted)
    errors = [each for each in results.values() if isinstance(each, ClusterError)]
    jobs = [
        replace(job, state="sent") if results.get(job.row.line) is True else job for job in jobs
    ]
    return _matrix(
        work,
        prepared,
        jobs,
        notes=(*unchecked, *_of_another_job(work, jobs, there)),
        error=errors[0] if errors else None,
        interrupted=interrupted,
    )


def _there(cluster: Cluster, namespace: str, matrix: str) -> Mapping[str, Sequence[_Attempt]]:
    """Return the jobs of a table that are there, by the digests of their rows."""
    made: dict[tuple[str, str], list[tuple[Kind, Object]]] = defaultdict(list)
    query = {"labelSelector": f"{MATRIX_LABEL}={matrix}"}
    for kind in WORKLOADS:
        for manifest in listed(cluster, kind, namespace, query):
            made[label(manifest, ROW_LABEL), label(manifest, JOB_LABEL)].append((kind, manifest))
    found: dict[str, list[_Attempt]] = defaultdict(list)
    for (digest, name), workloads in made.items():
        found[digest].append(
            _Attempt(
                name=name,
                job_digest=label(workloads[0][1], MATRIX_JOB_LABEL),
                state=together(read_workload(kind, manifest) for kind, manifest in workloads),
                leaving=any(
                    text(manifest, "metadata", "deletionTimestamp") for _, manifest in workloads
                ),
            )
        )
    return found


def _of_another_job(
    work: _Work, jobs: Sequence[MatrixJob], there: Mapping[str, Sequence[_Attempt]]
) -> Iterator[str]:
    """Yield how many of the jobs that are there have keys that the job has no more."""
    digests = {each.name: each.job_digest for found in there.values() for each in found}
    others = [job for job in jobs if digests.get(job.name, work.digest) != work.digest]
    if others:
        yield (
            f"{len(others)} of the rows were sent with other keys of the job, such as another "
            "image, and stay as they are; --name sends all of them anew."
        )


def _judged(row: Row, attempts: Sequence[_Attempt], *, retry_failed: bool) -> MatrixJob | None:
    """Return the job of a row that is there; None where one is to be sent."""
    staying = [each for each in attempts if not each.leaving]
    for each in staying:
        if each.state.result != "failed":
            return MatrixJob(row=row, name=each.name, state="there", phase=each.state.phase)
    if staying and not retry_failed:
        last = max(staying, key=lambda each: (len(each.name), each.name))
        return MatrixJob(row=row, name=last.name, state="failed", phase=last.state.phase)
    return None


def _next(matrix: str, row: Row, attempts: Sequence[_Attempt]) -> int:
    """Return the number of a row's next job: no name is given twice while one of it is there."""
    first = _name(matrix, row, 1)
    numbers = [each.name.removeprefix(first).removeprefix("-") or "1" for each in attempts]
    return max((int(each) for each in numbers if each.isdecimal()), default=0) + 1


def _create_all(
    cluster: Cluster, wanted: _Prepared
) -> tuple[Mapping[int, bool | ClusterError], bool]:
    """Make the jobs of the rows, and return by line what became of each, and whether it stopped.

    The first refusal stops it. What was made stays.
    """
    stop = Event()
    futures: dict[int, Future[bool | ClusterError]] = {}
    interrupted = False

    def one(manifests: JobManifests) -> bool | ClusterError:
        if stop.is_set():
            return False
        try:
            submission.create(cluster, manifests)
        except ClusterError as error:
            if _was_sent_meanwhile(cluster, manifests, error):
                return True
            stop.set()
            return error
        return True

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for row, manifests in wanted:
                futures[row.line] = pool.submit(one, manifests)
            for future in futures.values():
                future.result()
        except KeyboardInterrupt:
            stop.set()
            interrupted = True
    return {line: future.result() for line, future in futures.items()}, interrupted


def _was_sent_meanwhile(cluster: Cluster, manifests: JobManifests, error: ClusterError) -> bool:
    """Return whether somebody else has sent the same row since it was looked for."""
    cause = error.__cause__
    if not isinstance(cause, RefusedError) or cause.status != CONFLICT:
        return False
    digests = {label(each, ROW_LABEL) for each in manifests.objects}
    query = {"labelSelector": f"{JOB_LABEL}={manifests.name}"}
    try:
        return any(
            label(manifest, ROW_LABEL) in digests
            for kind in WORKLOADS
            for manifest in listed(cluster, kind, manifests.namespace, query)
        )
    except ClusterError:
        return False
