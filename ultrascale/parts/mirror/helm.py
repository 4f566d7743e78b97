"""Helm and Git, which pack and push charts from outside all registries."""

import shutil
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from ultrascale import processes
from ultrascale.errors import UltrascaleError
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.tools import is_local


def run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program to its end.

    Raises:
        UltrascaleError: It fails; the message has what it printed.
    """
    answer = processes.run(command, environment=environment)
    if answer.returncode:
        printed = answer.stdout.strip() or f"status {answer.returncode}"
        raise UltrascaleError(f"`{' '.join(command)}` failed: {printed}")


def require(copy: Copy, *programs: str) -> None:
    """Refuse to pack a chart without a needed program.

    Raises:
        UltrascaleError: A program is not on PATH.
    """
    for program in programs:
        if shutil.which(program) is None:
            raise UltrascaleError(f"{program}: not on PATH, which packs {copy.source}; install it")


def push(archive: Path, copy: Copy, environment: Mapping[str, str]) -> None:
    """Push an archive, whose name and version are those of the copy.

    Raises:
        UltrascaleError: Helm fails.
    """
    folder = copy.target.rpartition(":")[0].rpartition("/")[0]
    local = is_local(copy.target.removeprefix("oci://"))
    plain = ["--plain-http"] if local else []
    run(["helm", "push", str(archive), folder, *plain], environment)


def digest(archive: Path) -> str:
    """Return the SHA-256 of an archive, as indexes of Helm repositories have it."""
    return sha256(archive.read_bytes()).hexdigest()
