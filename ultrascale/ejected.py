"""Files of the product that a user may keep a copy of, and the copies beside a cluster file.

`ultrascale eject` copies and records them in `RECORD`. The record is what makes a copy count: a
folder `images` of the user's own, for something else, changes nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ultrascale.documents import mapping, text
from ultrascale.errors import ConfigError
from ultrascale.resources import LEFT_BY_TOOLS, LEFT_OUT, files, resource

_RESTORE = "restore it from your repository, or delete it and eject again"
RECORD = "ejected.json"
"""Name of the record, beside the copies and the cluster files that use them."""


Use = Literal["image", "rules", "path"]
"""The build of images; `backend.rules` of a file that states none; or whoever names its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ejectable:
    """A file or folder of the product that may be copied and changed.

    Attributes:
        source: Where the product has it, as a path in its repository.
        copy: Where the copy lies, beside the cluster file.
        purpose: What it is, in a few words.
        use: What takes the copy instead of the product's own.
    """

    source: str
    copy: str
    purpose: str
    use: Use


def _image(name: str, purpose: str) -> Ejectable:
    path = f"images/{name}"
    return Ejectable(source=path, copy=path, purpose=purpose, use="image")


RULES = "backend/rules"
EJECTABLE: Mapping[str, Ejectable] = MappingProxyType(
    {
        "images/neuron": _image("neuron", "Dockerfile of training on Trainium and Inferentia"),
        "images/nvidia": _image("nvidia", "Dockerfile of training on NVIDIA GPUs"),
        "images/cpu": _image("cpu", "Dockerfile of training without accelerators"),
        "images/tensorboard": _image("tensorboard", "Dockerfile of TensorBoard"),
        "images/backend": _image("backend", "Dockerfile of the backend"),
        "training": Ejectable(
            source="training",
            copy="training",
            purpose="training program in the images",
            use="image",
        ),
        RULES: Ejectable(
            source="backend/ultrascale_backend/default_rules.yaml",
            copy="backend/rules.yaml",
            purpose="rules of the backend, for files without backend.rules",
            use="rules",
        ),
        "charts/training-job": Ejectable(
            source="charts/training-job",
            copy="charts/training-job",
            purpose="Helm chart of one job; name its folder to `helm install`",
            use="path",
        ),
        "jobs": Ejectable(
            source="jobs",
            copy="jobs",
            purpose="example jobs; name a file to `ultrascale submit`",
            use="path",
        ),
        "lib": Ejectable(
            source="lib",
            copy="lib",
            purpose="TorchX components; name a file to `torchx run`",
            use="path",
        ),
    }
)
"""Files that can be ejected, by their name on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ejected:
    """A copy of one of `EJECTABLE` beside a cluster file.

    Attributes:
        name: Its name, such as ``images/nvidia``.
        source: Where the product has it, as a path in its repository.
        location: The copy.
        version: Version of the product that it is of.
        changed: Files of the product's own that have changed since, by their paths within it.
        use: What takes the copy instead of the product's own.
    """

    name: str
    source: str
    location: Path
    version: str
    changed: tuple[str, ...]
    use: Use


def read_ejected(folder: Path | None) -> tuple[Ejected, ...]:
    """Return the copies that are recorded in ``folder``.

    Args:
        folder: Folder of a cluster file; None for a file that is at hand as text.

    Raises:
        ConfigError: The record cannot be read, or names what is not there; one line for each.
    """
    if folder is None or not (folder / RECORD).is_file():
        return ()
    entries = read_record(folder)
    if wrong := [*_mistakes(folder, entries)]:
        raise ConfigError(wrong)
    return tuple(
        _ejected(folder, name, entries[name])
        for name, found in EJECTABLE.items()
        if name in entries and (folder / found.copy).exists()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the record.

    Attributes:
        version: Version of the product that the copy is of.
        files: SHA-256 of each file of the product's own then, by its path in the copy.
    """

    version: str
    files: Mapping[str, str]


def read_record(folder: Path) -> dict[str, Entry]:
    """Return the entries of the record in ``folder``, by name; none without a record.

    Raises:
        ConfigError: It cannot be read.
    """
    path = folder / RECORD
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "no JSON"
        raise ConfigError([f"{path}: cannot be read: {reason}; {_RESTORE}"]) from None
    if not mapping(document) and document != {}:
        raise ConfigError([f"{path}: not a record of ultrascale; {_RESTORE}"])
    return {
        name: Entry(
            version=text(document, name, "version"),
            files={key: text(value) for key, value in mapping(document, name, "files").items()},
        )
        for name in mapping(document)
    }


def hashes_of(location: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, or of the one file, by its path in it."""
    return {
        _path_in(location, file): sha256(file.read_bytes()).hexdigest() for file in files(location)
    }


def build_files(source: str, location: Path) -> Iterator[Path]:
    """Yield the files that a build gets of a file or folder of the product, or of its copy.

    Beside a Dockerfile a user's folder `dist` is a source; in a Python package a build left it.

    Args:
        source: Where the product has it, as a path in its repository.
        location: The file or folder, or its copy.
    """
    is_image = source.partition("/")[0] == "images"
    return files(location, LEFT_BY_TOOLS if is_image else LEFT_OUT)


def ejected_warnings(ejected: Sequence[Ejected]) -> Iterator[str]:
    """Yield each copy whose original has changed since, a sentence each."""
    for each in ejected:
        if each.changed:
            yield (
                f"{each.name} was ejected from ultrascale {each.version}, and ultrascale has "
                f"changed {_listed(each.changed)} since; compare "
                f"`diff -r {resource(each.source)} {each.location}`, take over what you need, then "
                f"run `ultrascale eject {each.name} --reviewed`"
            )


def ejected_notes(ejected: Sequence[Ejected]) -> Iterator[str]:
    """Yield each copy that is used instead of the product's own, a sentence each."""
    for each in ejected:
        if each.use != "path":
            yield f"{each.name} is your copy in {each.location}, of ultrascale {each.version}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _mistakes(folder: Path, entries: Mapping[str, Entry]) -> Iterator[str]:
    record = folder / RECORD
    for name in entries:
        if name not in EJECTABLE:
            near = get_close_matches(name, EJECTABLE, n=1)
            todo = f"did you mean {near[0]}?" if near else "remove its entry, or upgrade ultrascale"
            yield f"{record}: {name}: nothing that this version of ultrascale can eject; {todo}"
            continue
        found = EJECTABLE[name]
        copy = folder / found.copy
        if found.use == "path":
            # Nothing here reads it: whoever names its path meets what is wrong with it.
            continue
        if not copy.exists():
            todo = f"restore it, or remove the entry {name!r} to use the product's own again"
            yield f"{record}: {name}: {copy} is missing; {todo}"
        elif found.source.startswith("images/") and not (copy / "Dockerfile").is_file():
            todo = f"restore it, or remove {copy} and the entry {name!r}"
            yield f"{record}: {name}: {copy / 'Dockerfile'} is missing; {todo}"
        else:
            for path in _unreadable(found.source, copy):
                todo = "replace it by what it stands for: a build gets regular files alone"
                yield f"{record}: {name}: {path} is no file that can be read; {todo}"


def _unreadable(source: str, copy: Path) -> Iterator[Path]:
    """Yield what lies in a copy and would be missing in the build: linked folders, sockets."""
    for folder, folders, _ in os.walk(copy):
        yield from (path for name in folders if (path := Path(folder, name)).is_symlink())
    for file in build_files(source, copy):
        if not file.is_file() or not os.access(file, os.R_OK):
            yield file


def _ejected(folder: Path, name: str, entry: Entry) -> Ejected:
    found = EJECTABLE[name]
    now = hashes_of(resource(found.source))
    changed = {path for path in {*now, *entry.files} if now.get(path) != entry.files.get(path)}
    return Ejected(
        name=name,
        source=found.source,
        location=folder / found.copy,
        version=entry.version,
        changed=tuple(sorted(changed)),
        use=found.use,
    )


def _path_in(location: Path, file: Path) -> str:
    return location.name if file == location else file.relative_to(location).as_posix()
