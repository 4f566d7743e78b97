"""Jobs of a ledger as a trace, from which `ultrascale baseline` says how much to buy ahead."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from ultrascale.lambdas.ledger import DAY, Share
from ultrascale.ledger.price import Key
from ultrascale.ledger.read import days_of, start_of
from ultrascale.ledger.showback import Ledger
from ultrascale.plan.baseline.traces import HUNDREDTHS, Job, Trace

_GAP = 1.5  # Sampling intervals that part two runs of a job


def trace_of(ledger: Ledger, starts: int, ends: int, kind: str) -> Trace:
    """Return the runs of all jobs of a period, submitted when they began to wait.

    Where a job had nodes of type ``kind``, runs on other types are left out.

    Raises:
        ConfigError: Files of the ledger are wrong.
        UnansweredError: S3 refused.
    """
    changes: dict[tuple[str, str, str], Counter[int]] = defaultdict(Counter)
    held: set[tuple[str, str]] = set()

    def watch(key: Key, share: Share) -> None:
        if key.namespace:
            job = changes[share.type.removeprefix("ml."), share.namespace, share.job]
            size = round(share.n * HUNDREDTHS)
            job[share.start] += size
            job[share.end] -= size
            if key.reason:
                held.add((share.namespace, share.job))

    result, trace = ledger.showback(starts, ends, watch), Trace()
    gap = _GAP * result.every
    waits: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in result.waiting:
        waits[row["namespace"], row["job"]].append((row["from"], row["to"]))
    types = {type for type, *_ in changes}
    for (type, *name), steps in changes.items():
        if type != kind and kind in types:
            trace.notes[f"jobs on {type} are left out"] += 1
            continue
        trace.notes[f"jobs on {type} count as if on {kind}, by accelerators"] += type != kind
        for run in _runs(steps, gap):
            begin = submit = run[0][0]
            for low, high in sorted(waits[name[0], name[1]], reverse=True):
                submit = low if low < submit <= high + gap else submit
            wait = begin - submit
            trace.jobs += [Job(start - wait, start, end, size) for start, end, size in run]
    first = min((job.submit for job in trace.jobs), default=ends)
    read = [day for day in days_of(starts, ends) if day not in result.missing_days]
    trace.until = start_of(read[-1]) + DAY if read else starts
    lost = sum(first <= start_of(day) < trace.until for day in result.missing_days)
    trace.notes["days have no file of the ledger, and count as without work"] = lost
    trace.notes["jobs held accelerators without use, and count with these"] = len(held)
    ran = {(namespace, job) for _, namespace, job in changes}
    trace.notes["jobs waited and never ran: no curve has them"] = len(waits.keys() - ran)
    trace.notes = +trace.notes
    return trace


def _runs(steps: Mapping[int, int], gap: float) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the runs of a job, which a longer gap parts.

    A run is a list of start, end and accelerators: one for each number that it had.
    """
    run: list[tuple[int, int, int]] = []
    level = 0
    for time, until in pairwise(sorted(time for time, change in steps.items() if change)):
        level += steps[time]
        if level:
            if run and time - run[-1][1] > gap:
                yield run
                run = []
            run.append((time, until, level))
    if run:
        yield run
