"""Jobs that leave their accelerators idle, judged by answers of their nodes' exporters over time.

Times are whole seconds since 1970.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LABEL = "ultrascale.dev/idle"
"""Label of pods that may be idle, and annotation of objects of jobs that are."""
NOTICE_SECONDS = 900
"""Time from the notice to the end."""
START_SECONDS = 3_600
"""Time from the latest start of a job's pods in which it may load, compile and wait."""
_ANSWERED = 0.9  # Least share of answers
_NODES = 8  # Most nodes of a job that have to answer
# Versions of the kinds that jobs are, by API group and plural.
VERSIONS: Mapping[tuple[str, str], str] = {
    ("batch", "jobs"): "v1",
    ("batch.volcano.sh", "jobs"): "v1alpha1",
    ("jobset.x-k8s.io", "jobsets"): "v1alpha2",
    ("ray.io", "rayjobs"): "v1",
}


@dataclass(slots=True)
class Look:
    """A job as one call sees it."""

    nodes: dict[str, float] = field(default_factory=dict[str, float])  # Its accelerators by node
    started: float = 0  # Latest start of its pods; infinite while one does not run
    asked: Sequence[str] = ()  # Nodes that the call asks
    # Nodes whose answer has all of the job's accelerators there
    answered: list[str] = field(default_factory=list[str])
    busy: bool = False  # Whether an answer has one that is used


class Stretch(NamedTuple):
    """A time without use of a job's accelerators, as far as exporters answer."""

    since: int  # Its start
    asked: int = 0  # Answers asked for: up to the notice, and anew from it on
    answered: int = 0  # Answers
    nodes: Sequence[str] = ()  # The first nodes that answered
    notice: int = 0  # Time of the notice; negative: of the use that ended it; 0: none yet

    def is_known(self, nodes: int) -> bool:
        """Return whether exporters answered for a job of ``nodes``, once around at least."""
        enough = self.asked >= nodes and len(self.nodes) >= min(_NODES, nodes)
        return enough and self.answered >= _ANSWERED * self.asked


def follow(before: Stretch | None, look: Look, seconds: int, now: int, missed: int = 0) -> Stretch:
    """Return a job's stretch after a call at ``now``; None stands before its first sight.

    The notice comes after ``seconds`` without use. Nobody answered the calls that were ``missed``.
    """
    ready = int(min(look.started, now)) + START_SECONDS
    if before is None:
        return Stretch(max(now, ready))
    over = Stretch(max(now, ready), notice=-now if before.notice > 0 else before.notice)
    if look.busy or now <= ready or before.since < ready:
        return over
    later = before._replace(
        asked=before.asked + len(look.asked) * (1 + missed),
        answered=before.answered + len(look.answered),
        nodes=[*dict.fromkeys((*before.nodes, *look.answered))][:_NODES],
    )
    noticed = before.notice > 0
    due = before.notice + NOTICE_SECONDS if noticed else before.since + seconds
    if now >= due and later.answered < _ANSWERED * later.asked:
        return over
    tells = now >= due and not noticed and later.is_known(len(look.nodes))
    return Stretch(before.since, notice=now) if tells else later


def take_turns(jobs: Iterable[Look], turn: int, most: int) -> None:
    """Set the nodes of each job to ask in a call, ``most`` in all: each node has its turn."""
    every_job = [job for job in jobs if job.nodes]
    rounds = max(-(-len(every_job) // most), 1)
    chosen = sorted(every_job[turn % rounds :: rounds], key=lambda job: len(job.nodes))
    for place, job in enumerate(chosen):
        every = -(-len(job.nodes) // (most // (len(chosen) - place)))
        job.asked = sorted(job.nodes)[turn // rounds % every :: every]
        most -= len(job.asked)
