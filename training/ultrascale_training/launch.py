"""Wrapper of torchrun that gives a mistake which no restart cures its own exit status.

``python -m ultrascale_training.launch torchrun …`` runs the command. torchrun ends with 1 however
its workers end, and the job's controller restarts a pod that ends with 1 as often as it may. A
worker that finds a mistake writes a file; this program then ends with 2, which ends the job. One
that was told to stop and has saved writes another; this program then ends with 75.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from ultrascale_training.stop import STOPPED_EARLY

_MISTAKE = "ULTRASCALE_MISTAKE_FILE"
_MISTAKE_STATUS = 2
_STOPPED = "ULTRASCALE_STOPPED_FILE"
_USAGE = "python -m ultrascale_training.launch COMMAND [ARGUMENT…]"


def note_mistake() -> None:
    """Tell the launching program, if there is one, that no restart helps."""
    _touch(_MISTAKE)


def note_stop() -> None:
    """Tell the launching program, if there is one, that the run was told to stop, and has saved."""
    _touch(_STOPPED)


def _touch(variable: str) -> None:
    if path := os.environ.get(variable):
        # The disk may be full.
        with suppress(OSError):
            Path(path).touch()


def launch(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command, pass signals on to it, and return the exit status of the container.

    Args:
        command: Program and its arguments.
        environment: Its variables.
    """
    with tempfile.TemporaryDirectory() as folder:
        mistake, stopped = Path(folder) / "mistake", Path(folder) / "stopped"
        files = {_MISTAKE: str(mistake), _STOPPED: str(stopped)}
        child: subprocess.Popen[bytes] | None = None
        early: list[int] = []

        def pass_on(number: int, _: FrameType | None) -> None:
            if child is None:
                early.append(number)
            else:
                child.send_signal(number)

        # Registered before the command starts: a notice in between would end only this program.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, pass_on)
        child = subprocess.Popen(command, env={**environment, **files})
        for number in early:
            child.send_signal(number)
        status = child.wait()
        if mistake.exists():
            return _MISTAKE_STATUS
        if status and stopped.exists():
            return STOPPED_EARLY
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(_USAGE)
    sys.exit(launch(sys.argv[1:], os.environ))
