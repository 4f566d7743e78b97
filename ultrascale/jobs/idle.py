"""Idle jobs as the function that measures the fleet marks them: their cost and their end."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec.structs import replace

from ultrascale.cluster_api.objects import Kind, Object, label, name
from ultrascale.documents import parse_json, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.workloads import workload_of
from ultrascale.lambdas.idle_jobs import LABEL
from ultrascale.plan.names import QUEUE_LABEL

_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class IdleState(Frozen):
    """Accelerators that a job holds without use."""

    since: _Time  # Start of the time without use
    accelerators: float  # Their number
    usd_per_hour: float | None = None  # Their price as bought; None where it is unknown
    ends: _Time | None = None  # Time at which the job is ended; None where it is not
    ended: _Time | None = None  # Time at which it was ended; None while it is not
    resume: tuple[str, ...] = ()  # Commands that resume it; of what a queue holds, none

    def lines(self, now: datetime) -> Iterator[str]:
        """Yield sentences for the job's user at ``now``."""
        hours = ((self.ended or now) - self.since) / timedelta(hours=1)
        usd = "" if self.usd_per_hour is None else f", ${hours * self.usd_per_hour:,.2f}"
        yield (
            f"{self.accelerators:g} accelerators not used since {_utc(self.since)}: "
            f"{hours * self.accelerators:,.1f} accelerator-hours{usd}"
        )
        if self.ended is not None:
            yield f"ended for it at {_utc(self.ended)}"
            yield from (f"to go on: {command}" for command in self.resume)
        elif self.ends is not None and self.ends > now:
            yield f"ended at {_utc(self.ends)} unless one of them is used; it can be resumed then"


def idle_state(namespace: str, made: Sequence[tuple[Kind, Object]]) -> IdleState | None:
    """Return what the objects of a job say of its idle accelerators; None where they are used."""
    note = text(made[0][1], "metadata", "annotations", LABEL)
    try:
        state = msgspec.convert(parse_json(note or "null"), IdleState | None)
    except ValueError:
        # Whoever may change the job may write it.
        return None
    commands = (
        workload_of(kind).resume.format(kind=kind.resource, name=name(item), namespace=namespace)
        for kind, item in made
        if not label(item, QUEUE_LABEL)
    )
    return None if state is None else replace(state, resume=tuple(commands))


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
