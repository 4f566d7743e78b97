"""A model of kube-scheduler, and of Karpenter beside it: where pods land on the nodes of a plan.

It filters, scores and preempts as the scheduler's default plugins do, as far as jobs ask for it,
and was held against what the real one was seen to do. It knows no topology, no ports, no volumes,
no disruption budgets, no images that nodes have already, and binds one pod after the other, at
once. A pod that says what it does not know is an error.

Sources:
    https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    https://karpenter.sh/docs/concepts/scheduling/
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ultrascale.catalog.quantities import amount

Spec = Mapping[str, Any]
Amounts = Mapping[str, Decimal]
Taint = Mapping[str, str]

_KEEPS_OFF = ("NoSchedule", "NoExecute")
# Weights of the scheduler's plugins NodeAffinity and NodeResourcesFit.
_AFFINITY_WEIGHT, _FIT_WEIGHT = 2, 1
_MOST_SCORE = 100
# What would keep a pod off a node, or waiting, and is not looked at here.
_UNKNOWN = frozenset(
    {"nodeName", "overhead", "resourceClaims", "schedulingGates", "topologySpreadConstraints"}
)


@dataclass(eq=False)
class Node:
    """A node: its labels, its taints, and what it gives to pods."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    unschedulable: bool = False


@dataclass(frozen=True)
class Launcher:
    """Launcher of nodes for waiting pods: a NodePool, tried in the order of its weight."""

    name: str
    weight: int
    most: int
    node: Node


@dataclass(eq=False)
class Pod:
    """A pod, and where it is; None while it waits."""

    name: str
    spec: Spec
    priority: int
    preempts: bool
    node: Node | None = None

    @property
    def requests(self) -> Amounts:
        """Sum of its containers' requests; a resource without a request counts with its limit."""
        total: dict[str, Decimal] = {"pods": Decimal(1)}
        for container in self.spec["containers"]:
            resources = container.get("resources", {})
            stated = {**resources.get("limits", {}), **resources.get("requests", {})}
            for key, value in stated.items():
                total[key] = total.get(key, Decimal()) + amount(str(value))
        return total


@dataclass(eq=False)
class Scheduler:
    """Nodes, what launches more of them, and pods in the order in which they came."""

    nodes: list[Node]
    launchers: tuple[Launcher, ...] = ()
    pods: list[Pod] = field(default_factory=list[Pod])

    def run(self, *pods: Pod) -> None:
        """Take new pods, and place all that wait until nothing moves any more."""
        self.pods += pods
        moved = True
        while moved:
            waiting = sorted((p for p in self.pods if p.node is None), key=lambda p: -p.priority)
            # What is preempted comes back, and takes its turn.
            moved = any([self._place(pod) for pod in waiting])

    def on(self, node: Node) -> list[Pod]:
        """Return the pods of a node."""
        return [pod for pod in self.pods if pod.node is node]

    def _place(self, pod: Pod) -> bool:
        node = self._best(pod) or self._preempted(pod) or self._launched(pod)
        pod.node = node
        return node is not None

    def _best(self, pod: Pod) -> Node | None:
        fits = [n for n in self.nodes if admits(pod, n) and self._has_room(pod, n)]
        top = max((preference(pod, node) for node in fits), default=0) or 1
        return max(fits, key=lambda node: self._score(pod, node, top), default=None)

    def _score(self, pod: Pod, node: Node, top: int) -> Decimal:
        liked = Decimal(preference(pod, node) * _MOST_SCORE) / top
        free = self._free(node, self.on(node))
        shares = [
            (free[key] - pod.requests.get(key, 0)) / node.allocatable[key]
            for key in ("cpu", "memory")
        ]
        room = _MOST_SCORE * sum(shares, Decimal()) / len(shares)
        return _AFFINITY_WEIGHT * liked + _FIT_WEIGHT * room

    def _has_room(self, pod: Pod, node: Node, without: Iterable[Pod] = ()) -> bool:
        gone = [*without]
        free = self._free(node, (each for each in self.on(node) if each not in gone))
        return all(value <= free.get(key, 0) for key, value in pod.requests.items())

    def _free(self, node: Node, pods: Iterable[Pod]) -> dict[str, Decimal]:
        free = dict(node.allocatable)
        for pod in pods:
            for key, value in pod.requests.items():
                free[key] = free.get(key, Decimal()) - value
        return free

    def _preempted(self, pod: Pod) -> Node | None:
        """Return a node from which as few and as unimportant pods as can be had to go."""
        if not pod.preempts:
            return None
        chosen = {node: self._victims(pod, node) for node in self.nodes if admits(pod, node)}
        possible = {node: victims for node, victims in chosen.items() if victims}
        if not possible:
            return None
        node = min(
            possible,
            key=lambda each: (
                max(victim.priority for victim in possible[each]),
                sum(victim.priority for victim in possible[each]),
                len(possible[each]),
            ),
        )
        for victim in possible[node]:
            victim.node = None
        return node

    def _victims(self, pod: Pod, node: Node) -> list[Pod]:
        """Return the pods without which ``pod`` fits; none where it does not fit all the same."""
        lower = [each for each in self.on(node) if each.priority < pod.priority]
        if not self._has_room(pod, node, lower):
            return []
        victims = list(lower)
        for each in sorted(lower, key=lambda each: -each.priority):
            others = [victim for victim in victims if victim is not each]
            if self._has_room(pod, node, others):
                victims = others
        return victims

    def _launched(self, pod: Pod) -> Node | None:
        """Return a new node, by what the pod prefers as long as a NodePool can give it."""
        terms = sorted(_preferred(pod.spec), key=lambda term: -term["weight"])
        for place in range(len(terms) + 1):
            wanted: Spec = terms[place]["preference"] if place < len(terms) else {}
            for launcher in sorted(self.launchers, key=lambda each: -each.weight):
                own = [node for node in self.nodes if node.name.startswith(f"{launcher.name}/")]
                node = Node(
                    f"{launcher.name}/{len(own)}",
                    launcher.node.labels,
                    launcher.node.taints,
                    launcher.node.allocatable,
                )
                room = len(own) < launcher.most and self._has_room(pod, node)
                if room and admits(pod, node) and _matches(wanted, node.labels):
                    self.nodes.append(node)
                    return node
        return None


def admits(pod: Pod, node: Node) -> bool:
    """Return whether a pod may run on a node, apart from the room there."""
    spec = pod.spec
    _is_known(spec)
    selector: Mapping[str, str] = spec.get("nodeSelector", {})
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms: list[Spec] = required["nodeSelectorTerms"] if required else []
    return (
        not node.unschedulable
        and all(node.labels.get(key) == value for key, value in selector.items())
        # A term that says nothing fits no node.
        and (
            required is None
            or any(t.get("matchExpressions") and _matches(t, node.labels) for t in terms)
        )
        and all(tolerates(spec, taint) for taint in node.taints if taint["effect"] in _KEEPS_OFF)
    )


def _is_known(spec: Spec) -> None:
    unknown = _UNKNOWN & spec.keys() | spec.get("affinity", {}).keys() - {"nodeAffinity"}
    if unknown:
        raise ValueError(f"the model knows nothing of {', '.join(sorted(unknown))}")


def tolerates(spec: Spec, taint: Taint) -> bool:
    """Return whether one of a pod's tolerations is for ``taint``; a key left out is any."""
    return any(
        each.get("key") in (None, taint["key"])
        and each.get("effect") in (None, taint["effect"])
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in spec.get("tolerations", [])
    )


def preference(pod: Pod, node: Node) -> int:
    """Return the sum of the weights of what a pod prefers and a node has."""
    liked = (term for term in _preferred(pod.spec) if _matches(term["preference"], node.labels))
    return sum(term["weight"] for term in liked)


def _preferred(spec: Spec) -> list[Any]:
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    return affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])


def _matches(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if unknown := term.keys() - {"matchExpressions"}:
        raise ValueError(f"the model knows nothing of {', '.join(sorted(unknown))}")
    return all(_holds(rule, labels) for rule in term.get("matchExpressions", []))


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values", [])
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
        case other:
            raise ValueError(other)


def pods_of(name: str, count: int, spec: Spec, classes: Mapping[str, Any]) -> Iterator[Pod]:
    """Yield the pods of a workload, with what their PriorityClass says.

    Args:
        name: Name of the workload.
        count: How many.
        spec: Spec of each.
        classes: PriorityClasses of the cluster, by name.
    """
    named = classes.get(spec.get("priorityClassName", ""))
    for number in range(count):
        yield Pod(
            name=f"{name}-{number}",
            spec=spec,
            priority=named.value if named else 0,
            preempts=named.preempts if named else True,
        )
