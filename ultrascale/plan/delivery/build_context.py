"""The build context of container images: the files that they are built from."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from stat import S_IXUSR
from types import MappingProxyType

from ultrascale.catalog import Architecture
from ultrascale.ejected import Ejected, build_files
from ultrascale.resources import resource

# The part of the core that the backend imports. Whatever else changes, such as the command line,
# leaves its image and so the running backend as they are.
_CORE = (
    "ultrascale/__init__.py",
    "ultrascale/catalog",
    "ultrascale/cluster_api",
    "ultrascale/config",
    "ultrascale/documents.py",
    "ultrascale/ejected.py",
    "ultrascale/errors.py",
    "ultrascale/fabric",
    "ultrascale/jobs",
    "ultrascale/mirror_lock.py",
    "ultrascale/plan",
    "ultrascale/release.py",
    "ultrascale/resources.py",
    "ultrascale/yaml_reader.py",
    "ultrascale/yaml_writer.py",
)
# `.dockerignore` names the same, for builds in a checkout.
SENT = ("backend", "images", "training", *_CORE)

_SCRIPT = "images/build.sh"
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
_STAGE = re.compile(r"\s*FROM\s", re.IGNORECASE)
_USER = re.compile(r"\s*USER\s+(\d+)(:\d+)?\s*$|\s*USER\s", re.IGNORECASE)

Locate = Callable[[str], Path]
"""Returns where a file or folder of the product lies, by its path in the repository."""


def content_tag(
    dockerfile: str,
    architecture: Architecture,
    *,
    ejected: Sequence[Ejected] = (),
    locate: Locate = resource,
) -> str:
    """Return the tag of the image of ``images/<dockerfile>``: a hash of its sources.

    The same sources have the same tag on every machine, in a checkout and in an installed package,
    and others have another: a repository takes each tag once.

    Args:
        dockerfile: Name of a folder of ``images``.
        architecture: Of the nodes that the image is for.
        ejected: The user's own copies, which are its sources instead of the product's.
        locate: Finds the product's files.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    digest = sha256(f"{architecture}\0".encode())
    for source in sources_of(dockerfile):
        for path, file in _files(source, ejected, locate):
            content = file.read_bytes()
            # None of our own is executable, and the backend cannot tell whose a file is.
            mark = "executable\0" if file.stat().st_mode & S_IXUSR else ""
            digest.update(f"{path}\0{mark}{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:_TAG_LENGTH]


def is_non_root(
    dockerfile: str, *, ejected: Sequence[Ejected] = (), locate: Locate = resource
) -> bool:
    """Return whether the image of ``images/<dockerfile>`` runs as a numbered user besides root.

    A name tells the kubelet nothing: it refuses to start such an image where root is forbidden.

    Args:
        dockerfile: Name of a folder of ``images``.
        ejected: The user's own copies, which are its sources instead of the product's.
        locate: Finds the product's files.

    Source: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    folder = f"images/{dockerfile}"
    file = dict(_files(folder, ejected, locate)).get(f"{folder}/Dockerfile")
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None else []
    # The user of one stage of a build is none of the next one's.
    stages = [number for number, line in enumerate(lines) if _STAGE.match(line)]
    last = lines[stages[-1] :] if stages else lines
    users = [found[1] for line in last if (found := _USER.match(line))]
    return bool(users) and bool((users[-1] or "0").strip("0"))


def build_context(
    dockerfiles: Iterable[str], ejected: Sequence[Ejected] = ()
) -> Mapping[str, Path]:
    """Return the files that images are built from, by their paths in the folder of the build.

    Args:
        dockerfiles: Names of the folders of `images` that images are built from.
        ejected: The user's own copies, which stand in the place of the product's files.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    wanted = {_SCRIPT, *(source for name in dockerfiles for source in sources_of(name))}
    found = (file for source in sorted(wanted) for file in _files(source, ejected, resource))
    return MappingProxyType(dict(found))


def sources_of(dockerfile: str) -> tuple[str, ...]:
    """Return the files and folders that the image of ``images/<dockerfile>`` is built from."""
    return (f"images/{dockerfile}", *SOURCES[dockerfile])


def _files(source: str, ejected: Sequence[Ejected], locate: Locate) -> Iterator[tuple[str, Path]]:
    """Yield the files of a file or folder of the product, or the user's in their place."""
    own = _within(source, locate(source))
    for each in ejected:
        if each.use == "image" and PurePosixPath(each.source).is_relative_to(source):
            kept = {path: file for path, file in own.items() if not _is_in(path, each.source)}
            own = kept | _within(each.source, each.location)
    yield from sorted(own.items(), key=lambda item: item[0].split("/"))


def _within(source: str, folder: Path) -> dict[str, Path]:
    start = len(folder.as_posix())
    return {source + file.as_posix()[start:]: file for file in build_files(source, folder)}


def _is_in(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)
