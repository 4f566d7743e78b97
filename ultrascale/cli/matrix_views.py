"""The jobs of a table of parameters: objects of a dry run, and one table of what became of each."""

import typer
from rich.box import SIMPLE

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.cli.statuses import INTERRUPTED
from ultrascale.jobs.manifests import as_yaml
from ultrascale.jobs.matrix import Matrix, MatrixJob


def show_matrix(matrix: Matrix, *, dry_run: bool) -> None:
    """Print the jobs of a table. With ``dry_run`` the objects alone go to standard output.

    Raises:
        ClusterError: Not all rows were sent.
        typer.Exit: The user stopped it.
    """
    for note in matrix.notes:
        say(f"# {note}" if dry_run else f"{matrix.name}: {note}", err=True)
    if dry_run:
        objects = [each for manifests in matrix.manifests for each in manifests.objects]
        typer.echo(as_yaml(objects), nl=False)
        say(f"# {len(matrix.jobs)} jobs in namespace {matrix.namespace}:", err=True)
    table = Table("line", "job", "state", "parameters", box=SIMPLE)
    table.columns[1].no_wrap = True
    for job in matrix.jobs:
        parameters = " ".join(f"{name}={value}" for name, value in job.row.cells.items())
        table.add_row(str(job.row.line), job.name, _state(job), parameters)
    screen(stderr=dry_run).print(table)
    if not dry_run:
        _conclude(matrix)


def _state(job: MatrixJob) -> str:
    if job.state == "there":
        return f"there: {job.phase}"
    return "failed before" if job.state == "failed" else job.state


def _conclude(matrix: Matrix) -> None:
    counts = [f"{matrix.count('sent')} sent", f"{matrix.count('there')} there already"]
    if failed := matrix.count("failed"):
        counts.append(f"{failed} failed before and not sent again (--retry-failed sends them)")
    if left := matrix.count("left"):
        counts.append(f"{left} left")
    say(f"{matrix.name}: {', '.join(counts)}; namespace {matrix.namespace}")
    if left:
        say("What was sent stays; the same command goes on with what is left.", err=True)
    if matrix.interrupted:
        raise typer.Exit(INTERRUPTED)
    if matrix.error is not None:
        raise matrix.error
