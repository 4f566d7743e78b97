"""Types of an acceptance: its levels, its checks with their cost, and its results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import field

from ultrascale.cluster_api.server import Cluster
from ultrascale.findings import Finding
from ultrascale.frozen import Frozen
from ultrascale.operate.clock import Clock
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    # The package `account` brings boto3, which a look at an API server does not need.
    from ultrascale.account import Account

Level = Literal["objects", "nodes", "storage", "queue", "fabric", "serving", "alarms"]

NEEDS: Mapping[Level, Sequence[Level]] = {
    "objects": (),
    "nodes": ("objects",),
    "storage": ("nodes",),
    "queue": ("nodes",),
    "fabric": ("nodes",),
    "serving": ("nodes",),
    "alarms": ("objects",),
}
"""Levels, in the order in which they run, with those that have to run before."""

RUN_LABEL = "ultrascale.dev/acceptance"
"""Label of every object that an acceptance makes; its value is the run's id."""


class Cost(Frozen):
    """Nodes that a check holds."""

    pool: str  # Pool of the nodes
    nodes: int  # Their number
    minutes: float  # Most minutes for which it holds them
    usd: float | None = None  # Price at the file's prices, US dollars; None where none is known


class Kept(Frozen):
    """Evidence of a run; checks add to it."""

    logs: dict[str, str] = field(default_factory=dict[str, str])  # Logs by a file name
    # Measured values, in the form of the cluster file's key `facts`.
    facts: list[Mapping[str, object]] = field(default_factory=list[Mapping[str, object]])


class Run(Frozen):
    """The input of every check."""

    id: str  # Value of `RUN_LABEL`: letters and digits, unique for the cluster
    file: Path  # The cluster file
    plan: ClusterPlan  # The cluster
    cluster: Cluster  # Its API server, seen with the user's credentials
    at: datetime  # Time of its start, in UTC
    manifests: Path  # Folder of the manifests that `synth` wrote
    assembly: Path  # Folder of the templates that `synth` wrote
    account: "Account | None" = None  # The account; None where it cannot be asked
    grows: bool = False  # Whether pools of size 0 are grown by a node
    say: Callable[[str], None] = lambda _line: None  # Is called with progress, for people
    kept: Kept = field(default_factory=Kept)
    clock: Clock = field(default_factory=Clock)  # The clock of its waits


class Check(Frozen):
    """A check of a live cluster."""

    level: Level  # Its level
    name: str  # Its name: words joined by hyphens
    subject: str  # Subject, such as a pool, an engine or a service; empty for the cluster
    title: str  # The statement that it checks
    pool: str = ""  # The pool that it concerns alone; empty for the whole cluster
    # Yields its findings, always in the same order. A `ClusterError` or an `UnansweredError` ends
    # the check, and becomes a finding.
    run: Callable[[Run], Iterator[Finding]]
    costs: Sequence[Cost] = ()  # Nodes that it holds
    leaves: str = ""  # What a stop leaves behind until it is cleaned up; empty for nothing


class Outcome(Frozen):
    """A finding of a run."""

    level: Level  # Level of its check
    finding: Finding  # The finding
    seconds: float  # Duration of its check


class Acceptance(Frozen):
    """A run that has ended."""

    id: str  # Id of the run
    levels: Sequence[Level]  # Levels that were asked for
    started: datetime  # In UTC
    ended: datetime  # In UTC
    outcomes: Sequence[Outcome]  # Findings, in the order of the checks
    versions: Mapping[str, str]  # Versions of server and client
    left: Sequence[str] = ()  # Objects of the run that are still there
    stopped: int = 0  # Exit status of the signal that stopped it; 0 where it came to its end
    kept: Kept = field(default_factory=Kept)

    @property
    def has_passed(self) -> bool:
        """Whether everything that was asked for was seen, and is as the file says."""
        seen = all(outcome.finding.state == "pass" for outcome in self.outcomes)
        return seen and not self.left and not self.stopped
