"""The user's own folders beside a cluster file that images are built from.

`images.builds` names each as ``./FOLDER``. A build gets only the files of its folder.
"""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from stat import S_IXUSR
from types import MappingProxyType

from ultrascale.documents import mapping, read_json, text
from ultrascale.frozen import Frozen
from ultrascale.resources import LEFT_BY_TOOLS, files

RECORD = "images.lock"
"""Name of a record in place of the folders: the backend's pods have only the cluster file."""
DOCKERFILE = "Dockerfile"

# A clone within the folder would differ on each machine.
_LEFT_OUT = (*LEFT_BY_TOOLS, ".git")
_STAGE = re.compile(r"\s*FROM\s", re.IGNORECASE)
_USER = re.compile(r"\s*USER\s+(\d+)(:\d+)?\s*$|\s*USER\s", re.IGNORECASE)


class OwnImage(Frozen):
    """A folder that an image is built from."""

    location: Path | None  # The folder; None where only its record is at hand
    digest: str  # SHA-256 of its files
    non_root: bool  # Whether its Dockerfile ends with a numbered user other than root


OwnImages = Mapping[str, OwnImage]
"""Folders by their paths in the spelling of `images.builds`."""
NO_IMAGES: OwnImages = MappingProxyType({})


def read_own_image(location: Path) -> OwnImage:
    """Return the image of the folder at ``location``.

    Raises:
        OSError: One of its files cannot be read.
        UnicodeError: Its Dockerfile is no text.
    """
    digest = sha256()
    for path, file in files_of(location).items():
        digest.update(packed(path, file))
    dockerfile = (location / DOCKERFILE).read_text(encoding="utf-8")
    return OwnImage(
        location=location, digest=digest.hexdigest(), non_root=ends_without_root(dockerfile)
    )


def files_of(location: Path) -> Mapping[str, Path]:
    """Return the files that the build of a folder gets, by their paths in it."""
    context = {file.relative_to(location).as_posix(): file for file in files(location, _LEFT_OUT)}
    return dict(sorted(context.items()))


def packed(path: str, file: Path) -> bytes:
    """Return the bytes of a file for a hash of sources: path, mode and content."""
    content = file.read_bytes()
    # No file of the product is executable, and the backend cannot tell whose a file is.
    mark = "executable\0" if file.stat().st_mode & S_IXUSR else ""
    return f"{path}\0{mark}{len(content)}\0".encode() + content


def ends_without_root(dockerfile: str) -> bool:
    """Return whether the image of a Dockerfile runs as a numbered user other than root.

    The kubelet cannot judge a user's name: it refuses such an image where root is forbidden.

    Source: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
    """
    lines = dockerfile.splitlines()
    # The user of one build stage does not hold for the next stage.
    stages = [number for number, line in enumerate(lines) if _STAGE.match(line)]
    last = lines[stages[-1] :] if stages else lines
    users = [match[1] for line in last if (match := _USER.match(line))]
    return bool(users) and bool((users[-1] or "0").strip("0"))


def read_record(folder: Path) -> OwnImages:
    """Return the images of the record in ``folder``; none without a record."""
    path = folder / RECORD
    document: object = read_json(path) if path.is_file() else {}
    return {
        stated: OwnImage(
            location=None,
            digest=text(entry, "digest"),
            non_root=mapping(entry).get("non_root") is True,
        )
        for stated, entry in mapping(document).items()
    }


def record_text(images: Iterable[tuple[str, OwnImage]]) -> str:
    """Return the content of a record."""
    document = {
        stated: {"digest": image.digest, "non_root": image.non_root} for stated, image in images
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
