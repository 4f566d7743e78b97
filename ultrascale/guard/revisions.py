"""Cluster files of an earlier commit, synthesized by the installed product."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.errors import ConfigError, QuestionError, UltrascaleError
from ultrascale.guard.sources import read_assembly_of, synthesize
from ultrascale.guard.templates import Templates
from ultrascale.plan.model import ClusterIdentity

_OPTION = "--against"


def read_revision_of(
    plan: ClusterIdentity, file: Path, revision: str, folder: Path
) -> tuple[str, Templates]:
    """Return the commit of a revision, and the templates of its cluster file.

    The installed product synthesizes them, whatever version the commit names. So the
    comparison shows the effect of the changed file, and not that of an upgrade.

    Args:
        plan: The cluster as the file is now.
        file: The cluster file, in a Git repository.
        revision: A name that Git knows, such as ``origin/main`` or ``HEAD~1``.
        folder: An empty folder to work in.

    Raises:
        QuestionError: There is no such revision, the file is not in it, or it describes another
            cluster, account or Region there.
        UltrascaleError: There is no Git, or the file cannot be synthesized as it was.
    """
    top, commit = _commit(file, revision)
    path = file.resolve().relative_to(top)
    tree = folder / "tree"
    if path.as_posix() not in _check_out(top, commit, path, tree):
        raise QuestionError(
            [f"{_OPTION}: {revision} has no file {path}; name a revision that has it"]
        )
    if not (tree / path).is_file():
        todo = "name the file that it stands for, or another revision"
        raise QuestionError([f"{_OPTION}: {path} is no regular file in {revision}; {todo}"])
    try:
        synthesize(tree / path, folder)
    except UltrascaleError as error:
        said = str(error).replace(f"{tree}{os.sep}", f"{revision}:")
        raise UltrascaleError(f"{_OPTION}: {revision} cannot be synthesized:\n{said}") from error
    return commit[:12], read_assembly_of(plan, folder, option=_OPTION)


def _check_out(top: Path, commit: str, path: Path, tree: Path) -> tuple[str, ...]:
    """Write a cluster file of a commit, with the files that it reads, into the folder ``tree``.

    Returns:
        The paths of the files in the repository.
    """
    folder = path.parent
    beside = (config.EJECTED, *(part.record for part in all_parts() if part.record is not None))
    paths = _write(top, commit, (path, *(folder / name for name in beside)), tree)
    own: tuple[str, ...] = ()
    if (tree / path).is_file():
        # Synthesis says what is wrong with the file.
        with suppress(ConfigError):
            own = config.own_folders(tree / path)
    return paths + (_write(top, commit, [folder / each for each in own], tree) if own else ())


def _write(top: Path, commit: str, wanted: Sequence[Path], tree: Path) -> tuple[str, ...]:
    """Write files and folders of a commit into the folder ``tree``, and return the files' paths.

    An archive would lack what Git's attribute export-ignore leaves out.
    """
    listed = _git(top, "ls-tree", "-r", "-z", commit, "--", *(each.as_posix() for each in wanted))
    if listed:
        # An index of its own: the user's stays as it is.
        index = {"GIT_INDEX_FILE": str(tree.with_name("index"))}
        _git(top, "update-index", "-z", "--index-info", given=listed, environment=index)
        prefix = f"--prefix={tree}{os.sep}"
        _git(top, "checkout-index", "--all", "--force", "--quiet", prefix, environment=index)
    return tuple(line.partition("\t")[2] for line in os.fsdecode(listed).split("\0"))


def _commit(file: Path, revision: str) -> tuple[Path, str]:
    """Return the repository's folder that holds ``file``, and the commit of ``revision``."""
    unknown = f"{_OPTION}: neither a folder nor a revision of Git, got {revision}"
    try:
        top = _git(file.resolve().parent, "rev-parse", "--show-toplevel").decode().strip()
    except UltrascaleError as error:
        raise QuestionError([f"{unknown}; {file} is in no Git repository: {error}"]) from error
    try:
        name = f"{revision}^{{commit}}"
        commit = _git(Path(top), "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except UltrascaleError as error:
        todo = "name a folder, a branch or a commit; a shallow clone has to fetch it first"
        raise QuestionError([f"{unknown}; {todo}"]) from error
    # An old Git prints the option, too.
    return Path(top).resolve(), commit.decode().split()[-1]


def _git(
    folder: Path,
    *arguments: str,
    given: bytes = b"",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return Git's output.

    Args:
        folder: Folder to run Git in.
        arguments: Git's arguments.
        given: Git's standard input.
        environment: Variables beside those of this process.

    Raises:
        UltrascaleError: Git fails, or is not installed.
    """
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**os.environ, **environment},
            input=given,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UltrascaleError(f"git: {error.strerror}; install Git, or name a folder") from error
    if answer.returncode:
        raise UltrascaleError(answer.stderr.decode(errors="replace").strip())
    return answer.stdout
