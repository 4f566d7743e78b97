"""Kueue's queues: waiting or running jobs whose queue leaves the cluster, or is new there.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/core/clusterqueue_controller.go
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/core/resourceflavor_controller.go
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/tas/topology_controller.go
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ultrascale.documents import objects, sequence, text
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import NAMESPACE, KubernetesObject, Objects, updated
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import text_of
from ultrascale.plan.names import QUEUED_PODS_POLICY

_BINDING = "ValidatingAdmissionPolicyBinding"
_LET_END = "let its jobs end, or send them to another queue, and name it then"

WITHOUT_PRIORITY = Harm(
    verdict="outage",
    lost="a priority that jobs name: once they are queued again, Kueue does not know them",
    instead=_LET_END,
)
"""Loss of jobs when their priority leaves the queues."""

_LOST: Mapping[str, Harm] = MappingProxyType(
    {
        "ClusterQueue": Harm(
            verdict="outage",
            lost="a queue: jobs wait in it without end, and while one runs that it admitted, Kueue "
            "keeps the queue and CloudFormation waits until it gives up",
            instead="hold it, `kubectl patch clusterqueue NAME --type merge --patch "
            '\'{"spec": {"stopPolicy": "Hold"}}\'`, let its jobs end, and name it then',
        ),
        "LocalQueue": Harm(
            verdict="outage",
            lost="a queue that jobs name: those that wait are never admitted",
            instead=_LET_END,
        ),
        "ResourceFlavor": Harm(
            verdict="outage",
            lost="nodes that queues count: jobs that name them wait without end, and those that "
            "run there are counted no more",
            instead="let the jobs on these nodes end, and name it then",
        ),
        "Topology": Harm(
            verdict="outage",
            lost="layers of the network by which pods are placed: jobs that ask for them wait "
            "without end",
            instead=_LET_END,
        ),
        "WorkloadPriorityClass": WITHOUT_PRIORITY,
    }
)

KINDS = frozenset(_LOST)
"""Kinds of Kueue's objects that waiting or running jobs need."""


def queue_in_use(applied: KubernetesObject) -> Harm:
    """Return the loss of jobs when an object of `KINDS` is deleted."""
    return _LOST[applied.kind]


def newly_gated(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield an admission policy that now refuses pods without a queue in more namespaces.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = applied
    there = {namespace.name for namespace in old.of_kind(NAMESPACE)}
    for after in new.of_kind(_BINDING):
        before = old.by_id.get(after.id)
        closed = judged_namespaces(after) - (
            frozenset() if before is None else judged_namespaces(before)
        )
        gated = sorted(there & closed)
        if after.name == QUEUED_PODS_POLICY and gated:
            action = "added" if before is None else "updated"
            change = replace(updated(after), action=action)
            yield change.harmed(_refused_pods(", ".join(gated)))


def _refused_pods(namespaces: str) -> Harm:
    return Harm(
        verdict="outage",
        lost=f"pods with accelerators that run in {namespaces} and are of no queue: once they are "
        "made anew, they are refused",
        instead="let these jobs end, move services to a namespace of their own, and name it then",
    )


def second_engine(applied: tuple[Objects, Objects], worlds: Worlds) -> Iterator[Change]:
    """Yield the stack of Kueue that is left behind while Volcano begins to place jobs."""
    old, new = applied
    stacks = {queue.holder[0] for queue in old.of_kind("ClusterQueue")}
    begins = any(queue.id not in old.by_id for queue in new.of_kind("Queue"))
    for stack in sorted(stacks - worlds.new.templates.keys()) if begins else ():
        yield Change(
            stack=stack,
            logical_id="SecondEngine",
            type="CloudFormation stack",
            name=stack,
            action="kept",
        ).harmed(
            Harm(
                verdict="outage",
                lost=f"the count of nodes: {stack} is left behind, Kueue goes on admitting its "
                "jobs, and Volcano gives the same nodes to others",
                instead="let the jobs of Kueue end and destroy the stack first, by the file that "
                f"has it: `cdk destroy --exclusively {stack} -c cluster=FILE`",
            )
        )


def judged_namespaces(binding: KubernetesObject) -> frozenset[str]:
    """Return the namespaces that a binding of an admission policy names."""
    terms = objects(binding.spec, "matchResources", "namespaceSelector", "matchExpressions")
    return frozenset(
        text_of(name)
        for term in terms
        if text(term, "operator") == "In"
        for name in sequence(term, "values")
    )
