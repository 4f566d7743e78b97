"""The journal of a teardown: a file for the user, with one JSON object on each line.

It decides nothing: each run reads the account anew. The journal says which run asked for which
deletion, and when.
"""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ultrascale.documents import Json, JsonObject
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.teardown.model import Teardown, Thing


class Clock(Protocol):
    """A clock that can wait."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Journal(Frozen):
    """The file."""

    path: Path  # Its path
    clock: Clock  # The clock that dates its lines
    past: Sequence[JsonObject]  # Lines of earlier runs
    whole: int  # Bytes of all whole lines: a run that was killed may have left half of one

    @classmethod
    def opened(cls, path: Path, clock: Clock) -> "Journal":
        """Return the journal at ``path``; a new one where there is no file.

        Raises:
            UltrascaleError: The file is no journal.
        """
        try:
            text = path.read_text() if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise UltrascaleError(f"{path}: {error}; name another file by --journal") from error
        whole = text[: text.rfind("\n") + 1]
        past = [_read(path, line) for line in whole.splitlines()]
        return cls(path=path, clock=clock, past=past, whole=len(whole.encode()))

    def begin(self, teardown: Teardown) -> None:
        """Write down the things that the user has agreed to delete.

        Raises:
            UltrascaleError: The journal is another cluster's, or cannot be written.
        """
        about = {
            "cluster": teardown.cluster,
            "region": teardown.region,
            "account": teardown.account,
        }
        for entry in self.past:
            if "run" in entry and entry["run"] != about:
                raise UltrascaleError(
                    f"{self.path}: it is the journal of {entry['run']}; name another file by "
                    "--journal"
                )
        try:
            if self.path.exists():
                os.truncate(self.path, self.whole)
        except OSError as error:
            raise self._unwritten(error) from error
        self.write(run=about)
        for step in teardown.steps:
            self.write(step=step.name, agreed=[str(thing) for thing in step.things])

    def asked(self, thing: Thing) -> None:
        """Write down that a deletion is about to be asked for."""
        self.write(asks=str(thing))

    def gone(self, thing: Thing) -> None:
        """Write down that something is gone."""
        self.write(gone=str(thing))

    def write(self, **told: object) -> None:
        """Append a line, and let it reach the disk before anything else is done.

        Raises:
            UltrascaleError: It cannot be written.
        """
        line = json.dumps({"at": self.clock.now().isoformat(timespec="seconds"), **told})
        try:
            with self.path.open("a") as file:
                file.write(f"{line}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> UltrascaleError:
        return UltrascaleError(f"{self.path}: {error}; name another file by --journal")

    @property
    def unfinished(self) -> str:
        """Time at which the last run stopped before its end; empty where it ended."""
        if not self.past or "end" in self.past[-1]:
            return ""
        return str(self.past[-1].get("at", "an unknown time"))


def _read(path: Path, line: str) -> JsonObject:
    try:
        entry: Json = json.loads(line)
    except ValueError as error:
        raise UltrascaleError(
            f"{path}: no journal of a teardown: {error}; name another file by --journal"
        ) from error
    if not isinstance(entry, dict):
        raise UltrascaleError(
            f"{path}: no journal of a teardown, got {line!r}; name another file by --journal"
        )
    return entry
