"""Runs the `torchx` command line as its user does, on a machine without a network."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    *words: str, folder: Path, cwd: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run ``torchx`` with these words."""
    command = [sys.executable, "-m", "torchx.cli.main", *words]
    return run(command, environment(folder, **{"ECR_REPO": ECR_REPO, **variables}), cwd=cwd)


def request(process: subprocess.CompletedProcess[str]) -> str:
    """Return what a dry run says would be sent."""
    assert process.returncode == 0, process.stderr
    return process.stdout.partition(_REQUEST)[2]


def objects(process: subprocess.CompletedProcess[str]) -> list[Any]:
    """Return the objects that a dry run says would be sent."""
    return [*yaml.safe_load_all(request(process))]
