"""The core of ultrascale: what AWS documents, what the user decided, and what follows from both.

`ultrascale.submit` sends a job to a cluster from Python.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultrascale.jobs.submitted import SubmittedJob as SubmittedJob
    from ultrascale.jobs.submitted import submit as submit

_FROM_JOBS = ("SubmittedJob", "submit")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Whoever only plans a cluster does not pay for what talks to one.
        if name in _FROM_JOBS:
            from ultrascale.jobs import submitted

            return getattr(submitted, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
