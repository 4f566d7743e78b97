"""Cluster files of a folder, for commands without a named file."""

import re
from collections.abc import Iterator
from pathlib import Path

from ultrascale.errors import QuestionError

# A file with a mistake is a cluster file too: its reader reports the mistake.
_KEYS = tuple(re.compile(rf"^{key}[ ]*:", re.MULTILINE) for key in ("name", "region", "pools"))


def cluster_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of ``folder`` itself that have the keys of a cluster file, by name."""
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if all(key.search(text) for key in _KEYS):
            yield file


def only_cluster_file(folder: Path) -> Path:
    """Return the only cluster file of ``folder``, or of its folder ``clusters``.

    Raises:
        QuestionError: There is no cluster file, or more than one.
    """
    files = [*cluster_files(folder)] or [*cluster_files(folder / "clusters")]
    if len(files) == 1:
        return files[0]
    if not files:
        here = folder.resolve()
        raise QuestionError(
            [
                f"{here}: has no cluster file; name one by -c cluster=FILE, or begin with "
                "`ultrascale init`"
            ]
        )
    choices = ", ".join(f"-c cluster={file}" for file in files)
    raise QuestionError([f"{len(files)} cluster files are here; choose one: {choices}"])
