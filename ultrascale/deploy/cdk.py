"""`cdk deploy` of one stack of an assembly."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ultrascale.cdk_cli import CdkCli


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployCommand:
    """How stacks are deployed.

    Attributes:
        cdk: The CDK CLI.
        assembly: Folder that `cdk synth` wrote.
        profile: Profile of the AWS CLI's configuration; None for what it takes by itself.
        import_existing: Whether stacks take over resources that have their names already.
    """

    cdk: CdkCli
    assembly: Path
    profile: str | None = None
    import_existing: bool = False

    def by_hand(self, stack: str) -> str:
        """Return the command as a shell takes it, in the project's folder."""
        return shlex.join(("npx", "cdk", *self._arguments(stack)))

    def _arguments(self, stack: str) -> tuple[str, ...]:
        return (
            *("deploy", stack, "--exclusively", "--app", str(self.assembly)),
            # Whoever is asked has agreed to all of it before; the CDK could ask nobody.
            *("--require-approval", "never", "--progress", "events", "--no-notices", "--no-color"),
            *(("--profile", self.profile) if self.profile else ()),
            *(("--import-existing-resources",) if self.import_existing else ()),
        )

    def start(self, stack: str) -> "CdkDeploy":
        """Start to deploy ``stack``, and nothing that it depends on."""
        return CdkDeploy((str(self.cdk.program), *self._arguments(stack)), self.cdk)


class CdkDeploy:
    """A `cdk deploy` that runs."""

    def __init__(self, command: tuple[str, ...], cdk: CdkCli) -> None:
        # In a session of its own, as Ctrl-C would else end it before we have told anybody.
        self._process = subprocess.Popen(
            command,
            cwd=cdk.project,
            env=cdk.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield what it says, until it ends."""
        with cast("IO[str]", self._process.stdout) as output:
            for line in output:
                yield line.rstrip()

    def wait(self) -> int:
        """Return the status that it ended with."""
        return self._process.wait()

    def stop(self) -> None:
        """Tell it to end. What CloudFormation has begun goes on."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # macOS says the latter of a group of which all have ended and one is not waited for yet.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
