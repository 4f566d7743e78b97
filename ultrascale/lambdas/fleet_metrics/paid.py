"""Owners of a cluster's accelerators, and the reasons of idle ones, at one moment."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..ledger import HELD, JOB_WAITS, JOINING, NO_JOB, UNHEALTHY, Part, first_reason
from .idle import IdleJobs
from .settings import LedgerSettings, Settings

if TYPE_CHECKING:
    from ..kubernetes_objects import Object

_ZONE_LABEL = "topology.kubernetes.io/zone"
# The last part of a node's provider id; on HyperPod more stands before it.
_INSTANCE = re.compile(r"i-[0-9a-f]+$")
_PLACES = 4  # Of fractions, where pods share a Neuron device


class Owner(NamedTuple):
    """The user of accelerators."""

    state: Literal["running", "starting"]
    namespace: str
    team: str
    queue: str
    job: str


class _Node(NamedTuple):
    instance: str
    type: str
    pool: str
    zone: str
    purchase: str
    reservation: str
    accelerators: int
    failed: int  # Accelerators that it has and does not offer
    reasons: tuple[str, ...]  # What holds of its idle accelerators


class Paid:
    """Accelerators of nodes with their owners; collected from streams of nodes, pods and jobs.

    Attributes:
        is_whole: Whether nodes and pods were read to their ends.
        settings: The settings of the ledger.
        idle: Jobs that may leave accelerators idle; None where nobody asks for them.
        joined: Nodes of each reservation, once all values were read.
        unused: Idle nodes and parts of nodes by reservation, pool and reason, like these.
    """

    def __init__(self, settings: LedgerSettings) -> None:
        self.settings = settings
        self.is_whole = False
        self.idle = None if settings.idle is None else IdleJobs(settings.idle)
        self.joined: Counter[str] = Counter()
        self.unused: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._nodes: dict[str, _Node] = {}
        # Users of each node's accelerators with their numbers; equal pairs share one object
        self._used: dict[str, tuple[tuple[Owner, float], ...]] = {}
        self._wanted: set[str] = set()  # Pools that waiting jobs could use
        # Accelerators that they want, by their pods and by their entry in a queue
        self._waiting: dict[tuple[str, str], list[float]] = {}
        self._usable: dict[tuple[str, str], set[str]] = {}  # Pools of each
        self._pairs: dict[tuple[Owner, float], tuple[Owner, float]] = {}

    def add_node(
        self, node: "Object", offered: int, reasons: Sequence[str], cluster: Settings
    ) -> None:
        """Add a node, with the accelerators that it offers and what holds of idle ones."""
        labels = node["metadata"].get("labels", {})
        type, pool, zone, purchase = (
            intern(labels.get(label, ""))
            for label in (
                cluster.instance_type_label,
                cluster.pool_label,
                _ZONE_LABEL,
                cluster.capacity_label,
            )
        )
        whole = max(offered, self.settings.accelerators.get(type, 0))
        if not whole:
            return
        name, known = node["metadata"]["name"], self.settings.reservations
        if self.idle is not None:
            self.idle.add_node(name, pool, whole)
        named = (labels[label] for label in self.settings.labels if label in labels)
        instance = _INSTANCE.search(node["spec"].get("providerID", ""))
        self._nodes[name] = _Node(
            instance[0] if instance else "",
            type,
            pool,
            zone,
            purchase,
            intern(next(named, known.get(pool, ""))),
            whole,
            whole - offered,
            tuple(reasons),
        )

    def add_pod(self, node: str, owner: Owner, amount: float, *, ends: bool = False) -> None:
        """Add a pod on ``node``; one that ``ends`` has no use of an unhealthy node."""
        if ends and node in self._nodes and UNHEALTHY in self._nodes[node].reasons:
            return
        pair = owner, amount
        self._used[node] = (*self._used.get(node, ()), self._pairs.setdefault(pair, pair))

    def add_waiting(
        self, job: tuple[str, str], amount: float, pools: Iterable[str], *, entry: bool = False
    ) -> None:
        """Add accelerators that a pod of a job wants, or all pods of its entry in a queue.

        Args:
            job: Namespace and name of the job.
            amount: The accelerators.
            pools: Pools that could give them.
            entry: Whether this is an entry in a queue, whose pods may be there as well.
        """
        self._waiting.setdefault(job, [0, 0])[entry] += amount
        usable = self._usable.setdefault(job, set())
        usable.update(pools)
        self._wanted |= usable

    def demand(self, pool: str) -> float:
        """Return the accelerators that jobs want which wait and could use a pool."""
        return sum(max(n) for job, n in self._waiting.items() if pool in self._usable[job])

    def use_by_reservation(self) -> Mapping[str, float]:
        """Return the accelerators in use on the nodes of each reservation."""
        used: defaultdict[str, float] = defaultdict(float)
        for name, node in self._nodes.items():
            taken = sum(amount for _, amount in self._used.get(name, ()))
            used[node.reservation] += min(taken, node.accelerators)
        return used

    def values(self) -> Iterator[tuple[str, str]]:
        """Yield each node and waiting job with its row's text, without the times; forget nodes."""
        unused = () if self.idle is None else {*self.idle.idle}
        for name in [*self._nodes]:
            node = self._nodes.pop(name)
            parts = [*self._parts(node, self._used.pop(name, ()), unused)]
            self.joined[node.reservation] += 1
            for part in parts:
                if "reason" in part:
                    key = node.reservation, node.pool, part["reason"]
                    self.unused[key] += part["n"] / node.accelerators
            row = {"kind": "node", "node": name, **node._asdict(), "parts": parts}
            del row["failed"], row["reasons"]
            yield name, json.dumps(row, separators=(",", ":"))
        for (namespace, job), amounts in self._waiting.items():
            pools = sorted(self._usable[namespace, job])
            row = {
                "kind": "waiting",
                "namespace": namespace,
                "job": job,
                "n": _number(max(amounts)),
            }
            text = json.dumps({**row, "pools": pools}, separators=(",", ":"))
            yield f"waiting/{namespace}/{job}", text

    def _parts(
        self, node: _Node, used: Iterable[tuple[Owner, float]], unused: Collection[str]
    ) -> Iterator[Part]:
        left: float = node.accelerators
        sums: defaultdict[Owner, float] = defaultdict(float)
        for owner, amount in used:
            sums[owner] += amount
        for owner, amount in sorted(sums.items()):
            # Pods that end may hold more for a moment.
            if taken := _number(min(amount, left)):
                state, namespace, team, queue, job = owner
                part: Part = {"n": taken, "state": state, "namespace": namespace, "team": team}
                part["queue"], part["job"] = queue, job
                if f"{namespace}/{job}" in unused:
                    part["reason"] = HELD
                yield part
            left -= taken
        stopped = {UNHEALTHY, JOINING}.intersection(node.reasons)
        failed = 0 if stopped else min(node.failed, left)
        demand = JOB_WAITS if node.pool in self._wanted else NO_JOB
        reason = first_reason((*node.reasons, demand))
        for amount, why in ((failed, UNHEALTHY), (left - failed, reason)):
            if idle := _number(amount):
                yield {"n": idle, "state": "idle", "reason": why}


def _number(amount: float) -> float:
    rounded = round(amount, _PLACES)
    return int(rounded) if rounded == int(rounded) else rounded
