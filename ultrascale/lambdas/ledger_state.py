"""Open intervals of the ledger: the state that the function of the fleet metrics keeps in S3."""

import gzip
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

from .forecast import HOUR, HOURS, Hour, span_of
from .idle_jobs import Stretch
from .ledger import DAY, VERSION, Row, day_of, encode, file_key

# A measurement holds until the next one; where that is missing, for the usual time alone.
_LONGEST = 1.5
_GAP = '{"kind":"gap"}'


@dataclass(frozen=True, slots=True)
class State:
    """The ledger at the last measurement."""

    at: int  # Time of the measurement
    ended: dict[str, list[str]]  # Rows that it ended, by day
    # Start and text of each open interval, by the node's name, or "reservation/" and its id
    running: dict[str, tuple[int, str]]
    # Accelerators in use of the reservations of each pool: now, and by hour of the last weeks
    used: Mapping[str, float] = field(default_factory=dict[str, float])
    use: Mapping[str, Sequence[Hour]] = field(default_factory=dict[str, Sequence[Hour]])
    # Times without use of jobs, by namespace and name
    idle: Mapping[str, Stretch] = field(default_factory=dict[str, Stretch])

    def rows(self, kind: str) -> list[Any]:
        """Return the open rows of reservations or of waiting jobs, without their times."""
        held, prefix = self.running.items(), f"{kind}/"
        return [json.loads(text) for key, (_, text) in held if key.startswith(prefix)]

    def text(self) -> bytes:
        """Return the state as an object of S3."""
        return encode(self._lines())

    def _lines(self) -> Iterator[str]:
        head = {"v": VERSION, "kind": "state", "at": self.at, "idle": self.idle}
        head |= {"used": self.used, "use": self.use}
        yield json.dumps({**head, "ended": {day: len(own) for day, own in self.ended.items()}})
        for rows in self.ended.values():
            yield from rows
        for key, (start, value) in self.running.items():
            yield f"{start} {key} {value}"

    def sampled(self, used: Mapping[str, float]) -> "State":
        """Return the state with the use of the pools whose reservations are paid for now."""
        now, use, counts = self.at // HOUR, {**self.use}, {**self.used}
        spans = {row["pool"]: span_of(row) for row in self.rows("reservation")}
        for pool, span in spans.items():
            if span is None or not span[0] <= self.at < span[1]:
                continue
            hours = [each for each in use.get(pool, ()) if each.hour > now - HOURS]
            last = hours.pop() if hours and hours[-1].hour == now else Hour(now, 0, 0, 0)
            count = counts[pool] = used.get(pool, 0)
            taken = last.taken + max(count - self.used.get(pool, count), 0)
            use[pool] = [*hours, Hour(now, last.samples + 1, last.used + count, taken)]
        return replace(self, used=counts, use=use)

    @classmethod
    def parse(cls, text: bytes) -> "State":
        """Return the state in an object of S3.

        Raises:
            ValueError: A newer function wrote it.
        """
        lines = (line.decode().rstrip("\n") for line in gzip.GzipFile(fileobj=BytesIO(text)))
        head = json.loads(next(lines))
        if head["v"] != VERSION:
            raise ValueError(f"a ledger of format {head['v']}: this function writes {VERSION}")
        ended = {day: [next(lines) for _ in range(n)] for day, n in head["ended"].items()}
        running: dict[str, tuple[int, str]] = {}
        for line in lines:
            start, key, value = line.split(" ", 2)
            running[key] = (int(start), value)
        use = {pool: [Hour(*hour) for hour in own] for pool, own in head.get("use", {}).items()}
        idle = {name: Stretch(*own) for name, own in head.get("idle", {}).items()}
        return cls(head["at"], ended, running, head.get("used", {}), use, idle)


def advance(
    state: State | None, values: Iterable[tuple[str, str]], now: int, every: int
) -> State | None:
    """Return the state after a measurement; None if a later one is there.

    Args:
        state: The state before, which loses its intervals: a fleet of them would fill the memory
            twice; None without any: the day up to ``now`` is not measured.
        values: Keys in the state of what is there, with its row without times.
        now: Time of the measurement.
        every: Seconds between two measurements.
    """
    midnight = now - now % DAY
    if state is None:
        state = State(midnight, {}, {})
        held = midnight
    elif now <= state.at:
        return None
    else:
        held = now if now - state.at <= _LONGEST * every else state.at + every
    ended: dict[str, list[str]] = {}
    running: dict[str, tuple[int, str]] = {}

    def end(value: str, start: int, until: int) -> None:
        for day, row in _rows(value, start, until):
            ended.setdefault(day, []).append(row)

    for key, value in values:
        start, before = state.running.pop(key, (now, value))
        if held == now and value == before:
            end(before, start, midnight)
            running[key] = (max(start, midnight), before)
        else:
            end(before, start, held)
            running[key] = (now, value)
    for start, before in state.running.values():
        end(before, start, held)
    end(_GAP, held, now)
    return State(now, ended, running, state.used, state.use)


def open_rows(state: State, files: Collection[str]) -> Iterator[Row]:
    """Yield the rows up to the last measurement that no file has.

    Args:
        state: The state.
        files: Keys of the files.
    """
    for day, rows in state.ended.items():
        if file_key(day, state.at) not in files:
            yield from map(json.loads, rows)
    for start, value in state.running.values():
        yield from (json.loads(row) for _, row in _rows(value, start, state.at))


def _rows(value: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield an interval as one row a day, with the day."""
    while start < end:
        until = min(end, start - start % DAY + DAY)
        yield day_of(start), f'{{"v":{VERSION},"from":{start},"to":{until},{value[1:]}'
        start = until
