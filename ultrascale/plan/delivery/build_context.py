"""The build context of container images: the files of this project that they are built from."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from ultrascale.catalog import Architecture
from ultrascale.errors import UltrascaleError

ROOT = Path(__file__).parents[3]
# The part of the core that the backend imports. Whatever else changes, such as the command line,
# leaves its image and so the running backend as they are.
_CORE = (
    "ultrascale/__init__.py",
    "ultrascale/catalog",
    "ultrascale/cluster_api",
    "ultrascale/config",
    "ultrascale/documents.py",
    "ultrascale/errors.py",
    "ultrascale/jobs",
    "ultrascale/plan",
    "ultrascale/yaml_reader.py",
    "ultrascale/yaml_writer.py",
)
# `.dockerignore` names the same, and the same leavings of tools.
SENT = ("backend", "hatch_build.py", "images", "pyproject.toml", "training", *_CORE)
LEFT_OUT = ("__pycache__", "*.pyc", "*.egg-info", ".pytest_cache", ".ruff_cache", "build", "dist")

_WHEEL = "images/wheel-requirements.txt"
_TRAINING = (_WHEEL, "training")
# The backend names images by their tags, and so has the sources of which these are hashes.
_BACKEND = (_WHEEL, *SENT)
# The sources that each Dockerfile copies beside its own folder.
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
    """Return the tag of the image of ``images/<dockerfile>``: a hash of its sources.

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


def git_ignore_patterns() -> tuple[str, ...]:
    """Return the patterns, in Git's syntax, that leave `SENT` alone of the project's folder.

    Git takes nothing back of a folder that is ignored itself, so each parent is taken back first.
    """
    parents = sorted({str(Path(path).parent) for path in SENT} - {"."})
    inside = (pattern for parent in parents for pattern in (f"!/{parent}", f"/{parent}/*"))
    return ("/*", *inside, *(f"!/{path}" for path in SENT), *LEFT_OUT)


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
