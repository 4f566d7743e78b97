"""A run of the fuzzer over several processes."""

import faulthandler
import itertools
import json
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.support.fuzz.cases import KINDS, Case, Kind, make
from tests.support.fuzz.oracle import Finding, Judgement
from tests.support.fuzz.shrink import shrunk

# A child ends by then: the process of Node.js keeps each synthesis.
_CASES_PER_CHILD = 60
_HANGS = 300
_LINTED = 8
_SHRINK_SECONDS = 60.0
_MOST_BYTES = 8 << 30


class Tried(NamedTuple):
    """Result of a case."""

    kind: Kind
    seed: str
    case: Case
    judgement: Judgement


def tried(kind: Kind, seed: str, number: int) -> Tried:
    """Try the case of ``kind`` and ``seed``."""
    faulthandler.dump_traceback_later(_HANGS, exit=True)
    case = make(kind, seed)
    notes = Path(tempfile.gettempdir()) / f"fuzz-{os.getpid()}"
    notes.write_text(json.dumps([kind, seed]))
    judgement = case.judged(linted=number % _LINTED == 0)
    faulthandler.cancel_dump_traceback_later()
    notes.unlink()
    return Tried(kind, seed, case, judgement)


def _begin() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))


def _asked(seed: str) -> Iterator[tuple[Kind, str, int]]:
    for number in itertools.count():
        yield KINDS[number % len(KINDS)], f"{seed}.{number}", number


def _results(seed: str, seconds: float, jobs: int) -> Iterator[Tried]:
    until = time.monotonic() + seconds
    cases = _asked(seed)
    waiting: set[Future[Tried]] = set()
    # jsii's process is no child's to share.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), _begin, max_tasks_per_child=_CASES_PER_CHILD
    ) as pool:
        while waiting or time.monotonic() < until:
            while len(waiting) < 2 * jobs and time.monotonic() < until:
                waiting.add(pool.submit(tried, *next(cases)))
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in done:
                yield each.result()


def run(seed: str, seconds: float, jobs: int, *, keep: bool) -> int:
    """Try files for ``seconds``, print what is found, and return the exit status."""
    counts: Counter[str] = Counter()
    signs: Counter[str] = Counter()
    print(f"seed {seed}", flush=True)
    try:
        for result in _results(seed, seconds, jobs):
            counts[f"{result.kind} {'taken' if result.judgement.accepted else 'refused'}"] += 1
            for finding in result.judgement.findings:
                signs[finding.sign] += 1
                if signs[finding.sign] == 1:
                    _tell(result, finding, keep=keep)
    except BrokenProcessPool:
        print(f"a process ended; what it tried stands in {tempfile.gettempdir()}/fuzz-*")
        return 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    for sign, count in signs.most_common():
        print(f"{count:6} {sign}")
    print(f"{len(signs)} findings with seed {seed}")
    return 1 if signs else 0


def _tell(result: Tried, finding: Finding, *, keep: bool) -> None:
    print(f"\n{result.kind} {result.seed}: {finding.sign}\n{finding.detail}", flush=True)
    if keep:
        linted = finding.sign.startswith("cfn-lint")

        def has(case: Case) -> bool:
            return any(each.sign == finding.sign for each in case.judged(linted=linted).findings)

        small = shrunk(result.case, has, seconds=_SHRINK_SECONDS)
        print(f"kept: {small.kept(finding)}", flush=True)
