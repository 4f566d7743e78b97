"""Jobs of a ledger as a trace, from which `ultrascale baseline` says how much to buy ahead."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ultrascale.lambdas.ledger import Share
from ultrascale.ledger.price import Key
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
    parts: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)

    def watch(key: Key, share: Share) -> None:
        if not key.reason:
            own = parts[share.type.removeprefix("ml."), share.namespace, share.job]
            size = round(share.n * HUNDREDTHS)
            own += ((share.start, size), (share.end, -size))

    result, trace = ledger.showback(starts, ends, watch), Trace()
    gap = _GAP * result.every
    waits: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in result.waiting:
        waits[row["namespace"], row["job"]].append((row["from"], row["to"]))
    wanted = {kind} & {type for type, *_ in parts} or {type for type, *_ in parts}
    for (type, *name), changes in parts.items():
        runs = [*_runs(sorted(changes), gap)] if type in wanted else []
        trace.notes[f"jobs on {type} are left out"] += type not in wanted
        for start, end, size in runs:
            submit = start
            for low, high in sorted(waits[name[0], name[1]], reverse=True):
                submit = low if low < submit <= high + gap else submit
            trace.jobs.append(Job(submit, start, None if end == ends else end, size))
    ran = {(namespace, job) for _, namespace, job in parts}
    trace.notes["jobs waited and never ran: no curve has them"] += len(waits.keys() - ran)
    trace.notes = +trace.notes
    return trace


def _runs(changes: Sequence[tuple[int, int]], gap: float) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and most accelerators of each run; a longer gap begins another one."""
    start, last, level, most = changes[0][0], changes[0][0], 0, 0
    for time, change in changes:
        if not level and time - last > gap:
            yield start, last, most
            start, most = time, 0
        last, level = time, level + change
        most = max(most, level)
    yield start, last, most
