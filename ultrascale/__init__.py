"""The core of ultrascale: facts of AWS, the cluster file, and the plan from both.

`ultrascale.submit` sends a job to a cluster from Python.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultrascale.jobs import SubmittedJob as SubmittedJob
    from ultrascale.jobs import submit as submit

_FROM_JOBS = ("SubmittedJob", "submit")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # A program that only plans a cluster must not import the client for API servers.
        if name in _FROM_JOBS:
            from ultrascale import jobs

            return getattr(jobs, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
