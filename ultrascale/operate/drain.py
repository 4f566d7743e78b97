"""Drain of nodes: cordon them, and evict their pods.

Sources:
    https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
    https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from ultrascale.cluster_api.kinds import NODE, POD, Kind
from ultrascale.cluster_api.objects import Object, label, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import look_up, objects, text
from ultrascale.errors import RefusedError
from ultrascale.frozen import Frozen
from ultrascale.operate.clock import Clock
from ultrascale.plan.names import DO_NOT_DISRUPT, JOB_LABEL

# Answers that mean "try later": a disruption budget's refusal, and the first status of a server's
# failure, which a pod with two budgets causes. Source:
# https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
_NOT_NOW, _SERVER_FAULT = 429, 500
# Karpenter waits for a pod with this annotation to its end, and so do we, even if the pod states a
# duration. Sources: https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
# https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pod/scheduling.go
_PROTECTS = re.compile(r"true|(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")
# Karpenter gives up on a pod one minute after its grace period. Source:
# https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pod/scheduling.go
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
