"""The folder of a user's cache, for programs installed once and used offline afterwards."""

import os
import sys
from pathlib import Path

from ultrascale.errors import UltrascaleError

OWN_CACHE = "ULTRASCALE_CACHE"
"""Environment variable with the path of the folder to use."""


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in ``folder``, which need not exist."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def user_cache() -> Path:
    """Return the folder; it need not exist.

    Raises:
        UltrascaleError: The user has no home folder, and no variable names a folder.
    """
    if given := os.environ.get(OWN_CACHE):
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification wants relative paths ignored.
    # Source: https://specifications.freedesktop.org/basedir-spec/latest/
    if sys.platform != "darwin" and Path(base).is_absolute():
        return Path(base, "ultrascale")
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if not home.is_absolute():
        raise UltrascaleError(
            f"no home folder to keep a cache in: HOME is not set; set {OWN_CACHE} to a folder"
        )
    parts = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
    return home.joinpath(*parts, "ultrascale")
