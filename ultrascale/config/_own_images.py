"""Folders beside a cluster file that images are built from, and refusal of an old record."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ultrascale.config._document import Document, is_mapping
from ultrascale.config._document import read as read_yaml
from ultrascale.config._errors import Mistake
from ultrascale.config.images import is_own_folder
from ultrascale.documents import mapping, read_json
from ultrascale.errors import ConfigError, Diagnostic
from ultrascale.own_images import DOCKERFILE, OwnImage, OwnImages, read_own_image, read_record

_COPY = "copy what it leads to: a build gets the files of its folder alone"


def own_folders(path: Path) -> tuple[str, ...]:
    """Return the folders beside the cluster file at ``path`` that images are built from.

    Raises:
        ConfigError: The file cannot be read, or is no YAML mapping.
    """
    return tuple(dict.fromkeys(_own_builds(read_yaml(path)).values()))


def read_own_images(document: Document, folder: Path) -> tuple[OwnImages, tuple[Mistake, ...]]:
    """Return the images of ``document``'s own folders, and the mistakes in those folders.

    Args:
        document: The cluster file.
        folder: Folder in which it lies.
    """
    images: dict[str, OwnImage] = {}
    mistakes: list[Mistake] = []
    for repository, stated in _own_builds(document).items():
        location = folder / stated
        if not location.exists() and (recorded := read_record(folder).get(stated)) is not None:
            images[stated] = recorded
            continue
        at = ("images", "builds", repository)
        of_folder = [Mistake(at, wrong, todo) for wrong, todo in _mistakes(folder, location)]
        mistakes += of_folder
        if not of_folder:
            try:
                images[stated] = read_own_image(location)
            except (OSError, UnicodeError) as error:
                wrong = f"a folder that cannot be read: {error}"
                mistakes.append(Mistake(at, wrong, "mend it"))
    return images, tuple(mistakes)


def _own_builds(document: Document) -> Mapping[str, str]:
    """Return the folders of `images.builds` by repository, as far as their form is right."""
    images = document.value.get("images")
    builds = images.get("builds") if is_mapping(images) else None
    if not is_mapping(builds):
        return {}
    return {
        str(name): build
        for name, build in builds.items()
        if isinstance(build, str) and is_own_folder(build)
    }


def _mistakes(folder: Path, location: Path) -> Iterator[tuple[str, str]]:
    if not location.is_dir():
        yield f"no folder {location}", f"make it, with a {DOCKERFILE} in it, or correct the path"
        return
    if not location.resolve().is_relative_to(folder.resolve()):
        yield f"{location} is a link that leaves the folder of the cluster file", _COPY
        return
    if not (location / DOCKERFILE).is_file():
        yield f"no {DOCKERFILE} in {location}", f"add {location / DOCKERFILE}"
    for outer, folders, names in os.walk(location):
        for path in (Path(outer, name) for name in sorted([*folders, *names])):
            if path.is_symlink() and not path.resolve().is_relative_to(location.resolve()):
                yield f"{path} is a link that leaves the folder", _COPY
            elif path.is_symlink() and path.is_dir():
                yield f"{path} is a link to a folder", _COPY
            elif not path.is_dir() and not (path.is_file() and os.access(path, os.R_OK)):
                yield f"{path} is no file that can be read", "take it out of the folder"


# --- Refusal of the record of copies that an earlier version left beside cluster files ------------


RECORD = "ejected.json"
"""Name of the record, beside the copies and the cluster files that used them."""

_DELETE = f"then delete {RECORD}"
_TODO = {
    "backend/rules": "write what backend/rules.yaml holds as backend.rules",
    "training": "copy it into a folder of images.builds whose Dockerfile installs it",
}
_BY_PATH = "go on to name it by its path"


def refuse_ejected(folder: Path) -> None:
    """Refuse a cluster file beside a record of copies, which this version no longer reads.

    Raises:
        ConfigError: There is a record; one line for each copy.
    """
    record = folder / RECORD
    if record.exists():
        raise ConfigError(_lines(record))


def _lines(record: Path) -> Iterator[Diagnostic]:
    wrong = "copies of the product's files are not read any more"
    for name in _names(record) or ("",):
        todo = f"{_todo(name)}, {_DELETE}" if name else f"delete {RECORD}"
        yield Diagnostic(message=wrong, file=str(record), key=name, fix=todo, code="copy_is_unread")


def _names(record: Path) -> tuple[str, ...]:
    try:
        document: object = read_json(record)
    except (OSError, ValueError):
        return ()
    return tuple(mapping(document))


def _todo(name: str) -> str:
    if name.startswith("images/"):
        return (
            f"state images.builds.REPOSITORY: ./{name}, and let its Dockerfile copy from that "
            "folder alone, as docs/images.md shows"
        )
    return _TODO.get(name, _BY_PATH)
