"""Open intervals of the ledger: the state that the function of the fleet metrics keeps in S3."""

import gzip
import json
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain

from .forecast import HOUR, HOURS, Hour, paid_times
from .idle_jobs import Stretch
from .ledger import DAY, VERSION, ReservationRow, WaitingRow, day_of, encode, file_key

# A measurement holds until the next one; where that is missing, for the usual time alone.
_LONGEST = 1.5
_GAP = '{"kind":"gap"}'


@dataclass(frozen=True, slots=True)
class State:
    """The ledger at the last measurement."""

    at: int  # Time of the measurement
    # Start and text of each open interval, by the node's name, or "reservation/" and its id
    running: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    # Files of the rows that the measurement ended, by their keys
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    ended: int = 0  # Number of these rows
    # Accelerators in use of the reservations of each pool: now, and by hour of the last weeks
    used: Mapping[str, float] = field(default_factory=dict[str, float])
    use: Mapping[str, Sequence[Hour]] = field(default_factory=dict[str, Sequence[Hour]])
    # Times without use of jobs, by namespace and name
    idle: Mapping[str, Stretch] = field(default_factory=dict[str, Stretch])

    def reservations(self) -> list[ReservationRow]:
        """Return the open rows of reservations, without their times."""
        return [json.loads(text) for text in self._texts("reservation/")]

    def waiting(self) -> list[WaitingRow]:
        """Return the open rows of waiting jobs, without their times."""
        return [json.loads(text) for text in self._texts("waiting/")]

    def _texts(self, prefix: str) -> Iterator[str]:
        return (text for key, (_, text) in self.running.items() if key.startswith(prefix))

    def text(self) -> bytes:
        """Return the state as an object of S3."""
        files = {key: b64encode(body).decode() for key, body in self.files.items()}
        head = {"v": VERSION, "kind": "state", "at": self.at, "files": files, "ended": self.ended}
        head |= {"used": self.used, "use": self.use, "idle": self.idle}
        rows = (f"{start} {key} {text}" for key, (start, text) in self.running.items())
        return encode(chain([json.dumps(head)], rows))

    def with_use(self, used: Mapping[str, float]) -> "State":
        """Return the state with the use of reservations that are paid for now, by pool."""
        now, use, counts = self.at // HOUR, {**self.use}, {**self.used}
        sums: defaultdict[str, float] = defaultdict(float)
        for row in self.reservations():
            if any(start <= self.at < end for start, end in paid_times(row)):
                sums[row["pool"]] += used.get(row["reservation"], 0)
        for pool, count in sums.items():
            hours = [row for row in use.get(pool, ()) if row.hour > now - HOURS]
            last = hours.pop() if hours and hours[-1].hour == now else Hour(now, 0, 0, 0)
            counts[pool] = count
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
        running: dict[str, tuple[int, str]] = {}
        for line in lines:
            start, key, row = line.split(" ", 2)
            running[key] = (int(start), row)
        files = {key: b64decode(body) for key, body in head["files"].items()}
        use = {pool: [Hour(*hour) for hour in hours] for pool, hours in head["use"].items()}
        idle = {name: Stretch(*stretch) for name, stretch in head["idle"].items()}
        return cls(head["at"], running, files, head["ended"], head["used"], use, idle)


def advance(
    state: State | None,
    values: Iterable[tuple[str, str]],
    now: int,
    every: int,
    head: Mapping[str, str],
) -> State | None:
    """Return the state after a measurement; None if a later one is there.

    Args:
        state: The state before, which loses its intervals: a fleet of them would fill the memory
            twice; None without any: the day up to ``now`` is not measured.
        values: Keys in the state of what is there, with its row without times.
        now: Time of the measurement.
        every: Seconds between two measurements.
        head: Cluster, Region and account, for the first lines of files.
    """
    midnight = now - now % DAY
    if state is None:
        state = State(midnight)
        until = midnight
    elif now <= state.at:
        return None
    else:
        until = now if now - state.at <= _LONGEST * every else state.at + every
    ended: dict[str, list[str]] = {}
    running: dict[str, tuple[int, str]] = {}

    def end(text: str, start: int, until: int) -> None:
        for day, row in _rows(text, start, until):
            ended.setdefault(day, []).append(row)

    for key, text in values:
        start, before = state.running.pop(key, (now, text))
        if until == now and text == before:
            end(before, start, midnight)
            running[key] = (max(start, midnight), before)
        else:
            end(before, start, until)
            running[key] = (now, text)
    for start, before in state.running.values():
        end(before, start, until)
    end(_GAP, until, now)
    files: dict[str, bytes] = {}
    for day, rows in ended.items():
        first = {"v": VERSION, "kind": "file", **head, "every": every, "day": day, "seq": now}
        files[file_key(day, now)] = encode(chain([json.dumps(first, separators=(",", ":"))], rows))
    count = sum(map(len, ended.values()))
    return State(now, running, files, count, state.used, state.use)


def _rows(text: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield an interval as one row a day, with the day."""
    while start < end:
        until = min(end, start - start % DAY + DAY)
        yield day_of(start), f'{{"v":{VERSION},"from":{start},"to":{until},{text[1:]}'
        start = until
