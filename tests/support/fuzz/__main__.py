"""Tries random files until the time is over: `python -m tests.support.fuzz --seconds 600`.

It prints its seed, and keeps what it finds, made smaller, in `tests/data/fuzz/`, which the tests
try again each time. `--seed` repeats a run; how far it comes depends on the machine.
"""

import argparse
import os
import sys
import time
from typing import cast

from tests.support.fuzz.cases import Kind, make
from tests.support.fuzz.run import run


def main() -> int:
    """Read the options and run."""
    options = argparse.ArgumentParser(prog="python -m tests.support.fuzz", description=__doc__)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", default=str(time.time_ns() % 1_000_000))
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--no-keep", action="store_true", help="print findings alone")
    options.add_argument("--show", metavar="KIND SEED", nargs=2, help="print the file of a seed")
    given = options.parse_args()
    if given.show:
        kind, seed = cast("tuple[Kind, str]", given.show)
        sys.stdout.buffer.write(make(kind, seed).data)
        return 0
    return run(given.seed, given.seconds, given.jobs, keep=not given.no_keep)


if __name__ == "__main__":
    sys.exit(main())
