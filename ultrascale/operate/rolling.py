"""Renewal of the nodes of a reserved pool, in batches: cordon, drain, replace.

A node ends before its successor starts, so there are never more nodes than the reservation holds.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from ultrascale.account import Account
from ultrascale.cluster_api.objects import NODE, NODE_CLAIM, POD, Kind, Object, label, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster, missing_rights
from ultrascale.documents import look_up, objects, text
from ultrascale.errors import (
    AccountError,
    ClusterError,
    InterruptedWorkError,
    QuestionError,
    RefusedError,
)
from ultrascale.frozen import Frozen
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.fleets import Fleet, GroupFleet, NodePoolFleet, Old
from ultrascale.operate.node_groups import find_group
from ultrascale.operate.node_pools import NodePool
from ultrascale.operate.pool_size import Renewal, plan_renewal
from ultrascale.operate.tunnel import ends_as_by_ctrl_c
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.names import DO_NOT_DISRUPT, JOB_LABEL

# --- Drain of nodes: cordon them, and evict their pods --------------------------------------------
# Sources:
#     https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
#     https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/


# Answers that mean "try later": a disruption budget's refusal, and the first status of a server's
# failure, which a pod with two budgets causes.
# Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
_NOT_NOW, _SERVER_FAULT = 429, 500
# Karpenter waits for a pod with this annotation to its end, and so do we, even if the pod states a
# duration.
# Sources: https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
# https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pod/scheduling.go
_PROTECTS = re.compile(r"true|(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")
# Karpenter gives up on a pod one minute after its grace period.
# Source: https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pod/scheduling.go
_LATE = timedelta(minutes=1)
_QUESTIONS = 16
_Told = TypeVar("_Told")
_STATIC_POD = "kubernetes.io/config.mirror"
_OVER = frozenset({"Succeeded", "Failed"})


class Work(Frozen):
    """Pods on nodes that are to end, without pods that every node has."""

    jobs: Mapping[str, Sequence[str]]  # The nodes that each job has pods on
    others: int  # Number of other pods that their owners start again elsewhere
    lost: Sequence[str]  # Pods without an owner, which nothing starts again
    kept: Sequence[str]  # Nodes that carry `karpenter.sh/do-not-disrupt`


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Empties nodes."""

    cluster: Cluster  # API server of their cluster
    # Whether pods with `karpenter.sh/do-not-disrupt`, as those of training jobs have, are evicted
    # too; otherwise the drain waits for them
    evicts_jobs: bool
    clock: Clock  # The clock
    _refused: Counter[str] = field(default_factory=Counter[str], init=False, repr=False)

    def cordon(self, node: str) -> None:
        """Keep new pods off a node; a node that is already gone is no error.

        Raises:
            ClusterError: The API server refuses, or cannot be reached.
        """
        try:
            self.cluster.patch(
                NODE.path(name=node), [{"op": "add", "path": "/spec/unschedulable", "value": True}]
            )
        except RefusedError as error:
            if error.status != NOT_FOUND:
                raise

    def work_on(self, nodes: Sequence[str]) -> Work:
        """Return the pods on ``nodes``, by job.

        Raises:
            ClusterError: The API server refuses, or cannot be reached.
        """
        jobs: dict[str, list[str]] = {}
        others, lost = 0, list[str]()
        for node, pods in zip(nodes, self._evictable_pods(nodes), strict=True):
            for job in {label(pod, JOB_LABEL) for pod in pods} - {""}:
                jobs.setdefault(job, []).append(node)
            rest = [pod for pod in pods if not label(pod, JOB_LABEL)]
            alone = [
                _owner_name(pod) for pod in rest if not objects(pod, "metadata", "ownerReferences")
            ]
            others += len(rest) - len(alone)
            lost += alone
        manifests = _answers_in_parallel(
            lambda node: self.cluster.find(NODE.path(name=node)), nodes
        )
        kept = [
            node
            for node, manifest in zip(nodes, manifests, strict=True)
            if _is_protected(manifest or {})
        ]
        return Work(jobs=dict(sorted(jobs.items())), others=others, lost=lost, kept=kept)

    def waiting_for(self, nodes: Sequence[str]) -> str:
        """Evict the pods of cordoned nodes, and name a pod that is still there; empty without any.

        Raises:
            ClusterError: The server refuses for another reason than a disruption budget.
        """
        left: list[str] = []
        asks = True
        pods = [
            pod for work in self._evictable_pods(nodes) for pod in work if not self._is_stuck(pod)
        ]
        # Pods with the most refusals come last, so that the other pods need not wait for them.
        for pod in sorted(pods, key=lambda waiting: self._refused[_owner_name(waiting)]):
            why = self._reason_to_stay(pod)
            if not why and asks:
                why, asks = self._evict(pod)
            elif not why:
                why = f"{_owner_name(pod)} is asked next"
            if why:
                left.append(why)
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return f"{left[0]}{more}" if left else ""

    def _evictable_pods(self, nodes: Sequence[str]) -> Sequence[Sequence[Object]]:
        """Return the pods to evict, by node."""

        def work(node: str) -> Sequence[Object]:
            pods = self.cluster.items(POD.path(), {"fieldSelector": f"spec.nodeName={node}"})
            return [pod for pod in pods if not _belongs_to_node(pod) and not _is_over(pod)]

        return _answers_in_parallel(work, nodes)

    def _reason_to_stay(self, pod: Object) -> str:
        """Return why a pod is not evicted now; empty if it can be evicted."""
        if text(pod, "metadata", "deletionTimestamp"):
            return f"{_owner_name(pod)} is in its grace period"
        if not self.evicts_jobs and _is_protected(pod):
            return f"{_owner_name(pod)} runs on until its job ends ({DO_NOT_DISRUPT})"
        return ""

    def _is_stuck(self, pod: Object) -> bool:
        """Return whether a pod has outlived its grace period, as on a dead node."""
        ends = text(pod, "metadata", "deletionTimestamp")
        return bool(ends) and self.clock.now() - datetime.fromisoformat(ends) > _LATE

    def _evict(self, pod: Object) -> tuple[str, bool]:
        """Evict a pod, and return why it is still there, and whether to evict other pods now.

        No other pod is evicted after a budget's refusal or a server's failure: each refusal takes
        seconds, as a postponed request is sent again.
        """
        eviction = Kind("v1", "Eviction", f"pods/{name(pod)}/eviction")
        namespace = text(pod, "metadata", "namespace")
        metadata = {"name": name(pod), "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        try:
            self.cluster.create(eviction, namespace, body, dry_run=False)
        except RefusedError as error:
            if error.status == NOT_FOUND:
                return "", True
            if error.status != _NOT_NOW and error.status < _SERVER_FAULT:
                raise
            self._refused[_owner_name(pod)] += 1
            return f"{_owner_name(pod)}: {error.message}", False
        return f"{_owner_name(pod)} was asked to leave", True


def _answers_in_parallel(ask: Callable[[str], _Told], nodes: Sequence[str]) -> Sequence[_Told]:
    """Return an answer for each node, asked in parallel: a pool may have thousands of nodes."""
    with ThreadPoolExecutor(_QUESTIONS) as several:
        return list(several.map(ask, nodes))


def _owner_name(pod: Object) -> str:
    return f"pod {name(pod)} in {text(pod, 'metadata', 'namespace')}"


def _belongs_to_node(pod: Object) -> bool:
    owners = {text(owner, "kind") for owner in objects(pod, "metadata", "ownerReferences")}
    is_static = look_up(pod, "metadata", "annotations", _STATIC_POD) is not None
    return is_static or bool(owners & {"DaemonSet", "Node"})


def _is_over(pod: Object) -> bool:
    return text(pod, "status", "phase") in _OVER


def _is_protected(manifest: Object) -> bool:
    said = text(manifest, "metadata", "annotations", DO_NOT_DISRUPT)
    return _PROTECTS.fullmatch(said) is not None


# --- Renewal of the nodes of a reserved pool, in batches ------------------------------------------


_LOOK_SECONDS = 15


class Pace(Frozen):
    """Size of a batch, and time limits of a roll."""

    batch: int  # Nodes in a batch
    until: (
        datetime | None
    )  # Time after which no batch begins and no drain goes on; None sets no end
    drain_minutes: float  # Limit for the pods of a batch to leave
    join_minutes: float  # Limit for old nodes to end, and again for new ones to take work
    # Number of other nodes that may be missing or broken: among thousands, some always are.
    broken: int = 0


class RollPlan(Frozen):
    """Nodes to renew, and the jobs and pods on them."""

    renewal: Renewal  # The pool
    old: Sequence[Old]  # Nodes on an older template
    work: Work  # Pods on those nodes
    pace: Pace  # Size of a batch and limits of time
    evicts_jobs: bool  # Whether training jobs are stopped; otherwise the roll waits for them


class Rolled(Frozen):
    """Result of a renewal."""

    renewal: Renewal  # The pool
    old: Sequence[Old]  # Nodes on an older template at the start
    left: Sequence[Old] = ()  # Nodes of ``old`` that were not renewed in time
    drifted: Sequence[Old] = ()  # Nodes on an older template at the end
    # Why a pool without old nodes is incomplete; empty where it is complete.
    unready: str = ""


class Roll(Frozen, kw_only=False):
    """Renewal of the nodes of a pool."""

    fleet: Fleet  # The nodes
    drain: Drain  # Empties nodes
    pace: Pace  # Size of a batch and limits of time
    clock: Clock  # The clock
    say: Callable[[str], None]  # Is called with a line for each step

    def run(self, agreed: Sequence[Old]) -> Sequence[Old]:
        """Renew nodes on an older template, and return the nodes that were not renewed in time.

        A renewal may be repeated at any time: it leaves new nodes alone, and first finishes a
        stopped renewal.

        Args:
            agreed: The nodes to renew. Other nodes are left alone, even if they drift meanwhile.

        Raises:
            ClusterError: A step failed or took too long. No later step was begun.
        """
        self._wait_until_whole(agreed)
        while left := self._still_old(agreed):
            if self.pace.until is not None and self.clock.now() >= self.pace.until:
                return left
            batch, rest = left[: self.pace.batch], left[self.pace.batch :]
            self._renew(batch, rest)
            self.say(f"{len(batch)} renewed, {len(rest)} to go")
        return ()

    def _still_old(self, agreed: Sequence[Old]) -> Sequence[Old]:
        old: dict[str, Old] = {}

        def look() -> str:
            old.update((node.id, node) for node in self.fleet.old())
            return ""

        self._wait(look, self.pace.join_minutes)
        return [old[node.id] for node in agreed if node.id in old]

    def _renew(self, batch: Sequence[Old], rest: Sequence[Old]) -> None:
        nodes = [old.node for old in batch if old.node]
        self.say(f"renewing {', '.join(old.id for old in batch)}")
        try:
            self._wait(lambda: self._cordon_all(nodes), self.pace.join_minutes)
            self._wait(lambda: self.drain.waiting_for(nodes), self._drain_minutes())
            self._wait(lambda: self._end_all(batch), self.pace.join_minutes)
        except KeyboardInterrupt:
            if nodes:
                self.say(_stay_cordoned(nodes))
            raise
        except (AccountError, ClusterError) as error:
            if not nodes:
                raise
            raise ClusterError(f"{error}; {_stay_cordoned(nodes)}") from error
        self._wait(lambda: self.fleet.waiting_for_end(batch), self.pace.join_minutes)
        if self.fleet.pause_seconds:
            self.clock.sleep(self.fleet.pause_seconds)
        self._wait_until_whole(rest)

    def _cordon_all(self, nodes: Sequence[str]) -> str:
        for node in nodes:
            self.drain.cordon(node)
        return ""

    def _end_all(self, batch: Sequence[Old]) -> str:
        for old in batch:
            self.fleet.end(old)
        return ""

    def _wait_until_whole(self, old: Sequence[Old]) -> None:
        """Wait until all nodes other than ``old`` are new, and all but `Pace.broken` take work."""
        self._wait(
            lambda: self.fleet.waiting_for_rest(old, broken=self.pace.broken),
            self.pace.join_minutes,
        )

    def _drain_minutes(self) -> float:
        if self.pace.until is None:
            return self.pace.drain_minutes
        left = (self.pace.until - self.clock.now()).total_seconds() / 60
        return max(0.0, min(self.pace.drain_minutes, left))

    def _wait(self, look: Callable[[], str], minutes: float) -> None:
        wait(
            self.clock,
            look,
            minutes=minutes,
            every=_LOOK_SECONDS,
            say=self.say,
            stuck=self.fleet.trouble,
        )


def _stay_cordoned(nodes: Sequence[str]) -> str:
    return (
        f"{', '.join(nodes)} stay cordoned and paid for, unless they have ended: run this again, "
        f"or `kubectl uncordon {' '.join(nodes)}`"
    )


def roll(
    plan: ClusterPlan,
    pool: str,
    *,
    cluster: Callable[[], Cluster],
    account: Callable[[Cluster], Account],
    pace: Pace,
    evicts_jobs: bool = False,
    review: Callable[[RollPlan], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    clock: Clock | None = None,
) -> Rolled:
    """Renew a pool's nodes that were launched from an older template.

    Args:
        plan: The cluster.
        pool: Name of a pool, of a shard or of a NodePool.
        cluster: Connects to the API server.
        account: Connects to the AWS account of a node group.
        pace: Size of a batch and limits of time.
        evicts_jobs: Whether training jobs are stopped; otherwise the roll waits for them.
        review: Is called before the first batch; an error that it raises stops the roll.
        say: Is called with a line for each step.
        clock: The clock; by default this machine's.

    Raises:
        QuestionError: There is no such pool, something else renews its nodes, or the time is over.
        AccountError: AWS does not answer.
        ClusterError: The user lacks a right, or a step failed or took too long.
        InterruptedWorkError: The user stopped the roll.
    """
    clock = clock or Clock()
    _refuse_many_broken(pace)
    renewal = plan_renewal(plan.nodes, plan.all_pools, pool, at=clock.now(), until=pace.until)
    pace = replace(pace, until=renewal.until)
    api = cluster()
    fleet = _fleet(plan.name, renewal, api, account)
    drain = Drain(cluster=api, evicts_jobs=evicts_jobs, clock=clock)
    old = fleet.old()
    if not old:
        missing = fleet.waiting_for_rest((), broken=pace.broken)
        trouble = fleet.trouble() if missing else ""
        return Rolled(renewal=renewal, old=(), unready="; ".join(filter(None, (missing, trouble))))
    _refuse_without_rights(renewal, api)
    work = drain.work_on([node.node for node in old if node.node])
    review(RollPlan(renewal=renewal, old=old, work=work, pace=pace, evicts_jobs=evicts_jobs))
    try:
        with ends_as_by_ctrl_c():
            left = Roll(fleet, drain, pace, clock, say).run(old)
    except KeyboardInterrupt:
        raise InterruptedWorkError(
            f"{pool}: stopped; a node that has ended is replaced; the same command continues"
        ) from None
    return Rolled(renewal=renewal, old=old, left=left, drifted=() if left else fleet.old())


def _refuse_many_broken(pace: Pace) -> None:
    if pace.broken >= pace.batch:
        wrong = f"--broken: fewer than a batch, got {pace.broken} and {pace.batch}"
        raise QuestionError([f"{wrong}; else no batch would wait for the successors of the last"])


def _fleet(
    name: str, renewal: Renewal, cluster: Cluster, account: Callable[[Cluster], Account]
) -> Fleet:
    pool = renewal.pool
    if renewal.node_pools:
        return NodePoolFleet(
            node_pools=[
                NodePool(cluster=cluster, name=node_pool.name, pool=pool)
                for node_pool in renewal.node_pools
            ]
        )
    return GroupFleet(group=find_group(account(cluster), name, pool), cluster=cluster, pool=pool)


def _refuse_without_rights(renewal: Renewal, cluster: Cluster) -> None:
    """Raise an error if the user lacks the rights to drain and end nodes."""
    needed = [("patch", NODE), *([("delete", NODE_CLAIM)] if renewal.node_pools else [])]
    if missing := missing_rights(cluster, needed):
        raise ClusterError(
            f"{renewal.pool.name}: nothing was begun: you may not {', nor '.join(missing)}; ask an "
            "administrator of the cluster for this right, or choose another --context"
        )
