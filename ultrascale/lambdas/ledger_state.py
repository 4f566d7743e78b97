"""Open intervals of the ledger: the state that the function of the fleet metrics keeps in S3."""

import gzip
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO

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

    def text(self) -> bytes:
        """Return the state as an object of S3."""
        return encode(self._lines())

    def _lines(self) -> Iterator[str]:
        head = {"v": VERSION, "kind": "state", "at": self.at}
        yield json.dumps({**head, "ended": {day: len(own) for day, own in self.ended.items()}})
        for rows in self.ended.values():
            yield from rows
        for key, (start, value) in self.running.items():
            yield f"{start} {key} {value}"

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
        return cls(head["at"], ended, running)


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
    return State(now, ended, running)


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
