"""Runs the `torchx` command line as its user does, on a machine without a network.

A command is forked from one process that has imported TorchX and our scheduler, which takes a
second; it has its own words, environment, folder and output.
"""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import yaml

from tests.support.folders import ROOT

ECR_REPO = "111122223333.dkr.ecr.us-west-2.amazonaws.com/trainium-bert/bert-pretrain"
_REQUEST = "=== SCHEDULER REQUEST ===\n"
# Python imports it at its start, from PYTHONPATH.
_NO_NETWORK = """import socket
def connect(*_):
    raise OSError("a dry run asked the network")
socket.socket.connect = socket.socket.connect_ex = connect
"""
# Reads one command a line, and answers with its exit status.
_SERVER = """import importlib.metadata, json, os, signal, sys
import kubernetes.client, kubernetes.config, kubernetes.dynamic
import torchx.cli.main
for each in importlib.metadata.entry_points(group="torchx.schedulers"):
    each.load()
for line in sys.stdin:
    asked = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    signal.alarm(60)
    for number, file in enumerate(asked["files"], start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.exit(torchx.cli.main.main(asked["words"]))
"""


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """Return the environment of a new user, in which every connection fails."""
    (folder / "sitecustomize.py").write_text(_NO_NETWORK)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "PYTHONPATH": str(folder), **changes}


def run(
    command: Sequence[str], variables: Mapping[str, str], *, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, env=variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def torchx(
    *words: str, folder: Path, cwd: Path = ROOT, repository: str | None = ECR_REPO
) -> subprocess.CompletedProcess[str]:
    """Run ``torchx`` with these words, and ``repository`` as the variable ECR_REPO."""
    variables = {} if repository is None else {"ECR_REPO": repository}
    asked = {
        "words": words,
        "folder": str(cwd),
        "files": [str(folder / "stdout"), str(folder / "stderr")],
        "environment": environment(folder, **variables),
    }
    commands, statuses = _server()
    commands.write(f"{json.dumps(asked)}\n")
    commands.flush()
    status = statuses.readline()
    assert status, "the server of commands has ended; its error is in the captured output"
    said, told = (Path(file).read_text() for file in asked["files"])
    return subprocess.CompletedProcess(["torchx", *words], int(status), said, told)


@cache
def _server() -> tuple[IO[str], IO[str]]:
    folder = TemporaryDirectory()
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env=environment(Path(folder.name)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return process.stdin, process.stdout


def request(process: subprocess.CompletedProcess[str]) -> str:
    """Return what a dry run says would be sent."""
    assert process.returncode == 0, process.stderr
    return process.stdout.partition(_REQUEST)[2]


def objects(process: subprocess.CompletedProcess[str]) -> list[Any]:
    """Return the objects that a dry run says would be sent."""
    return [*yaml.safe_load_all(request(process))]
