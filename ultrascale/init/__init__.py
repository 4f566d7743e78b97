"""A repository of one's own: a cluster file, its jobs, and what a checkout of ours would bring."""

from pathlib import Path

from ultrascale.errors import UltrascaleError
from ultrascale.init.cluster_file import (
    STAND_IN_ACCOUNT,
    STAND_IN_NETWORK,
    Answers,
    cluster_text,
    defaults,
    mistakes_in,
)
from ultrascale.init.repository import FIXED, repository_files
from ultrascale.init.source import PLACES, Source, given_source, local_wheel, recorded_source
from ultrascale.init.starts import STARTS, Start
from ultrascale.new_files import refuse_existing, write_new_files

__all__ = [
    "PLACES",
    "STAND_IN_ACCOUNT",
    "STAND_IN_NETWORK",
    "STARTS",
    "Answers",
    "Source",
    "Start",
    "cluster_text",
    "defaults",
    "given_source",
    "init",
    "local_wheel",
    "mistakes_in",
    "recorded_source",
    "refuse_used_folder",
]

# What belongs to an empty repository, and to the environment that this program is installed in.
_LEFT = ("LICENSE", "LICENSE.md", "LICENSE.txt")
_SHOWN = 3


def init(start: Start, answers: Answers, folder: Path, source: Source | None) -> tuple[str, ...]:
    """Write a repository for one cluster into an empty or new folder.

    Args:
        start: What the cluster file starts from.
        answers: What the user says about it.
        folder: The folder.
        source: The place that its CI installs this product from; None for a repository without CI.

    Returns:
        The paths of the files.

    Raises:
        UltrascaleError: The folder is not empty or cannot be written to. It is as before then.
    """
    refuse_used_folder(folder)
    files = repository_files(
        start, answers.name, cluster_text(start, answers), answers.region, source
    )
    write_new_files(folder, files)
    return tuple(files)


def refuse_used_folder(folder: Path) -> None:
    """Return where a repository can be written into ``folder``.

    A virtual environment, wheels, a licence, and what begins with a dot, such as `.git`, may lie
    there.

    Raises:
        UltrascaleError: It holds other files, or one of `FIXED`, or is no folder.
    """
    try:
        there = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UltrascaleError(f"{folder}: {reason}; name an empty folder by --to") from None
    used = [path.name for path in there if not _may_stay(path)]
    if used:
        more = f" and {len(used) - _SHOWN} more" if len(used) > _SHOWN else ""
        raise UltrascaleError(
            f"{folder}: not empty, it has {', '.join(used[:_SHOWN])}{more}; nothing was written; "
            "run it in an empty folder, or name a new one by --to"
        )
    refuse_existing(folder, FIXED)


def _may_stay(path: Path) -> bool:
    is_environment = (path / "pyvenv.cfg").is_file()
    return (
        path.name.startswith(".") or path.suffix == ".whl" or path.name in _LEFT or is_environment
    )
