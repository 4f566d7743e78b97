"""New files of which all are written, or none."""

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

    They are first written beside their places, so that a full disk leaves nothing behind, and
    neither does Ctrl-C.

    Args:
        folder: The folder.
        contents: Content of each new file, by its path in the folder.
        replaced: The same of files that may exist, and are written last.

    Raises:
        UltrascaleError: One of the files exists, or the folder cannot be written to. Then it is as
            it was before.
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
                # A signal that was held back arrives now, and undoes nothing of what is complete.
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
    """Return where nothing lies yet at any of ``paths``.

    Raises:
        UltrascaleError: Something does. It names the uppermost of them.
    """
    there = dict.fromkeys(path for path in paths if os.path.lexists(folder / path))
    if there:
        names = ", ".join([*there][:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        raise UltrascaleError(
            f"{folder}: nothing was written: it has {names} already; move that away, or choose "
            "another folder with --to"
        )


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def _undo(made: list[Path]) -> None:
    """Remove what was made, the last first; a folder that has got other files stays."""
    for path in reversed(made):
        try:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        except OSError:
            continue
