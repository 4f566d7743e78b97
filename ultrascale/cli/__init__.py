"""The command line: `ultrascale check|plan|preflight|diff|capacity|…`, and a cluster's jobs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ultrascale import plan
from ultrascale.cli import capacity, jobs
from ultrascale.cli.advise import advise_command
from ultrascale.cli.bootstrap_policy import bootstrap_policy
from ultrascale.cli.chart_values import chart_values
from ultrascale.cli.check import check_file
from ultrascale.cli.connect import connect
from ultrascale.cli.deploy import deploy_command
from ultrascale.cli.destroy import destroy_command
from ultrascale.cli.diff import diff
from ultrascale.cli.matrix import markdown, print_matrix
from ultrascale.cli.needs import plan_command
from ultrascale.cli.preflight import preflight
from ultrascale.cli.roll import roll
from ultrascale.cli.sbom import sbom
from ultrascale.cli.scale import scale
from ultrascale.cli.summary import print_summary
from ultrascale.cli.upgrade_plan import upgrade_plan
from ultrascale.errors import UltrascaleError

_app = typer.Typer(
    help="Ultra-scale AI/ML on Amazon EKS from one cluster file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ClusterFile = Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")]


@_app.callback()
def _root() -> None:
    """Keep `check` a subcommand although others may come and go."""


@_app.command()
def check(file: ClusterFile) -> None:
    """Say what is wrong with a cluster file, all mistakes at once."""
    check_file(file)
    typer.echo(f"{file}: ok")


_app.command("plan")(plan_command)
_app.command("advise")(advise_command)
_app.command("bootstrap-policy")(bootstrap_policy)
_app.add_typer(capacity.app, name="capacity")
_app.command()(preflight)
_app.command("upgrade-plan")(upgrade_plan)
_app.command()(scale)
_app.command()(roll)
_app.command()(connect)
_app.command()(sbom)
_app.command("destroy")(destroy_command)
_app.command()(diff)
_app.command("deploy")(deploy_command)


@_app.command()
def matrix(
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/pool-matrix.md.")
    ] = False,
) -> None:
    """Say which purchase option works on which provisioner, and why the others do not."""
    if as_markdown:
        typer.echo(markdown(), nl=False)
    else:
        print_matrix()


@_app.command()
def summary(
    file: ClusterFile,
    assembly: Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
) -> None:
    """Say what a synthesized cluster file would create."""
    print_summary(plan.load(file), assembly=assembly, manifests=manifests)


for command in (jobs.submit, jobs.status, jobs.logs, jobs.cancel, jobs.queue, chart_values):
    _app.command()(command)


# Of click's errors typer exports this one alone; its base is what every wrong use raises.
(_UsageError,) = typer.BadParameter.__bases__


def main() -> None:
    """Run the command line; a mistake that the user can fix is printed and exits 1."""
    try:
        _app()
    except UltrascaleError as error:
        sys.exit(str(error))
    except SystemExit as end:
        # click ends with 2, with which `plan` says that no published limit allows a cluster.
        if isinstance(end.__context__, _UsageError):
            sys.exit(1)
        raise
