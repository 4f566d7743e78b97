"""A person's pod: a notebook or a shell on a part of a node, which ends when nobody uses it."""

from typing import Annotated, Literal

from pydantic import Field

from ultrascale.catalog import integer_bounds
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.jobs import Job

_LEAST_PORT = 1024


class DevJob(Job):
    """A person's pod for a notebook or a shell, with the volumes and image of jobs."""

    kind: Literal["dev"] = "dev"
    """A person's pod."""

    idle_hours: Annotated[float, Field(gt=0, le=integer_bounds.DEADLINE_HOURS)] = 4
    """Hours without use after which the pod ends; it tells so before, in log and terminals."""

    port: Annotated[int, Field(ge=1, le=65_535)] = 8888
    """TCP port of the notebook, or of `command`, on the pod's own loopback address."""

    queue: str | None = None
    """One of `scheduling.queues`.

    Default: none where no queue of Kueue has its pool; else as of a batch job.
    """


@rule
def dev_port_needs_no_root(job: DevJob) -> Mistakes:
    if job.port < _LEAST_PORT and "NET_BIND_SERVICE" not in job.security.capabilities:
        wrong = "a port that only root may open, and a person's pod does not run as root"
        yield refuse("port", wrong, f"use {_LEAST_PORT} or more")


@rule
def dev_ends_by_its_deadline(job: DevJob) -> Mistakes:
    if job.deadline_hours is not None and job.deadline_hours <= job.idle_hours:
        wrong = f"no less than deadline_hours, {job.deadline_hours:g}, which ends the pod first"
        yield refuse("idle_hours", wrong, "write less, or leave deadline_hours out")
