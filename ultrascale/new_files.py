"""New files, written all or none."""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import mkdtemp

from ultrascale import processes
from ultrascale.errors import UltrascaleError


def write_new_files(
    folder: Path, contents: Mapping[str, bytes], *, replaced: Mapping[str, bytes] | None = None
) -> None:
    """Write ``contents`` into ``folder``, which is made where it does not exist.

    The files are first written beside their places, so that neither a full disk nor Ctrl-C
    leaves anything behind.

    Args:
        folder: The folder.
        contents: Content of each new file, by its path in the folder.
        replaced: Contents of files that may exist; they are written last.

    Raises:
        UltrascaleError: One of the files exists, or the folder cannot be written to. Then it is
            unchanged.
    """
    refuse_existing(folder, contents)
    made: list[Path] = []
    try:
        _make_folders(folder, made)
        stage = Path(mkdtemp(prefix=".ultrascale-", dir=folder))
        try:
            for path, content in {**contents, **(replaced or {})}.items():
                (stage / path).parent.mkdir(parents=True, exist_ok=True)
                (stage / path).write_bytes(content)
            with processes.uninterrupted():
                for path in contents:
                    _make_folders((folder / path).parent, made)
                    made.append(folder / path)
                    (stage / path).rename(folder / path)
                for path in replaced or {}:
                    (stage / path).replace(folder / path)
                # A signal that was held back arrives now: the complete files stay.
                made.clear()
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        _undo(made)
        reason = (error.strerror or str(error)).lower()
        raise UltrascaleError(
            f"{folder}: nothing was written: {reason}; choose a folder with --to that you can "
            "write to"
        ) from None
    except BaseException:
        _undo(made)
        raise


def refuse_existing(folder: Path, paths: Collection[str]) -> None:
    """Refuse paths that exist already.

    Raises:
        UltrascaleError: A path exists. The error names the uppermost one.
    """
    there = dict.fromkeys(path for path in paths if os.path.lexists(folder / path))
    if there:
        names = ", ".join([*there][:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        raise UltrascaleError(
            f"{folder}: nothing was written: it has {names} already; move that away, or choose "
            "another folder with --to"
        )


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        made.append(parent)


def _undo(made: list[Path]) -> None:
    """Remove the files and folders in ``made``, the last first; folders with other files stay."""
    for path in reversed(made):
        try:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        except OSError:
            continue
