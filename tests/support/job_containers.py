"""Runs the command of a job's container as its pod would, with other programs in its image."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.etcd_server import free_ports

# Its process tells its arguments, and SIGTERM, in files.
_STAND_IN = """#!{python}
import json, os, pathlib, signal, sys, time
folder = pathlib.Path({folder!r})
def stop(*_):
    (folder / "stopped").write_text(str(os.getpid()))
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
told = {{"pid": os.getpid(), "argv": [{name!r}, *sys.argv[1:]], "env": dict(os.environ)}}
(folder / "told.part").write_text(json.dumps(told))
(folder / "told.part").rename(folder / "told")
while "{name}.stay" in os.listdir(folder):
    time.sleep(0.02)
"""


def expanded(word: str, variables: Mapping[str, str]) -> str:
    """Return a word of a container's command as Kubernetes passes it on.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/third_party/forked/golang/expansion/expand.go
    """

    def passed(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$" if found[0] == "$$" else found[0]
        return variables.get(name, found[0])

    return re.sub(r"\$\$|\$\((?P<name>[^)]*)\)|\$.", passed, word, flags=re.DOTALL)


class Image:
    """A folder whose programs stand in for those of an image, and what they tell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The pauses of a pod that waits are shorter here.
        pause = folder / "sleep"
        pause.write_text(f"#!/bin/sh\nexec {shutil.which('sleep')} 0.1\n")
        pause.chmod(0o755)

    def has(self, name: str, *, stays: bool = False) -> None:
        """Put a program there that tells how it was started, and ends or stays."""
        program = self.folder / name
        program.write_text(
            _STAND_IN.format(python=f"{sys.executable} -IS", folder=str(self.folder), name=name)
        )
        program.chmod(0o755)
        if stays:
            (self.folder / f"{name}.stay").touch()

    def started(self) -> bool:
        return (self.folder / "told").exists()

    def stopped(self) -> int:
        """Return the process that SIGTERM reached."""
        return int((self.folder / "stopped").read_text())

    def told(self, timeout: float = 10) -> Any:
        """Return how the program was started, once it was."""
        deadline = time.monotonic() + timeout
        while not self.started():
            assert time.monotonic() < deadline, "the program was not started"
            time.sleep(0.02)
        return json.loads((self.folder / "told").read_text())


@contextmanager
def running(
    command: Sequence[str], image: Image, variables: Mapping[str, str]
) -> Generator[subprocess.Popen[str]]:
    """Run a container's command meanwhile."""
    with subprocess.Popen(
        [expanded(word, variables) for word in command],
        env={"PATH": f"{image.folder}:{os.environ['PATH']}", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run(command: Sequence[str], image: Image, variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a container's command to its end, and return its exit status and output."""
    with running(command, image, variables) as process:
        output, _ = process.communicate(timeout=20)
        return process.returncode, output


def moved(command: Sequence[str], host: str, port: int, to: int) -> list[str]:
    """Return ``command`` with the meeting on this machine instead of ``host`` and ``port``."""
    changes = {
        f"/dev/tcp/{host}/{port}": f"/dev/tcp/127.0.0.1/{to}",
        f"--rdzv-endpoint={host}:{port}": f"--rdzv-endpoint=127.0.0.1:{to}",
        f"getent ahosts {host}": "getent ahosts 127.0.0.1",
        f"--master-port={port}": f"--master-port={to}",
        # Ranks are told beside the meeting.
        f"--host={host} --port={port + 1}": f"--host=127.0.0.1 --port={free_ports(1)[0]}",
    }
    changed = list(command)
    for old, new in changes.items():
        changed = [word.replace(old, new) for word in changed]
    assert changed != list(command)
    return changed
