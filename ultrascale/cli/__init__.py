"""The command line. One table of commands; the module of a command is imported when it runs."""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from ultrascale.cli.output import INTERRUPTED, USAGE, outlive_reader, say
from ultrascale.errors import InterruptedWorkError, UltrascaleError, UsageError, no_room, printable
from ultrascale.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MODULE = "ultrascale.cli"
# All words behind the first belong to the other program, `--help` as well.
_PASSED_ON = {"allow_interspersed_args": False}


class Command(NamedTuple):
    """Definition of a command: its place and summary."""

    module: str  # Name of a module of this package, or full name of a module of a part
    name: str  # Function of the module that takes the options, or app of a command with subcommands
    summary: str  # Line of the list of commands; at most 58 characters, or typer cuts it short
    # Sentence printed after Ctrl-C, if the command itself prints none
    stopped: str = "nothing was changed"
    passes_on: bool = False  # Whether the options belong to another program


_OF_PARTS: "Mapping[str, Command]" = {
    "recipes": Command(
        "ultrascale.parts.recipes.command",
        "recipes_command",
        "List the models that a job can train.",
    ),
    "models": Command(
        "ultrascale.parts.models.command",
        "models_command",
        "List the models in a bucket, and the pools they fit.",
    ),
    "mirror": Command(
        "ultrascale.parts.mirror.command",
        "mirror",
        "List, copy or check what a closed cluster pulls.",
        stopped="mirror.lock has what was copied",
    ),
    "dev": Command(
        "ultrascale.parts.dev.command",
        "dev",
        "Start a notebook or a shell of your own, and reach it.",
        stopped="`ultrascale status` shows whether the pod was started",
    ),
    "fabric": Command(
        "ultrascale.parts.fabric.command",
        "fabric",
        "Measure a pool's network; name and cordon bad nodes.",
        stopped="the check is deleted; nodes that it cordoned stay so",
    ),
}
"""Commands of parts, by name: a list of all commands imports no part."""

COMMANDS: "Mapping[str, Command]" = {
    "init": Command("init", "init", "Write a new cluster file, and a repository around it."),
    "check": Command("check", "check", "Name every mistake in cluster files."),
    "schema": Command("check", "schema", "Print the JSON Schema of cluster or job files."),
    "plan": Command("needs", "plan_command", "Show what a file needs: nodes, quotas, time, money."),
    "facts": Command(
        "facts", "facts_command", "List the facts a file rests on, and when they age."
    ),
    "network": Command("network", "app", "Tell a network team what a cluster needs of its VPC."),
    "report": Command("report", "report", "Draw a file as a page: topology, calendar, cost."),
    "prices": Command("prices", "prices_command", "Write a Region's prices from AWS's price list."),
    "matrix": Command(
        "instance_types", "matrix_command", "Show which purchase option works on which provisioner."
    ),
    "types": Command("instance_types", "types", "List the instance types that a file may name."),
    "recipes": _OF_PARTS["recipes"],
    "models": _OF_PARTS["models"],
    "advise": Command("advise", "advise_command", "Recommend a way to buy capacity."),
    "baseline": Command(
        "baseline", "baseline_command", "Tell how many nodes to buy ahead, from a job trace."
    ),
    "preflight": Command(
        "preflight",
        "preflight",
        "Check an AWS account against a cluster file.",
        stopped="nothing was changed; quota increases that are listed as filed stay filed",
    ),
    "capacity": Command(
        "capacity",
        "app",
        "Find Capacity Blocks, training plans, Spot; buy one.",
        stopped="nothing was bought",
    ),
    "bootstrap-policy": Command(
        "bootstrap_policy",
        "bootstrap_policy",
        "Write the policies for `cdk bootstrap`.",
        stopped="policies that are written are whole; run it again for the others",
    ),
    "synth": Command(
        "synth",
        "synth",
        "Write templates and manifests, validated.",
        stopped="the folders are as they were",
    ),
    "diff": Command("diff", "diff", "Show what a deployment would replace, delete or roll."),
    "deploy": Command(
        "deploy",
        "deploy_command",
        "Check, compare, ask, then deploy the stacks.",
        stopped="no stack was begun",
    ),
    "accept": Command("accept", "accept", "Hold a deployed cluster against its file."),
    "summary": Command("synth", "summary", "Show what a synthesized file would create."),
    "sbom": Command("sbom", "sbom", "List what a deployment brings: a bill of materials."),
    "submit": Command(
        "jobs",
        "submit",
        "Send a job, and wait until its pods run.",
        stopped="`ultrascale status` shows whether the job was sent",
    ),
    "status": Command("jobs", "status", "Show the jobs, or one job and its pods."),
    "logs": Command("jobs", "logs", "Print what a job's pods write."),
    "cancel": Command(
        "jobs",
        "cancel",
        "Delete a job; its volumes stay.",
        stopped="what is deleted already stays so; run it again for the rest",
    ),
    "queue": Command("jobs", "queue", "Show Volcano's queues, and the jobs that wait in them."),
    "connect": Command("connect", "connect", "Open a way to the cluster's private endpoint."),
    "scale": Command(
        "pools",
        "scale",
        "Set the size of a pool, and wait for it.",
        stopped="`ultrascale status FILE --pools` shows the size that is set",
    ),
    "roll": Command("pools", "roll", "Renew the nodes of a pool, batch by batch."),
    "repair": Command(
        "pools",
        "repair",
        "Judge a broken node anew, or keep repair off it.",
        stopped="run it again: it says in which state the node is",
    ),
    "ledger": Command(
        "ledger", "ledger_command", "Show who used the paid hours, and why others idled."
    ),
    "upgrade-plan": Command("upgrade_plan", "upgrade_plan", "Plan an upgrade of Kubernetes."),
    "destroy": Command(
        "destroy",
        "destroy_command",
        "Take a cluster down; storage stays.",
        stopped="nothing was deleted",
    ),
    "cdk": Command("cdk", "cdk", "Run the pinned CDK CLI, such as `bootstrap`.", passes_on=True),
    "app": Command("cdk", "app", "Run the CDK app; for `app` in a cdk.json."),
    **_OF_PARTS,
}


def load(name: str) -> TyperCommand | TyperGroup:
    """Import a command's module, and return the command with its options."""
    command = COMMANDS[name]
    place = command.module if "." in command.module else f"{_MODULE}.{command.module}"
    loaded = getattr(import_module(place), command.name)
    # Without markup: help and errors of wrong use do not import rich, and stay easy to search.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=name)
    else:
        app.command(name, context_settings=_PASSED_ON if command.passes_on else None)(loaded)
    built = typer.main.get_group(app).commands[name]
    assert isinstance(built, TyperCommand | TyperGroup)
    return built


GOALS: "Mapping[str, Sequence[str]]" = {
    "Write a cluster file": ("init", "check", "schema", "types", "matrix", "advise"),
    "Know before you pay": (
        "plan",
        "facts",
        "network",
        "prices",
        "report",
        "baseline",
        "preflight",
        "capacity",
    ),
    "Deploy": (
        "synth",
        "summary",
        "sbom",
        "mirror",
        "diff",
        "bootstrap-policy",
        "deploy",
        "accept",
        "cdk",
        "app",
    ),
    "Run jobs": (
        "recipes",
        "models",
        "submit",
        "status",
        "logs",
        "cancel",
        "dev",
        "queue",
    ),
    "Keep it running": (
        "connect",
        "scale",
        "roll",
        "repair",
        "fabric",
        "ledger",
        "upgrade-plan",
        "destroy",
    ),
}
"""Commands by the user's purpose; help lists commands outside the table after these."""

_STATUSES = """\b
Exit status, of every command:
    0  done
    1  a file, the account or the cluster is wrong, or you said no
    2  no limit that AWS publishes allows the cluster
    3  the command's verdict is no: its --help says which
    4  deploy: a stack failed; capacity buy: not known whether it was bought
   64  the command was written wrongly
  130  stopped by Ctrl-C
"""
# A shell sets this variable when it asks for completions.
_COMPLETE = "_ULTRASCALE_COMPLETE"
_COMPLETION = ("--install-completion", "--show-completion")


class _Commands(TyperGroup):
    """The commands of the table: help lists them, and a command is imported when it runs."""

    _running = ""

    def parse_args(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
        args: list[str],
    ) -> list[str]:
        first = args[:1]
        if first and first[0] in _COMPLETION and (len(args) == 1 or args[1].startswith("-")):
            # The name of the shell may be left out.
            from ultrascale.cli.complete import shell

            args = [*first, shell(), *args[1:]]
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
        args: list[str],
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        self._running = name or ""
        return name, load(name) if name and listed else None, rest

    def invoke(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
    ) -> Any:  # noqa: ANN401 typer hides it
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise self._interrupted_work() from None
        except typer.Abort as abort:
            # The user answered a question by Ctrl-C.
            if isinstance(abort.__context__, KeyboardInterrupt):
                raise self._interrupted_work() from None
            raise

    def _interrupted_work(self) -> InterruptedWorkError:
        return InterruptedWorkError(f"stopped: {COMMANDS[self._running].stopped}")

    def format_commands(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
        formatter: Any,  # noqa: ANN401 typer hides it
    ) -> None:
        others = [name for name in COMMANDS if not any(name in names for names in GOALS.values())]
        width = max(map(len, COMMANDS))
        for goal, names in {**GOALS, "Others": others}.items():
            if listed := [name for name in names if name in COMMANDS]:
                with formatter.section(goal):
                    formatter.write_dl(
                        [(name.ljust(width), COMMANDS[name].summary) for name in listed]
                    )


def _show_version(wanted: bool) -> None:
    if wanted:
        from ultrascale.cli.version import lines

        typer.echo("\n".join(lines()))
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        from ultrascale.cli.complete import script

        typer.echo(script(shell))
        raise typer.Exit


def _install_completion(shell: str | None) -> None:
    if shell is not None:
        from ultrascale.cli.complete import install

        say(f"completion of {shell} is in {install(shell)}; open a new terminal to use it")
        raise typer.Exit


_app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    epilog=_STATUSES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@_app.callback()
def _ultrascale(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_show_version,
            is_eager=True,
            help="Print the versions of the product and of its parts.",
        ),
    ] = False,
    _install: Annotated[
        str | None,
        typer.Option(
            _COMPLETION[0],
            metavar="[SHELL]",
            callback=_install_completion,
            is_eager=True,
            help="Install completion for bash, zsh or fish.",
        ),
    ] = None,
    _show: Annotated[
        str | None,
        typer.Option(
            _COMPLETION[1],
            metavar="[SHELL]",
            callback=_show_completion,
            is_eager=True,
            help="Print the script that completes in bash, zsh or fish.",
        ),
    ] = None,
) -> None:
    """Ultra-scale AI/ML on Amazon EKS from one cluster file."""


_commands = typer.main.get_group(_app)
_commands.commands.update(
    {name: TyperCommand(name, help=command.summary) for name, command in COMMANDS.items()}
)

# typer exports only this one of click's errors; its base class covers every wrong use.
(_ClickUsageError,) = typer.BadParameter.__bases__


def _printable(error: UltrascaleError) -> str:
    """Return the text of ``error`` without control characters from files and servers."""
    return "\n".join(map(printable, str(error).split("\n")))


def main() -> None:
    """Run the command line.

    A mistake that the user can fix is printed. The exit status is 64 if the command's own arguments
    are wrong, 130 after Ctrl-C, and 1 if a file, the account or the cluster is wrong.
    """
    if _COMPLETE in os.environ:
        from ultrascale.cli.complete import answer_shells

        answer_shells()
    outlive_reader()
    show_progress()
    try:
        try:
            _commands(prog_name="ultrascale")
        finally:
            # Flushed here, so that a full disk is reported before Python ends.
            sys.stdout.flush()
    except UsageError as error:
        say(_printable(error), err=True)
        sys.exit(USAGE)
    except InterruptedWorkError as error:
        say(f"\n{_printable(error)}", err=True)
        sys.exit(INTERRUPTED)
    except UltrascaleError as error:
        say(_printable(error), err=True)
        sys.exit(1)
    except OSError as error:
        if not (sentence := no_room(error, "make room, then run the command again")):
            raise
        say(printable(sentence), err=True)
        sys.exit(1)
    except SystemExit as end:
        # click would end with 2, which in `plan` means that no published limit allows a cluster.
        if isinstance(end.__context__, _ClickUsageError):
            sys.exit(USAGE)
        raise
