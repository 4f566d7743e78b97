"""Takes files of the product out into a user's folder, from where they are used from then on."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ultrascale import release
from ultrascale.config import near
from ultrascale.ejected import EJECTABLE, RECORD, Entry, hashes_of, read_record
from ultrascale.errors import QuestionError, UltrascaleError
from ultrascale.new_files import write_new_files
from ultrascale.resources import files, resource


def eject(names: Sequence[str], folder: Path) -> tuple[Path, ...]:
    """Copy files of the product into ``folder`` and record them there.

    Args:
        names: Keys of `EJECTABLE`.
        folder: Folder of the cluster files that are to use them.

    Returns:
        The copies: a folder or a file for each name.

    Raises:
        QuestionError: A name is unknown; one line for each.
        UltrascaleError: A copy exists already, or the folder cannot be written to. Nothing of
            all names is copied then.
    """
    wanted = _known(names)
    record = read_record(folder)
    if taken := [name for name in wanted if name in record]:
        raise UltrascaleError(
            f"{folder / RECORD}: {', '.join(taken)}: ejected already, nothing was written; choose "
            "another folder with --to to get a fresh copy"
        )
    contents = {
        path: content
        for name in wanted
        for path, content in _contents(EJECTABLE[name].source, EJECTABLE[name].copy).items()
    }
    record |= {name: _entry(name) for name in wanted}
    write_new_files(folder, contents, replaced={RECORD: _dumped(record)})
    return tuple(folder / EJECTABLE[name].copy for name in wanted)


def review(names: Sequence[str], folder: Path) -> None:
    """Record that the copies of ``names`` hold what is wanted of this version's own files.

    Raises:
        QuestionError: A name is unknown; one line for each.
        UltrascaleError: One was never ejected into ``folder``, or the record cannot be written.
    """
    wanted = _known(names)
    record = read_record(folder)
    if absent := [name for name in wanted if name not in record]:
        raise UltrascaleError(
            f"{folder / RECORD}: {', '.join(absent)}: not ejected into this folder; name the "
            "folder of its copy by --to"
        )
    record |= {name: _entry(name) for name in wanted}
    write_new_files(folder, {}, replaced={RECORD: _dumped(record)})


def _known(names: Sequence[str]) -> tuple[str, ...]:
    """Return ``names`` as `EJECTABLE` spells them, each once."""
    spelled = dict.fromkeys(name.removeprefix("./").rstrip("/") for name in names)
    wrong = [name for name in spelled if name not in EJECTABLE]
    if wrong:
        raise QuestionError(
            f"NAME: nothing that can be ejected, got {name!r}; {_near(name, EJECTABLE)}"
            for name in wrong
        )
    return tuple(spelled)


def _near(name: str, known: Collection[str]) -> str:
    within = [each for each in known if name and (each.startswith(name) or name.startswith(each))]
    return f"write one of {', '.join(within)}" if within else near(name, known)


def _contents(source: str, copy: str) -> dict[str, bytes]:
    start = resource(source)
    return {
        copy if file == start else f"{copy}/{file.relative_to(start).as_posix()}": _content(file)
        for file in files(start)
    }


def _content(file: Path) -> bytes:
    """Return the content of a file; the schema that its modeline names lies in our repository."""
    content = file.read_bytes()
    return (
        content.partition(b"\n")[2] if content.startswith(b"# yaml-language-server:") else content
    )


def _entry(name: str) -> Entry:
    hashes = hashes_of(resource(EJECTABLE[name].source))
    return Entry(version=release.VERSION, files=hashes)


def _dumped(record: Mapping[str, Entry]) -> bytes:
    document = {
        name: {"version": entry.version, "files": dict(sorted(entry.files.items()))}
        for name, entry in sorted(record.items())
    }
    return (json.dumps(document, indent=2) + "\n").encode()
