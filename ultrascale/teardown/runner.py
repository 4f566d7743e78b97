"""Execution of a teardown's plan: a step begins once the step before has ended."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from ultrascale.account import is_passing
from ultrascale.documents import Json, JsonObject, parse_json
from ultrascale.errors import ClusterError, RefusedError, UltrascaleError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.teardown.model import Scope, Step, StoppedError, Target, Teardown, Thing
from ultrascale.teardown.survey import Sweep, sweep

# --- The journal of a teardown: a file for the user, with one JSON object on each line ------------
# It decides nothing: each run reads the account anew. The journal says which run asked for which
# deletion, and when.


class Clock(Protocol):
    """A clock that can wait."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Journal(Frozen):
    """The file that records the requests of a teardown."""

    path: Path  # Its path
    clock: Clock  # The clock that dates its lines
    past: Sequence[JsonObject]  # Lines of earlier runs
    whole: int  # Bytes of all whole lines: a run that was killed may have left half of one

    @classmethod
    def opened(cls, path: Path, clock: Clock) -> "Journal":
        """Return the journal at ``path``; a new journal if there is no file.

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
        """Write the things that the user has agreed to delete.

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
        """Write that a deletion is about to be requested."""
        self.write(asks=str(thing))

    def gone(self, thing: Thing) -> None:
        """Write that a thing is gone."""
        self.write(gone=str(thing))

    def write(self, **told: object) -> None:
        """Append a line, and wait until it is on the disk.

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
        """Return the time at which the last run broke off; empty if it ended by itself."""
        if not self.past or "end" in self.past[-1]:
            return ""
        return str(self.past[-1].get("at", "an unknown time"))


def _read(path: Path, line: str) -> JsonObject:
    try:
        entry: Json = parse_json(line)
    except ValueError as error:
        raise UltrascaleError(
            f"{path}: no journal of a teardown: {error}; name another file by --journal"
        ) from error
    if not isinstance(entry, dict):
        raise UltrascaleError(
            f"{path}: no journal of a teardown, got {line!r}; name another file by --journal"
        )
    return entry


# Seconds between two rounds of questions, and questions in a second: AWS does not publish the rate
# limit of CloudFormation.
_POLL = 10
_LOOKS_PER_SECOND = 4
_TOLD_EVERY = timedelta(minutes=1)
_AGAIN = "then run the command again: it goes on here"
# Statuses of the API server with which no later attempt succeeds.
_REFUSED = frozenset({400, 401, 403, 405, 422})


class Outcome(Frozen):
    """End of a teardown, with everything that is left."""

    left: Sweep  # Things that are left
    stopped: StoppedError | None = None  # Reason why a step did not end; None where all steps ended
    # Reason why the journal lacks its end; None where it was written.
    unwritten: UltrascaleError | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all steps ended and no orphan is left."""
        failed = self.stopped or self.unwritten
        return not (failed or self.left.orphans or self.left.unknown)


def destroy(
    scope: Scope,
    teardown: Teardown,
    *,
    journal: Path,
    clock: Clock,
    tell: Callable[[str], None],
) -> Outcome:
    """Take a cluster down, and return the things that are left.

    A run that was interrupted goes on where it stopped.

    Args:
        scope: The cluster.
        teardown: Plan of its teardown, to which the user has agreed.
        journal: File of all requests, which later runs continue.
        clock: The clock.
        tell: Takes a line of progress.

    Raises:
        UltrascaleError: The journal is another cluster's, or cannot be written; nothing was begun.
    """
    opened = Journal.opened(journal, clock)
    if opened.unfinished:
        tell(f"{journal}: an earlier run ended at {opened.unfinished}; this one goes on")
    tell(f"{journal}: what is asked for and what is gone")
    stopped, unwritten = None, None
    try:
        Runner(clock=clock, journal=opened, tell=tell).run(teardown)
    except StoppedError as error:
        stopped = error
    left = sweep(scope, teardown)
    try:
        opened.write(left=[str(thing.thing) for thing in left.left], unknown=[*left.unknown])
        if stopped is None:
            opened.write(end=True)
    except UltrascaleError as error:
        unwritten = error
    return Outcome(left=left, stopped=stopped, unwritten=unwritten)


@dataclass(slots=True, kw_only=True)
class Runner:
    """Executor of teardown plans."""

    clock: Clock  # The clock
    journal: Journal  # File of all requests; each is written down before it is sent
    tell: Callable[[str], None]  # Takes a line of progress

    def run(self, teardown: Teardown) -> None:
        """Carry out all steps.

        Raises:
            StoppedError: A thing stays; no later step was begun.
            UltrascaleError: The journal is another cluster's, or cannot be written; nothing was
                begun.
        """
        self.journal.begin(teardown)
        try:
            self._steps(teardown)
        except StoppedError:
            raise
        except UltrascaleError as error:
            # The disk may be full by now: the deletions that were requested go on all the same.
            raise StoppedError(
                "the teardown", why=str(error), fix=f"mend that, {_AGAIN}"
            ) from error

    def _steps(self, teardown: Teardown) -> None:
        for number, step in enumerate(teardown.steps, start=1):
            self.tell(f"step {number} of {len(teardown.steps)}: {step.title}")
            for wave in step.waves:
                _Wave(runner=self, step=step, pending=list(wave)).run()
            self.journal.write(step=step.name, done=True)


@dataclass(slots=True, kw_only=True)
class _Wave:
    """Targets that go at once. A failure does not stop the others, which cost money too."""

    runner: Runner
    step: Step
    pending: list[Target]
    _asked: set[str] = field(default_factory=set[str])
    _unanswered: dict[str, str] = field(default_factory=dict[str, str])
    _stopped: list[StoppedError] = field(default_factory=list[StoppedError])

    def run(self) -> None:
        clock = self.runner.clock
        begun = told = clock.now()
        while True:
            self.pending = [target for target in self.pending if not self._is_over(target)]
            if not self.pending:
                break
            now = clock.now()
            if now - begun >= timedelta(minutes=self.step.minutes):
                self._stopped += [self._too_long(target) for target in self.pending]
                break
            if now - told >= _TOLD_EVERY:
                told = now
                shown = ", ".join(str(target.thing) for target in self.pending[:3])
                self.runner.tell(f"  waiting for {len(self.pending)}: {shown}")
            clock.sleep(max(_POLL, len(self.pending) / _LOOKS_PER_SECOND))
        self._end()

    def _end(self) -> None:
        if not self._stopped:
            return
        for error in self._stopped:
            self.runner.journal.write(stopped=str(error))
        if len(self._stopped) == 1:
            raise self._stopped[0]
        first, *others = self._stopped
        more = "; ".join(f"{error.what}: {error.why}" for error in others)
        raise StoppedError(first.what, why=f"{first.why}. Besides, {more}", fix=first.fix)

    def _is_over(self, target: Target) -> bool:
        """Look at a target, delete it if due, and return whether nothing is left to do."""
        try:
            return self._advance(target)
        except StoppedError as error:
            self._stopped.append(error)
        except (UnansweredError, ClusterError) as error:
            if _may_pass(error):
                self._unanswered[str(target.thing)] = str(error)
                return False
            self._stopped.append(_refusal(target, error))
        return True

    def _advance(self, target: Target) -> bool:
        key = str(target.thing)
        state = target.look()
        self._unanswered.pop(key, None)
        if state == "gone":
            self.runner.journal.gone(target.thing)
            self.runner.tell(f"  gone: {key}")
            return True
        if state == "failed" and key in self._asked:
            raise target.stuck()
        if state != "going":
            if key not in self._asked:
                self.runner.journal.asked(target.thing)
                self._asked.add(key)
            target.remove()
        return False

    def _too_long(self, target: Target) -> StoppedError:
        waited = f"not gone after {self.step.minutes} minutes"
        unanswered = self._unanswered.get(str(target.thing))
        if unanswered is not None:
            return StoppedError(
                str(target.thing), why=f"{waited}: {unanswered}", fix=f"wait, {_AGAIN}"
            )
        try:
            stuck = target.stuck()
        except UltrascaleError as error:
            return StoppedError(str(target.thing), why=f"{waited}: {error}", fix=f"wait, {_AGAIN}")
        return StoppedError(stuck.what, why=f"{waited}: {stuck.why}", fix=stuck.fix)


def _may_pass(error: UnansweredError | ClusterError) -> bool:
    if isinstance(error, UnansweredError):
        return is_passing(error)
    return not isinstance(error, RefusedError) or error.status not in _REFUSED


def _refusal(target: Target, error: UnansweredError | ClusterError) -> StoppedError:
    if isinstance(error, UnansweredError) and error.denied:
        fix = f"allow {error.action}, {_AGAIN}"
    else:
        fix = f"mend that, {_AGAIN}"
    return StoppedError(str(target.thing), why=str(error), fix=fix)
