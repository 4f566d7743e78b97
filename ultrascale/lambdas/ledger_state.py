"""Open intervals of the ledger: the state that the function of the fleet metrics keeps in S3."""

import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from .ledger import DAY, VERSION, Row, day_of, file_key

# A measurement holds until the next one; where that is missing, for the usual time alone.
_LONGEST = 1.5
_GAP = '{"kind":"gap"}'


@dataclass(frozen=True, slots=True)
class State:
    """The ledger at the last measurement."""

    at: int  # Time of the measurement
    ended: Mapping[str, list[str]]  # Rows that it ended, by day
    # Start and text of each open interval, by the node's name, or "reservation/" and its id
    running: Mapping[str, tuple[int, str]]

    def text(self) -> bytes:
        """Return the state as an object of S3."""
        head = {"v": VERSION, "kind": "state", "at": self.at}
        lines = [json.dumps({**head, "ended": {day: len(own) for day, own in self.ended.items()}})]
        lines += [row for rows in self.ended.values() for row in rows]
        lines += [f"{start} {key} {value}" for key, (start, value) in self.running.items()]
        return gzip.compress("\n".join(lines).encode(), 6, mtime=0)

    @classmethod
    def parse(cls, text: bytes) -> "State":
        """Return the state in an object of S3.

        Raises:
            ValueError: A newer function wrote it.
        """
        lines = iter(gzip.decompress(text).decode().split("\n"))
        head = json.loads(next(lines))
        if head["v"] != VERSION:
            raise ValueError(f"a ledger of format {head['v']}: this function writes {VERSION}")
        ended = {day: [next(lines) for _ in range(n)] for day, n in head["ended"].items()}
        running: dict[str, tuple[int, str]] = {}
        for line in lines:
            start, key, value = line.split(" ", 2)
            running[key] = (int(start), value)
        return cls(head["at"], ended, running)


def advance(state: State | None, values: Mapping[str, str], now: int, every: int) -> State | None:
    """Return the state after a measurement; None if a later one is there.

    Args:
        state: The state before; None without any: the day up to ``now`` is not measured.
        values: Rows without times of what is there, by their keys in the state.
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
    for key, (start, value) in state.running.items():
        goes_on = held == now and values.get(key) == value
        for day, row in _rows(value, start, midnight if goes_on else held):
            ended.setdefault(day, []).append(row)
        if goes_on:
            running[key] = (max(start, midnight), value)
    for day, row in _rows(_GAP, held, now):
        ended.setdefault(day, []).append(row)
    for key, value in values.items():
        if key not in running:
            running[key] = (now, value)
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
