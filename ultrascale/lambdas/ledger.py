"""Rows of the ledger of paid accelerators, and the split of each bought second among them.

The function of the fleet metrics writes the rows, and the command line reads them. Times are whole
seconds since 1970, in UTC; a row holds from ``from`` up to ``to``, and ends at midnight at last.
"""

import gzip
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import islice, pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict

VERSION = 1
"""Version of the rows' format."""
PREFIX = "ledger/"
"""Prefix of the ledger's objects in its bucket."""
STATE = f"{PREFIX}state.json.gz"
"""Key of the object with the open intervals."""
DAY = 86_400
_LINES = 1_000

NOT_MEASURED = "not measured"
DRAIN = "drain"
WINDOW_START = "window start"
MISSING = "missing"
UNHEALTHY = "unhealthy"
JOINING = "joining"
CORDONED = "cordoned"
JOB_WAITS = "job waits"
NO_JOB = "no job"
REASONS = (
    NOT_MEASURED,
    DRAIN,
    WINDOW_START,
    MISSING,
    UNHEALTHY,
    JOINING,
    CORDONED,
    JOB_WAITS,
    NO_JOB,
)
"""Reasons of accelerators without an owner; of several that apply, the first counts."""
HELD = "held without use"
"""Reason beside an owner: a job that leaves all of its accelerators idle."""
MEASURED = (*REASONS[1:], HELD)
"""Reasons of idleness that a measurement finds."""
SPILL = "spill"
"""Purchase option of nodes beyond the number that their reservation holds: On-Demand."""


# --- Rows -----------------------------------------------------------------------------------------


class Part(TypedDict):
    """Accelerators of a node with one owner, or idle for one reason."""

    n: float  # Accelerators; a fraction only where pods share a Neuron device
    state: Literal["running", "starting", "idle"]
    reason: NotRequired[str]  # Of idle ones; `HELD` beside an owner
    namespace: NotRequired[str]  # Of others, like all below
    team: NotRequired[str]  # Empty without a team
    queue: NotRequired[str]  # Empty without a queue
    job: NotRequired[str]


_Times = TypedDict("_Times", {"v": int, "from": int, "to": int})


class NodeRow(_Times):
    """A node with the same parts over a time."""

    kind: Literal["node"]
    node: str
    instance: str  # Id of its instance; empty where it is unknown
    type: str  # Instance type
    pool: str
    zone: str
    purchase: str  # Purchase option, as in the cluster file
    reservation: str  # Id of its reservation or ARN of its plan; empty without one
    accelerators: float
    parts: list[Part]


class Fee(TypedDict):
    """Fee of a training plan, of a part of it between gaps, or of an extension."""

    usd: str  # A decimal number
    since: int  # Start of the time that it pays for
    until: int  # Its end


class ReservationRow(_Times):
    """A reservation with the same numbers over a time."""

    kind: Literal["reservation"]
    reservation: str  # Id, or ARN of a plan
    pool: str
    type: str
    purchase: str
    accelerators: int  # Accelerators of an instance
    bought: int  # Instances
    available: int  # Instances without a user
    state: str  # In the words of AWS
    window: list[int] | None  # Start and end; None without an end
    usable: int | None  # Start of the nodes' drain; None without an end
    started: bool  # Whether a node of it has come
    fees: list[Fee]  # Those that AWS tells, in order


class WaitingRow(_Times):
    """A job that waits, with the same wish over a time."""

    kind: Literal["waiting"]
    namespace: str
    job: str
    n: float  # Accelerators that it wants
    pools: list[str]  # Pools that it could use


class GapRow(_Times):
    """A time without a measurement."""

    kind: Literal["gap"]


Row = NodeRow | ReservationRow | WaitingRow | GapRow


def day_of(moment: int) -> str:
    """Return the day of a time in UTC, such as ``2026-12-03``."""
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def file_key(day: str, seq: int) -> str:
    """Return the key of a file of rows."""
    return f"{PREFIX}day={day}/{seq}.json.gz"


def encode(lines: Iterator[str]) -> bytes:
    """Return a file of ``lines``; the same lines give the same bytes."""
    data = BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=6, mtime=0) as file:
        # A part at a time: all rows of a large fleet would fill the memory.
        while part := "".join(f"{line}\n" for line in islice(lines, _LINES)):
            file.write(part.encode())
    return data.getvalue()


# --- The split of each bought second --------------------------------------------------------------


class Share(NamedTuple):
    """Accelerators over a time, with one owner or one reason."""

    start: int
    end: int
    n: float  # Accelerators
    # Id of the reservation that pays, or ARN of its plan; empty: On-Demand, Spot or spill
    reservation: str
    purchase: str  # Purchase option; `SPILL` beyond the reservation
    pool: str
    type: str
    zone: str  # Empty without a node, like node and instance
    node: str
    instance: str
    state: str  # `running`, `starting` or `idle`
    reason: str  # One of `REASONS`; with an owner empty, or `HELD`
    namespace: str
    team: str
    queue: str
    job: str


# `_make` without a check of the length: a large fleet has millions of shares.
_share: Callable[[tuple[object, ...]], Share] = partial(tuple.__new__, Share)


def first_reason(reasons: Collection[str]) -> str:
    """Return the reason that counts among those that apply."""
    return min(reasons, key=REASONS.index)


Spans = Sequence[tuple[int, int]]


def shares_of(
    rows: Iterable[Row], start: int, end: int, known: Mapping[str, ReservationRow] | None = None
) -> Iterator[Share]:
    """Yield who has each accelerator that is paid for from ``start`` to ``end``, or why nobody.

    The shares of a reservation add up to its instances' accelerators at each second of its window.

    Args:
        rows: Rows in the order of their files. At least all of this time; a day at a time takes
            the least memory, as all rows end at midnight. A day without a file is a row `gap`.
        start: Start of the time.
        end: Its end.
        known: Rows of reservations before or after this time, by reservation: what a gap without
            other rows misses of them.
    """
    known = known or {}
    gaps, nodes, reserved = _sort_rows(rows, start, end)
    for name in {**known, **reserved}:
        changes = reserved.get(name, [])
        yield from _gap_shares(changes or [{**known[name], "from": start, "to": end}], gaps)
        paid = [
            (low, high, row)
            for row in changes
            for low, high in _times_outside(*_paid_span(row, start, end), gaps)
        ]
        yield from _reservation_shares(paid, nodes.pop(name, []))
    for rest in nodes.values():
        for row, low, high in rest:
            yield from _node_shares(row, low, high, row["reservation"] and SPILL)


_Held = tuple[NodeRow, int, int]


def _sort_rows(
    rows: Iterable[Row], start: int, end: int
) -> tuple[Spans, dict[str, list[_Held]], dict[str, list[ReservationRow]]]:
    """Return gaps, measured times of nodes by reservation, and rows of reservations."""
    gaps: list[tuple[int, int]] = []
    held: list[NodeRow] = []
    reserved: dict[str, list[ReservationRow]] = {}
    for row in rows:
        if row["to"] <= start or row["from"] >= end:
            continue
        if row["kind"] == "node":
            held.append(row)
        elif row["kind"] == "reservation":
            reserved.setdefault(row["reservation"], []).append(row)
        elif row["kind"] == "gap":
            gaps.append((max(row["from"], start), min(row["to"], end)))
    gaps = union_of(gaps)
    nodes: defaultdict[str, list[_Held]] = defaultdict(list)
    ends: dict[str, int] = {}
    for row in held:
        # A ledger whose state was lost while the clock went back may tell a time twice.
        low = max(row["from"], start, ends.get(row["node"], start))
        high = min(row["to"], end)
        if low < high:
            ends[row["node"]] = high
            spans = _times_outside(low, high, gaps) if gaps else ((low, high),)
            nodes[row["reservation"]].extend((row, *span) for span in spans)
    return gaps, nodes, reserved


def union_of(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of time in order, those that meet as one."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _times_outside(low: int, high: int, gaps: Spans) -> Iterator[tuple[int, int]]:
    for begin, until in gaps:
        if until <= low or begin >= high:
            continue
        if low < begin:
            yield low, begin
        low = until
    if low < high:
        yield low, high


def _paid_span(row: ReservationRow, start: int, end: int) -> tuple[int, int]:
    """Return the part of a row's time that is paid for."""
    window = row["window"] or ([start, end] if row["state"] == "active" else [start, start])
    return max(row["from"], window[0], start), min(row["to"], window[1], end)


def _gap_shares(rows: Sequence[ReservationRow], gaps: Spans) -> Iterator[Share]:
    """Yield what is not measured of a reservation: as its row up to then says, or that after."""
    for low, high in gaps:
        for row in [row for row in rows if row["from"] <= high and row["to"] >= low][:1]:
            begin, until = _paid_span({**row, "from": low, "to": high}, low, high)
            if begin < until:
                yield _nodeless_share(row, begin, until, row["bought"], NOT_MEASURED)


def _reservation_shares(
    paid: Sequence[tuple[int, int, ReservationRow]], nodes: Sequence[_Held]
) -> Iterator[Share]:
    changes: Counter[int] = Counter()
    for _, low, high in nodes:
        changes[low] += 1
        changes[high] -= 1
    moments = sorted({*changes, *(at for low, high, _ in paid for at in (low, high))})
    usable = max((row["usable"] for _, _, row in paid if row["usable"]), default=None)
    full: list[tuple[int, int, int]] = []
    count = 0
    for low, high in pairwise(moments):
        count += changes[low]
        row = next((row for begin, until, row in paid if begin <= low < until), None)
        bought = 0 if row is None else row["bought"]
        if count > bought:
            full.append((low, high, bought))
        elif row is not None and count < bought:
            reason = MISSING if row["started"] or row["window"] is None else WINDOW_START
            for begin, until, why in _halves(low, high, usable, reason):
                yield _nodeless_share(row, begin, until, bought - count, why)
    spilled = _spill_times(full, nodes)
    for held in nodes:
        row, low, high = held
        beyond = spilled.get(id(held))
        if beyond is None:
            yield from _node_shares(row, low, high, "", usable)
            continue
        for begin, until in beyond:
            yield from _node_shares(row, begin, until, SPILL)
        for begin, until in _times_outside(low, high, beyond):
            yield from _node_shares(row, begin, until, "", usable)


def _spill_times(
    full: Iterable[tuple[int, int, int]], nodes: Sequence[_Held]
) -> Mapping[int, list[tuple[int, int]]]:
    """Return the times of nodes beyond their reservation: the last ones, by their names."""
    times: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for low, high, most in full:
        there = [held for held in nodes if held[1] <= low and high <= held[2]]
        for held in sorted(there, key=lambda held: held[0]["node"])[most:]:
            times[id(held)].append((low, high))
    return {key: union_of(spans) for key, spans in times.items()}


def _nodeless_share(row: ReservationRow, low: int, high: int, instances: int, reason: str) -> Share:
    """Return instances of a reservation that are no nodes."""
    amount = instances * row["accelerators"]
    head = row["reservation"], row["purchase"], row["pool"], row["type"], "", "", ""
    return _share((low, high, amount, *head, "idle", reason, "", "", "", ""))


def _node_shares(
    row: NodeRow, low: int, high: int, spill: str, usable: int | None = None
) -> Iterator[Share]:
    """Yield the parts of a node; idle ones drain from ``usable`` on, others keep their owner."""
    head = (
        "" if spill else row["reservation"],
        spill or row["purchase"],
        *(row["pool"], row["type"], row["zone"], row["node"], row["instance"]),
    )
    for part in row["parts"]:
        get, reason = part.get, part.get("reason", "")
        n, state = part["n"], part["state"]
        if state != "idle":
            owner = get("namespace", ""), get("team", ""), get("queue", ""), get("job", "")
            yield _share((low, high, n, *head, state, reason, *owner))
            continue
        for begin, until, why in _halves(low, high, usable, reason):
            yield _share((begin, until, n, *head, state, why, "", "", "", ""))


def _halves(low: int, high: int, usable: int | None, reason: str) -> Iterator[tuple[int, int, str]]:
    """Yield a time up to the usable end, and after it, with the reason of idleness."""
    middle = high if usable is None else min(max(usable, low), high)
    if low < middle:
        yield low, middle, reason
    if middle < high:
        yield middle, high, first_reason((reason, DRAIN))
