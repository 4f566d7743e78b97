"""Jobs that leave their accelerators idle, judged by answers of their nodes' exporters over time.

Times are whole seconds since 1970.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

LABEL = "ultrascale.dev/idle"
"""Label of pods that may be idle, and annotation of objects of jobs that are."""
NOTICE_SECONDS = 900
"""Time from the notice to the end."""
START_SECONDS = 3_600
"""Time from the latest start of a job's pods in which it may load, compile and wait."""
_ANSWERED = 0.9  # Least share of answers
_NODES = 8  # Most nodes of a job that have to answer, each once
# Versions of the kinds that jobs are, by API group and plural.
VERSIONS: Mapping[tuple[str, str], str] = {
    ("batch", "jobs"): "v1",
    ("batch.volcano.sh", "jobs"): "v1alpha1",
    ("jobset.x-k8s.io", "jobsets"): "v1alpha2",
    ("ray.io", "rayjobs"): "v1",
}


class Look(NamedTuple):
    """A job as one call sees it."""

    started: int  # Latest start of its pods; the time of the call while one does not run
    nodes: int  # Nodes that it has accelerators of
    asked: int = 0  # Nodes that the call asks
    answered: Sequence[str] = ()  # Nodes whose answer has all of the job's accelerators there
    busy: bool = False  # Whether an answer has one that is used


class Stretch(NamedTuple):
    """A time without use of a job's accelerators, as far as exporters answer."""

    since: int  # Its start
    asked: int = 0  # Answers asked for
    answered: int = 0  # Answers
    nodes: Sequence[str] = ()  # The first nodes that answered
    told: int = 0  # Time of the notice; 0: it is not idle


def follow(before: Stretch | None, look: Look, seconds: int, now: int, missed: int = 0) -> Stretch:
    """Return the stretch after a call.

    Args:
        before: The stretch before; None at the first sight of the job.
        look: The job.
        seconds: Time without use up to the notice.
        now: Time of the call.
        missed: Calls that failed since the one before: nobody answered them.
    """
    ready = look.started + START_SECONDS
    if before is None or look.busy or now <= ready:
        return Stretch(max(now, ready))
    asked = before.asked + look.asked * (1 + missed)
    answered = before.answered + len(look.answered)
    nodes = [*dict.fromkeys((*before.nodes, *look.answered))][:_NODES]
    later = Stretch(before.since, asked, answered, nodes, before.told)
    if now - before.since < seconds:
        return later
    if answered < _ANSWERED * asked:
        return Stretch(now)
    # Once around, so that no node is left out while it is not its turn.
    known = asked >= look.nodes and len(nodes) >= min(_NODES, look.nodes)
    return later._replace(told=before.told or now) if known else later


def in_turn(
    jobs: Mapping[str, Sequence[str]], turn: int, most: int
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the nodes of each job to ask in a call, ``most`` in all: each node has its turn."""
    rounds = max(-(-len(jobs) // most), 1)
    chosen = sorted(sorted(jobs)[turn % rounds :: rounds], key=lambda job: len(jobs[job]))
    for place, job in enumerate(chosen):
        every = -(-len(jobs[job]) // (most // (len(chosen) - place)))
        asked = sorted(jobs[job])[turn // rounds % every :: every]
        most -= len(asked)
        yield job, asked
