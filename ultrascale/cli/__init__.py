"""The command line. One table of commands; the module of a command is imported when it runs."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from ultrascale.cli.output import outlive_reader
from ultrascale.errors import UltrascaleError, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODULE = "ultrascale.cli"


class Command(NamedTuple):
    """Place and summary of a command.

    Attributes:
        module: Module of this package.
        name: Function in it that takes the options, or app of a command that has commands itself.
        summary: Line of the list of commands; at most 58 characters, or typer cuts it short.
    """

    module: str
    name: str
    summary: str


COMMANDS: "Mapping[str, Command]" = {
    "check": Command("check", "check", "Name every mistake in a cluster file."),
    "plan": Command("needs", "plan_command", "Show what a file needs: nodes, quotas, time, money."),
    "matrix": Command(
        "matrix", "matrix_command", "Show which purchase option works on which provisioner."
    ),
    "types": Command("types", "types", "List the instance types that a file may name."),
    "advise": Command("advise", "advise_command", "Recommend a way to buy capacity."),
    "preflight": Command("preflight", "preflight", "Check an AWS account against a cluster file."),
    "capacity": Command("capacity", "app", "Find Capacity Blocks, training plans, Spot; buy one."),
    "bootstrap-policy": Command(
        "bootstrap_policy", "bootstrap_policy", "Write the policies for `cdk bootstrap`."
    ),
    "diff": Command("diff", "diff", "Show what a deployment would replace, delete or roll."),
    "deploy": Command("deploy", "deploy_command", "Check, compare, ask, then deploy the stacks."),
    "summary": Command("summary", "summary", "Show what a synthesized file would create."),
    "sbom": Command("sbom", "sbom", "List what a deployment brings: a bill of materials."),
    "submit": Command("jobs", "submit", "Send a job, and wait until its pods run."),
    "status": Command("jobs", "status", "Show the jobs, or one job and its pods."),
    "logs": Command("jobs", "logs", "Print what a job's pods write."),
    "cancel": Command("jobs", "cancel", "Delete a job; its volumes stay."),
    "queue": Command("jobs", "queue", "Show Volcano's queues, and the jobs that wait in them."),
    "chart-values": Command(
        "chart_values", "chart_values", "Print the cluster's values of the chart training-job."
    ),
    "connect": Command("connect", "connect", "Open a way to the cluster's private endpoint."),
    "scale": Command("scale", "scale", "Set the size of a pool, and wait for it."),
    "roll": Command("roll", "roll", "Renew the nodes of a pool, batch by batch."),
    "repair": Command("repair", "repair", "Keep Karpenter's repair off a node, or allow it."),
    "upgrade-plan": Command("upgrade_plan", "upgrade_plan", "Plan an upgrade of Kubernetes."),
    "destroy": Command("destroy", "destroy_command", "Take a cluster down; storage stays."),
}


def load(name: str) -> TyperCommand | TyperGroup:
    """Return a command with its options; imports its module."""
    command = COMMANDS[name]
    loaded = getattr(import_module(f"{_MODULE}.{command.module}"), command.name)
    # Without markup: help and errors of wrong use do not import rich, and stay easy to search.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=name)
    else:
        app.command(name)(loaded)
    built = typer.main.get_group(app).commands[name]
    assert isinstance(built, TyperCommand | TyperGroup)
    return built


class _Commands(TyperGroup):
    """The commands of the table: listed from it, and loaded when they run."""

    def resolve_command(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
        args: list[str],
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and listed else None, rest


_commands = _Commands(
    help="Ultra-scale AI/ML on Amazon EKS from one cluster file.",
    commands=[TyperCommand(name, help=command.summary) for name, command in COMMANDS.items()],
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Of click's errors typer exports this one alone; its base is what every wrong use raises.
(_ClickUsageError,) = typer.BadParameter.__bases__


USAGE = 64
"""Exit status where the command itself was written wrongly: `EX_USAGE` of sysexits(3)."""


def _shown(error: UltrascaleError) -> str:
    """Return what ``error`` says; files and servers may have put orders for a terminal into it."""
    return "\n".join(map(printable, str(error).split("\n")))


def main() -> None:
    """Run the command line.

    A mistake that the user can fix is printed. It exits with 64 where the command's own arguments
    are wrong, and with 1 where a file, the account or the cluster is.
    """
    outlive_reader()
    try:
        _commands()
    except UsageError as error:
        typer.echo(_shown(error), err=True)
        sys.exit(USAGE)
    except UltrascaleError as error:
        sys.exit(_shown(error))
    except SystemExit as end:
        # click ends with 2, with which `plan` says that no published limit allows a cluster.
        if isinstance(end.__context__, _ClickUsageError):
            sys.exit(USAGE)
        raise
