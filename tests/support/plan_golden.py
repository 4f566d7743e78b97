"""Output of `ultrascale plan` for the cluster files at one time.

`python -m tests.support.plan_golden` writes it; review the difference as a change of the product.
"""

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from tests.support.folders import DATA, ROOT
from ultrascale.cli import main

AT = "2026-12-15T00:00Z"
STATUSES: Mapping[str, int] = {
    "auto-mode": 1,
    "existing-estate": 0,
    "hybrid-hyperpod": 0,
    "llm-kueue": 0,
    "mixed-capacity": 1,
    "serving": 0,
    "trainium-bert": 0,
    "ultra-100k": 2,
}
"""Exit status of `plan` by cluster file: 1 after a window's end, 2 beyond published limits."""

OPTIONS: Mapping[str, tuple[str, ...]] = {"txt": ("--all",), "json": ("--json",)}


def golden_file(name: str, kind: str) -> Path:
    """Return where the answer of a cluster file is written down."""
    return DATA / "golden" / f"plan-{name}.{kind}"


def printed(name: str, kind: str) -> tuple[str, int]:
    """Return what the command prints of a cluster file, and the status that it ends with."""
    # A long path of the checkout would change where lines of 80 columns end.
    file = f"clusters/{name}.yaml"
    told, arguments = io.StringIO(), sys.argv
    sys.argv = ["ultrascale", "plan", file, "--at", AT, *OPTIONS[kind]]
    try:
        with (
            mock.patch.dict(os.environ),
            contextlib.chdir(ROOT),
            contextlib.redirect_stdout(told),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            os.environ.pop("FORCE_COLOR", None)
            main()
    except SystemExit as end:
        status = 1 if isinstance(end.code, str) else int(end.code or 0)
    else:
        status = 0
    finally:
        sys.argv = arguments
    # Tables fill their last column, and an editor takes away what ends a line.
    return "".join(f"{line.rstrip()}\n" for line in told.getvalue().splitlines()), status


if __name__ == "__main__":
    for each in STATUSES:
        for suffix in OPTIONS:
            golden = golden_file(each, suffix)
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(printed(each, suffix)[0])
