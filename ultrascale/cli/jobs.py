"""`ultrascale submit|status|logs|cancel|queue`: run jobs in a cluster."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import complete, options
from ultrascale.cli.job_options import changes_of, file_and_job
from ultrascale.cli.output import INTERRUPTED, print_lines, say
from ultrascale.documents import text
from ultrascale.errors import ConfigError
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.jobs.options import JobOptions
    from ultrascale.jobs.submitted import SubmittedJob
    from ultrascale.plan.model import ServiceNeeds


Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; by default that of training.")
]


_JobOrFile = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        autocompletion=complete.jobs,
        help="A job of the file, or the file of a job.",
    ),
]
_Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- ARGS", help="Arguments for the job's script.")
]
_Values = Annotated[
    Path | None,
    typer.Option(help="Values file of the chart training-job; JOB is one of its jobTemplates."),
]
_Pool = Annotated[str | None, typer.Option(autocompletion=complete.pools, help="Pool to run on.")]
_Tier = Annotated[
    str | None,
    typer.Option(help="Node type to run on: of the job's `prefer`, or of its Kueue queue."),
]
_Queue = Annotated[
    str | None, typer.Option(autocompletion=complete.queues, help="Queue of Volcano or Kueue.")
]
_Variables = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="Environment variable; repeatable.")
]
_Precompile = Annotated[
    bool, typer.Option("--precompile", help="Only compile the job's graphs for Neuron.")
]
_Account = Annotated[
    str | None, typer.Option(help="AWS account of the registry, if nothing else names it.")
]
_DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the objects; send nothing, and need no cluster."),
]
_Wait = Annotated[
    bool, typer.Option("--wait/--detach", help="Wait until the job's pods run, or return at once.")
]
_Follow = Annotated[
    bool, typer.Option("--follow", help="Print the job's log until it ends; exit 1 if it fails.")
]
_Timeout = Annotated[
    float | None, typer.Option(metavar="MINUTES", min=0, help="Longest wait for the job's pods.")
]


def submit(
    file: options.ClusterFile,
    job: _JobOrFile,
    args: _Arguments = None,
    *,
    values: _Values = None,
    name: Annotated[str | None, typer.Option(help="Name of the job.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of nodes.")] = None,
    image: options.Image = None,
    pool: _Pool = None,
    tier: _Tier = None,
    queue: _Queue = None,
    priority: Annotated[str | None, typer.Option(help="Priority class.")] = None,
    env: _Variables = None,
    set_: options.Settings = None,
    precompile: _Precompile = False,
    account: _Account = None,
    dry_run: _DryRun = False,
    wait: _Wait = True,
    follow: _Follow = False,
    timeout: _Timeout = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Send a job to the cluster, and wait until its pods run."""
    keys: JobOptions = {
        "values": values,
        "nodes": nodes,
        "image": image,
        "args": args or None,
        "name": name,
        "pool": pool,
        "queue": queue,
        "priority": priority,
        "changes": changes_of(set_ or [], env or []),
        "tier": tier,
        "precompile": precompile,
        "account": account,
    }
    submitted = _submitted_job(
        file, job, keys, dry_run=dry_run, kubeconfig=kubeconfig, context=context
    )
    if dry_run:
        from ultrascale.jobs.manifests import as_yaml

        checks = [
            manifest for check in submitted.manifests.checks for manifest in check.job.objects
        ]
        typer.echo(as_yaml([*checks, *submitted.manifests.objects]), nl=False)
        return
    sent = ", ".join(f"{made['kind']} {_object_name(made)}" for made in submitted.objects)
    say(f"{submitted.name}: sent to namespace {submitted.namespace}: {sent}")
    if wait or follow:
        _follow_job(submitted, log=follow, timeout=None if timeout is None else timeout * 60)


def _submitted_job(
    file: Path,
    job: str,
    keys: "JobOptions",
    *,
    dry_run: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> "SubmittedJob":
    """Send a job, or only render it, and print each of its notes once."""
    from ultrascale.jobs.submitted import submit as send

    printed: set[str] = set()

    def report(line: str) -> None:
        printed.add(line)
        say(line, err=True)

    with progress(f"sending {job}"):
        submitted = send(
            file,
            job,
            dry_run=dry_run,
            kubeconfig=kubeconfig,
            context=context,
            report=report,
            **keys,
        )
    for note in submitted.notes:
        if note not in printed:
            say(f"# {note}" if dry_run else f"{submitted.name}: {note}", err=True)
    return submitted


_FileOrJob = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE|JOB", autocompletion=complete.jobs, help="Cluster file, job, or both."
    ),
]
_NamespaceOfFile = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; by default the file's.")
]
_Pools = Annotated[
    bool, typer.Option("--pools", help="Show the nodes of each pool of FILE instead.")
]


def status(
    named: _FileOrJob = None,
    *,
    namespace: _NamespaceOfFile = None,
    pools: _Pools = False,
    as_json: options.AsJson = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Show the state of the jobs, or the state of one job and each of its pods."""
    from ultrascale.cli import job_views
    from ultrascale.jobs.status import jobs_in

    file, job = file_and_job(named or [])
    if pools:
        job_views.show_pools(
            file, job, lambda: _connect(kubeconfig, context, file), as_json=as_json
        )
        return
    cluster = _connect(kubeconfig, context, file)
    namespaces = (namespace,) if namespace else _namespaces(file)
    if job is not None:
        _show_job(cluster, file, job, namespaces, as_json=as_json)
        return
    with progress("reading the jobs"):
        jobs = tuple(state for space in namespaces for state in jobs_in(cluster, space))
    if as_json:
        typer.echo(job_views.as_json([job_views.job_document(state) for state in jobs]))
    elif jobs:
        job_views.print_jobs(jobs)
    else:
        say(f"no jobs in namespace {', '.join(namespaces)}")


def _show_job(
    cluster: "Cluster", file: Path | None, job: str, namespaces: Sequence[str], *, as_json: bool
) -> None:
    from ultrascale import config
    from ultrascale.cli import job_views
    from ultrascale.jobs.part_reports import reports_of
    from ultrascale.jobs.serving_report import scaling_report_of, serving_report_of
    from ultrascale.jobs.status import find_job, job_status
    from ultrascale.jobs.training_report import report_of

    state = next(filter(None, (find_job(cluster, space, job) for space in namespaces)), None)
    # Without a job of that name, the error names the first namespace.
    state = state or job_status(cluster, namespaces[0], job)
    report = report_of(cluster, state, None if file is None else config.load(file))
    with progress("reading the metrics of its pods"):
        serving = serving_report_of(cluster, state, _service_needs(file, job))
    scaling = scaling_report_of(cluster, state)
    of_parts = [*reports_of(cluster, state)]
    if as_json:
        document = job_views.job_document(state, report, serving, scaling, of_parts)
        typer.echo(job_views.as_json(document))
        return
    job_views.print_job(state)
    job_views.print_report(report)
    if serving is not None:
        job_views.print_serving(serving)
    if scaling is not None:
        job_views.print_scaling(scaling)
    job_views.print_lines(of_parts)


_FollowLogs = Annotated[
    bool, typer.Option("--follow", "-f", help="Follow until the job ends, through restarts.")
]
_Ranks = Annotated[
    list[int] | None, typer.Option(min=0, help="Rank of a node in the job; repeatable.")
]
_Indexes = Annotated[
    list[int] | None, typer.Option(min=0, help="Index of a pod in the job; repeatable.")
]
_Role = Annotated[str | None, typer.Option(help="Role of the job, in which --index counts.")]
_Previous = Annotated[
    bool, typer.Option("--previous", help="Print the log before the last restart.")
]
_Init = Annotated[
    bool, typer.Option("--init", help="Print the log of the command that runs before the program.")
]
_Tail = Annotated[int | None, typer.Option(min=0, help="Print only the last lines of each log.")]


def logs(
    job: options.JobName,
    *,
    follow: _FollowLogs = False,
    rank: _Ranks = None,
    index: _Indexes = None,
    role: _Role = None,
    pod: Annotated[list[str] | None, typer.Option(help="Name of a pod; repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Print the logs of all pods.")] = False,
    previous: _Previous = False,
    init: _Init = False,
    tail: _Tail = None,
    namespace: Namespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Print the logs of a job's pods; by default only of the pod with index 0."""
    from ultrascale.jobs import logs as reading
    from ultrascale.jobs.status import job_status
    from ultrascale.plan.names import BEFORE_PROGRAM, TRAINING_NAMESPACE

    namespace = namespace or TRAINING_NAMESPACE

    cluster = _connect(kubeconfig, context)
    container = BEFORE_PROGRAM if init else ""
    choice = partial(reading.Choice, container=container, previous=previous, tail=tail)
    first = 0 if role is None else reading.first_of_role(cluster, namespace, job, role)
    choices = [
        *(choice(rank=number) for number in rank or ()),
        *(choice(index=first + number) for number in index or ()),
        *(choice(pod=name) for name in pod or ()),
    ]
    if every:
        found = job_status(cluster, namespace, job).indexes
        choices = [choice(index=number) for number in found]
    choices = choices or [choice(index=first)]
    if len(choices) == 1:
        print_lines(reading.lines(cluster, namespace, job, choices[0], follow=follow))
    elif follow:
        lines = reading.interleaved(cluster, namespace, job, choices)
        print_lines(f"[{choice}] {line}" for choice, line in lines)
    else:
        print_lines(
            f"[{choice}] {line}"
            for choice in choices
            for line in reading.lines(cluster, namespace, job, choice, follow=False)
        )


def cancel(
    job: options.JobName,
    *,
    yes: options.NoQuestion = False,
    namespace: Namespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Delete a job. Its pods get their grace period, and its volumes stay."""
    from ultrascale.jobs import cancellation
    from ultrascale.plan.names import TRAINING_NAMESPACE

    namespace = namespace or TRAINING_NAMESPACE

    cluster = _connect(kubeconfig, context)
    manifests = cancellation.objects_of(cluster, namespace, job)
    for manifest in manifests:
        say(f"{manifest} in namespace {namespace}")
    if not yes and sys.stdin.isatty():
        typer.confirm(f"delete job {job}?", abort=True)
    cancellation.cancel(cluster, namespace, manifests)
    say(f"{job}: deleted; its pods stop within their grace period")


def queue(
    *,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", help="Namespace to count, if you may not read all namespaces."
        ),
    ] = None,
    as_json: options.AsJson = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Show the queues of Volcano or Kueue, their use, and the waiting jobs in their order."""
    from ultrascale.cli import job_views
    from ultrascale.jobs.queues import read_queues
    from ultrascale.plan.names import TRAINING_NAMESPACE

    with progress("reading the queues"):
        queues = read_queues(_connect(kubeconfig, context), namespace or TRAINING_NAMESPACE)
    if as_json:
        typer.echo(job_views.as_json(job_views.queues_document(queues)))
    else:
        job_views.print_queues(queues)


def _follow_job(submitted: "SubmittedJob", *, log: bool, timeout: float | None) -> None:
    """Follow a job until its pods run, and print its log to the end if wanted."""
    from ultrascale.cli.job_views import progress_display

    try:
        with progress_display() as show:
            progress = submitted.wait(report=show, timeout_seconds=timeout)
        if log:
            print_lines(submitted.logs(follow=True))
            progress = submitted.wait(until_ended=True)
            say(f"{submitted.name}: {progress.state.phase}", err=True)
    except KeyboardInterrupt:
        where = f"{submitted.name} -n {submitted.namespace}"
        say(
            f"\n{submitted.name} stays submitted; follow it by `ultrascale logs {where} --follow`, "
            f"or take it away by `ultrascale cancel {where}`",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None


def _connect(kubeconfig: Path | None, context: str | None, file: Path | None = None) -> "Cluster":
    from ultrascale.cluster_api.identity import same_cluster
    from ultrascale.cluster_api.server import Cluster

    cluster = Cluster.connected(kubeconfig, context)
    if file is not None and context is None:
        same_cluster(file, cluster)
    return cluster


def _namespaces(file: Path | None) -> tuple[str, ...]:
    """Return the namespaces of a cluster file's jobs, first the namespace of training jobs."""
    from ultrascale.plan.names import TRAINING_NAMESPACE, team_namespace

    if file is None:
        return (TRAINING_NAMESPACE,)
    from ultrascale import config
    from ultrascale.plan.jobs.namespaces import namespace_of, teams

    cluster = config.load(file)
    used = {namespace_of(cluster, name, job) for name, job in cluster.jobs.items()}
    used |= {team_namespace(team) for team in teams(cluster)}
    return (TRAINING_NAMESPACE, *sorted(used - {TRAINING_NAMESPACE}))


def _service_needs(file: Path | None, job: str) -> "ServiceNeeds | None":
    """Return the nodes and price of a service in a cluster file; None for another kind of job.

    A file that cannot be planned, as in the middle of an edit, does not hide a job's state.
    """
    from ultrascale import config

    if file is None or not isinstance(config.load(file).jobs.get(job), config.ServiceJob):
        return None
    from ultrascale import plan
    from ultrascale.plan.needs.services import plan_service_needs

    try:
        services = plan_service_needs(plan.load(file))
    except ConfigError:
        return None
    return next((service for service in services if service.service == job), None)


def _object_name(manifest: Mapping[str, object]) -> str:
    return text(manifest, "metadata", "name")
