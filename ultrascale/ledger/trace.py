"""Jobs of a ledger as a trace, from which `ultrascale baseline` says how much to buy ahead."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    changes: dict[tuple[str, tuple[str, str]], Counter[int]] = defaultdict(Counter)
    held: set[tuple[str, str]] = set()

    def watch(key: Key, share: Share) -> None:
        if key.namespace:
            name = share.namespace, share.job
            steps, size = changes[share.type.removeprefix("ml."), name], share.n * HUNDREDTHS
            steps[share.start] += round(size)
            steps[share.end] -= round(size)
            if key.reason:
                held.add(name)

    result, trace = ledger.showback(starts, ends, watch), Trace()
    waits: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in result.waiting:
        waits[row["namespace"], row["job"]].append((row["from"], row["to"]))
    types = {type for type, _ in changes}
    for (type, name), steps in changes.items():
        if type != kind and kind in types:
            trace.notes[f"jobs on {type} are left out"] += 1
            continue
        trace.notes[f"jobs on {type} count as if on {kind}, by accelerators"] += type != kind
        trace.jobs += _runs(steps, waits.get(name, ()), _GAP * result.every)
    first = min((job.submit for job in trace.jobs), default=ends)
    read = [day for day in days_of(starts, ends) if day not in result.missing_days]
    trace.until = start_of(read[-1]) + DAY if read else starts
    lost = sum(first <= start_of(day) < trace.until for day in result.missing_days)
    trace.notes["days have no file of the ledger, and count as without work"] = lost
    trace.notes["jobs held accelerators without use, and count with these"] = len(held)
    never = waits.keys() - {name for _, name in changes}
    trace.notes["jobs waited and never ran: no curve has them"] = len(never)
    trace.notes = +trace.notes
    return trace


def _runs(steps: Mapping[int, int], waits: Sequence[tuple[int, int]], gap: float) -> Iterator[Job]:
    """Yield a job's runs, one for each number of accelerators; a longer gap is waited for anew."""
    level = last = wait = 0
    for start, end in pairwise(sorted(time for time, change in steps.items() if change)):
        level += steps[start]
        if not level:
            continue
        if start - last > gap:
            submit = start
            for low, high in sorted(waits, reverse=True):
                submit = low if low < submit <= high + gap else submit
            wait = start - submit
        yield Job(start - wait, start, end, level)
        last = end
