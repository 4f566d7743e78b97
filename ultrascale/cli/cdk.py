"""`ultrascale cdk` runs the pinned CDK CLI; `ultrascale app` is the app that the CDK CLI runs."""

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ultrascale.cli.output import say

_PLACE = re.compile(r"aws://\d{12}/[a-z0-9-]+\Z")


def cdk(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Arguments of the CDK CLI.")
    ] = None,
) -> None:
    """Run the CDK CLI that ultrascale pins, with its Node.js, such as `ultrascale cdk bootstrap`.

    The first use installs it into the user's cache.
    """
    from ultrascale.cdk_cli import find_cdk_cli, option_variables

    given = [*(arguments or ())]
    if given[:1] == ["bootstrap"] and (places := [word for word in given if _PLACE.match(word)]):
        _refuse_without_credentials(places[0].split("/")[-1], given)
        if not any(word.split("=")[0] in ("-a", "--app") for word in given):
            # The accounts are named: the app, and its cluster file, have no say.
            given += ["--app", ""]
    found = find_cdk_cli()
    if found.note:
        say(found.note, err=True)
    if options := sorted(option_variables()):
        say(f"{', '.join(options)}: the CDK CLI takes options from them; unset them", err=True)
    command = [*found.command, *given]
    os.execve(command[0], command, dict(found.environment()))


def _refuse_without_credentials(region: str, given: Sequence[str]) -> None:
    """Refuse credentials that the CDK CLI would answer with a stack trace of Node.js.

    Raises:
        AccountError: There are none, or AWS does not take them.
    """
    from ultrascale import account

    if any(word.split("=")[0] in ("-h", "--help", "--plugin", "-p") for word in given):
        return
    words = " ".join(given).replace("=", " ").split()
    profile = words[words.index("--profile") + 1] if "--profile" in words[:-1] else None
    account.connect(region, profile)


def app() -> None:
    """Run the CDK app; the CDK CLI calls it, by `"app": "ultrascale app"` in a cdk.json."""
    from ultrascale.synthesis import APP, require_cdk

    require_cdk()
    os.execv(sys.executable, [sys.executable, *APP])
