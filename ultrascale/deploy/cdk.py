"""`cdk deploy` of one stack of an assembly."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ultrascale.cdk_cli import CdkCli
from ultrascale.frozen import Frozen


class DeployCommand(Frozen):
    """The `cdk deploy` command of a deployment."""

    cdk: CdkCli  # The CDK CLI
    assembly: Path  # Folder that `cdk synth` wrote
    # Profile of the AWS CLI's configuration; None for the CDK's own choice.
    profile: str | None = None
    import_existing: bool = False  # Whether stacks import existing resources that have their names

    def by_hand(self, stack: str) -> str:
        """Return the command that a user can paste into a shell in the working folder."""
        return shlex.join(("ultrascale", "cdk", *self._arguments(stack)))

    def _arguments(self, stack: str) -> tuple[str, ...]:
        return (
            *("deploy", stack, "--exclusively", "--app", str(self.assembly)),
            # The user has agreed before, and the CDK has no terminal to ask on.
            *("--require-approval", "never", "--progress", "events", "--no-notices", "--no-color"),
            *(("--profile", self.profile) if self.profile else ()),
            *(("--import-existing-resources",) if self.import_existing else ()),
        )

    def start(self, stack: str) -> "CdkDeploy":
        """Start the deployment of ``stack`` alone, without its dependencies."""
        return CdkDeploy((*self.cdk.command, *self._arguments(stack)), self.cdk)


class CdkDeploy:
    """A running `cdk deploy`."""

    def __init__(self, command: tuple[str, ...], cdk: CdkCli) -> None:
        # The program has a session of its own: otherwise Ctrl-C would end the CDK before we print
        # anything.
        self._process = subprocess.Popen(
            command,
            env=cdk.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines that the program prints, until it ends."""
        output = self._process.stdout
        assert output is not None, "the process was started with a pipe"
        with output:
            for line in output:
                yield line.rstrip()

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit status."""
        return self._process.wait()

    def stop(self) -> None:
        """Ask the program to end. CloudFormation goes on with its operation."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # macOS raises PermissionError for a group of ended processes until all were waited for.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
