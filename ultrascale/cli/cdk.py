"""`ultrascale cdk` runs the pinned CDK CLI; `ultrascale app` is the app that the CDK CLI runs."""

import os
import sys
from typing import Annotated

import typer

from ultrascale.cli.output import say


def cdk(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Arguments of the CDK CLI.")
    ] = None,
) -> None:
    """Run the CDK CLI that ultrascale pins, with its Node.js, such as `ultrascale cdk bootstrap`.

    The first use installs it into the user's cache.
    """
    from ultrascale.cdk_cli import find_cdk_cli

    found = find_cdk_cli()
    if found.note:
        say(found.note, err=True)
    command = [*found.command, *(arguments or ())]
    os.execve(command[0], command, dict(found.environment()))


def app() -> None:
    """Run the CDK app; the CDK CLI calls it, by `"app": "ultrascale app"` in a cdk.json."""
    from ultrascale.synthesis import APP

    os.execv(sys.executable, [sys.executable, *APP])
