"""What container images are built from: files of this project."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from ultrascale.catalog import Architecture
from ultrascale.errors import UltrascaleError

ROOT = Path(__file__).parents[3]
FOLDERS = ("backend", "images", "pyproject.toml", "training", "ultrascale")
# What tools leave in them. `.dockerignore` names the same.
LEFT_OUT = ("__pycache__", "*.pyc", "*.egg-info", ".pytest_cache", ".ruff_cache", "build", "dist")

_WHEEL = "images/wheel-requirements.txt"
_TRAINING = (_WHEEL, "training")
# The backend names images by their tags, and so has what these are hashes of.
_BACKEND = (_WHEEL, "backend", "images", "pyproject.toml", "training", "ultrascale")
# What each Dockerfile copies beside its own folder.
SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "neuron": _TRAINING,
        "nvidia": _TRAINING,
        "cpu": _TRAINING,
        "tensorboard": (),
        "backend": _BACKEND,
    }
)
_TAG_LENGTH = 12


def content_tag(dockerfile: str, architecture: Architecture, *, root: Path = ROOT) -> str:
    """Return the tag of the image of ``images/<dockerfile>``: a hash of what it is built from.

    The same sources have the same tag on every machine, and others have another: a repository
    takes each tag once.

    Args:
        dockerfile: Name of a folder of ``images``.
        architecture: Of the nodes that the image is for.
        root: Folder of the project.

    Raises:
        UltrascaleError: The sources are not there: the package was installed without them.
    """
    digest = sha256(f"{architecture}\0".encode())
    for path in _files(root, dockerfile):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:_TAG_LENGTH]


def _files(root: Path, dockerfile: str) -> Iterator[Path]:
    for source in (f"images/{dockerfile}", *SOURCES[dockerfile]):
        path = root / source
        if not path.exists():
            message = f"{path}: not there; build images from a clone of the project"
            raise UltrascaleError(message)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not _is_left_out(file.relative_to(root)):
                yield file


def _is_left_out(path: Path) -> bool:
    return any(fnmatch(part, pattern) for part in path.parts for pattern in LEFT_OUT)
