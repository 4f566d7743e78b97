"""What a teardown has done so far, in a file that the user sees: one JSON object on each line.

It decides nothing. What there is, is looked up in the account whenever a run begins; the file tells
what was asked for when, and by which run.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, cast

from ultrascale.errors import UltrascaleError
from ultrascale.teardown.model import Teardown, Thing


class Clock(Protocol):
    """What tells the time, and lets it pass."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The file.

    Attributes:
        path: Where it is.
        clock: What its lines are dated by.
        past: What earlier runs have written.
        whole: Bytes of it that are whole lines: a run that was killed may have left half of one.
    """

    path: Path
    clock: Clock
    past: Sequence[Mapping[str, Any]]
    whole: int

    @classmethod
    def opened(cls, path: Path, clock: Clock) -> "Journal":
        """Return the journal at ``path``, whether it is there yet or not.

        Raises:
            UltrascaleError: There is something else.
        """
        try:
            text = path.read_text() if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise UltrascaleError(f"{path}: {error}; name another file by --journal") from error
        whole = text[: text.rfind("\n") + 1]
        past = [_read(path, line) for line in whole.splitlines()]
        return cls(path=path, clock=clock, past=past, whole=len(whole.encode()))

    def begin(self, teardown: Teardown) -> None:
        """Write down what the user has agreed to.

        Raises:
            UltrascaleError: The file is another cluster's, or cannot be written.
        """
        about = {
            "cluster": teardown.cluster,
            "region": teardown.region,
            "account": teardown.account,
        }
        for each in self.past:
            if "run" in each and each["run"] != about:
                raise UltrascaleError(
                    f"{self.path}: it is the journal of {each['run']}; name another file by "
                    "--journal"
                )
        try:
            if self.path.exists():
                os.truncate(self.path, self.whole)
        except OSError as error:
            raise self._unwritten(error) from error
        self.write(run=about)
        for step in teardown.steps:
            self.write(step=step.name, agreed=[str(each) for each in step.things])

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
        """When the last run ended that did not finish; else empty."""
        if not self.past or "end" in self.past[-1]:
            return ""
        return str(self.past[-1].get("at", "an unknown time"))


def _read(path: Path, line: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(line)
    except ValueError as error:
        raise UltrascaleError(
            f"{path}: no journal of a teardown: {error}; name another file by --journal"
        ) from error
    if not isinstance(found, dict):
        raise UltrascaleError(
            f"{path}: no journal of a teardown, got {line!r}; name another file by --journal"
        )
    return cast("Mapping[str, Any]", found)
