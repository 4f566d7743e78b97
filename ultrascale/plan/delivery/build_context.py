"""The build context of container images: the files that they are built from."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from ultrascale.catalog import Architecture
from ultrascale.own_images import OwnImage, ends_without_root, files_of, packed
from ultrascale.plan.model import ImageBuildPlan
from ultrascale.resources import files, resource

# The part of the core that the backend imports. A change elsewhere, such as in the command line,
# leaves its image and so the running backend as they are.
_CORE = (
    "ultrascale/__init__.py",
    "ultrascale/account",
    "ultrascale/catalog",
    "ultrascale/cluster_api",
    "ultrascale/config",
    "ultrascale/core",
    "ultrascale/documents.py",
    "ultrascale/errors.py",
    "ultrascale/frozen.py",
    "ultrascale/jobs",
    "ultrascale/lambdas",
    "ultrascale/own_images.py",
    "ultrascale/parts",
    "ultrascale/plan",
    "ultrascale/release.py",
    "ultrascale/resources.py",
    "ultrascale/yaml_reader.py",
    "ultrascale/yaml_writer.py",
)
# A project without its tests and its README, which no image has.
_BERT = ("examples/bert/pyproject.toml", "examples/bert/ultrascale_bert")
_TRAINING = ("training/pyproject.toml", "training/ultrascale_training")
_BACKEND = ("backend/pyproject.toml", "backend/ultrascale_backend")
# `.dockerignore` names the same, for builds in a checkout.
SENT = (*_BACKEND, *_BERT, "images", *_TRAINING, *_CORE)

_SCRIPT = "images/build.sh"
_WHEEL = "images/wheel-requirements.txt"
_PROGRAMS = (_WHEEL, *_BERT, *_TRAINING)
# The sources that each Dockerfile copies beside its own folder. The backend names images by their
# tags, and has the sources behind these hashes.
SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "neuron": _PROGRAMS,
        "nvidia": _PROGRAMS,
        "posttrain": _PROGRAMS,
        "cpu": _PROGRAMS,
        "tensorboard": (),
        "backend": (_WHEEL, *SENT),
    }
)
_TAG_LENGTH = 12
_OWN = "own"
"""Folder in the build's sources for folders of the user's own; `images/build.sh` knows it."""

Locate = Callable[[str], Path]
"""Returns the path of a file or folder of the product by its path in the repository."""


def content_tag(dockerfile: str, architecture: Architecture, *, locate: Locate = resource) -> str:
    """Return the tag of the image of ``images/<dockerfile>``: a hash of its sources.

    The same sources have the same tag on every machine, in a checkout and in an installed package,
    and others have another: a repository takes each tag once.

    Args:
        dockerfile: Name of a folder of ``images``.
        architecture: Architecture of the image's nodes.
        locate: Finds the product's files.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    digest = sha256(f"{architecture}\0".encode())
    for source in sources_of(dockerfile):
        for path, file in _files(source, locate):
            digest.update(packed(path, file))
    return digest.hexdigest()[:_TAG_LENGTH]


def own_tag(image: OwnImage, architecture: Architecture) -> str:
    """Return the tag of an image of the user's own: a hash of its folder."""
    return sha256(f"{architecture}\0{image.digest}".encode()).hexdigest()[:_TAG_LENGTH]


def is_non_root(dockerfile: str) -> bool:
    """Return whether the image of ``images/<dockerfile>`` runs as a numbered user besides root.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    return ends_without_root(resource(f"images/{dockerfile}/Dockerfile").read_text("utf-8"))


def build_context(dockerfiles: Iterable[str]) -> Mapping[str, Path]:
    """Return the files of the product that builds get, by their paths in the folder of the build.

    Args:
        dockerfiles: Names of the folders of `images` that have a build.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    wanted = {_SCRIPT, *(source for name in dockerfiles for source in sources_of(name))}
    context = (file for source in sorted(wanted) for file in _files(source, resource))
    return MappingProxyType(dict(context))


def own_context(builds: Iterable[ImageBuildPlan]) -> Mapping[str, Path]:
    """Return the user's own files for builds, by their paths in the build's folder.

    The pods of the backend have none of them.
    """
    return {
        f"{own_folder(build.dockerfile)}/{path}": file
        for build in builds
        if build.own is not None and build.own.location is not None
        for path, file in files_of(build.own.location).items()
    }


def own_folder(dockerfile: str) -> str:
    """Return the folder in the build's sources of ``./FOLDER`` beside the cluster file."""
    return f"{_OWN}/{dockerfile.removeprefix('./')}"


def sources_of(dockerfile: str) -> tuple[str, ...]:
    """Return the files and folders that the image of ``images/<dockerfile>`` is built from."""
    return (f"images/{dockerfile}", *SOURCES[dockerfile])


def _files(source: str, locate: Locate) -> Iterator[tuple[str, Path]]:
    start = locate(source)
    length = len(start.as_posix())
    paths = ((source + file.as_posix()[length:], file) for file in files(start))
    yield from sorted(paths, key=lambda item: item[0].split("/"))
