"""The product's own files that are no Python modules: images, charts, example files, pins.

An installed package carries them in its folder ``_resources``, which the build of the wheel fills
(``hatch_build.py``). Without that folder the package lies in a checkout, or in the image of the
backend, and the files lie beside it: an editable install holds no copies that could go stale.
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import cache
from pathlib import Path

from ultrascale.errors import UltrascaleError

_PACKAGE = Path(__file__).parent
_INSTALLED = _PACKAGE / "_resources"

SHIPPED = (
    ".npmrc",
    "backend/pyproject.toml",
    "backend/ultrascale_backend",
    "charts",
    "clusters",
    "constraints.txt",
    "examples/bert/pyproject.toml",
    "examples/bert/ultrascale_bert",
    "images",
    "jobs",
    "lib",
    "package-lock.json",
    "package.json",
    "pylock.toml",
    "requirements.txt",
    "training/pyproject.toml",
    "training/ultrascale_training",
)
"""Files that a wheel carries, as paths in the repository."""
LEFT_BY_TOOLS = ("__pycache__", "*.pyc", ".pytest_cache", ".ruff_cache", ".DS_Store")
"""Names of files and folders that tools leave in any folder, as patterns."""
LEFT_OUT = (*LEFT_BY_TOOLS, "*.egg-info", "build", "dist")
"""`LEFT_BY_TOOLS` and the leftovers of Python package builds: never part of the product."""


def resource(path: str) -> Path:
    """Return the file or folder of the product that lies at ``path`` in its repository.

    Args:
        path: From the repository's folder, such as ``images/nvidia`` or ``package.json``. Below
            ``ultrascale/`` it is a file of the package itself.

    Raises:
        UltrascaleError: It is missing, so the installation is incomplete.
    """
    file = _folder(path) / path
    if not file.exists():
        raise UltrascaleError(
            f"{file}: missing, and it is part of ultrascale; the installation is incomplete: "
            "install the package again"
        )
    return file


def files(path: Path, left_out: Sequence[str] = LEFT_OUT) -> Iterator[Path]:
    """Yield the files below a folder, or the single file, without names that match ``left_out``."""
    if not path.is_dir():
        yield path
        return
    is_left_out = _any_of(tuple(left_out)).match
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not is_left_out(name))
        for name in sorted(names):
            if not is_left_out(name):
                yield Path(folder, name)


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return ``patterns`` as one expression: a plan of images matches hundreds of names."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def _folder(path: str) -> Path:
    is_module = Path(path).parts[:1] == (_PACKAGE.name,)
    return _INSTALLED if _INSTALLED.is_dir() and not is_module else _PACKAGE.parent
