"""Queues and PriorityClasses of jobs."""

from collections.abc import Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import PriorityClassPlan, QueuePlan
from ultrascale_k8s.objects import manifest


def queue_objects(queue: QueuePlan) -> list[JsonObject]:
    """Return the Queue of Volcano.

    It leaves nothing for Volcano's webhook to fill in, which does not run yet at the first deploy.

    Source: https://volcano.sh/en/docs/queue/
    """
    spec: dict[str, Json] = {"weight": queue.weight, "reclaimable": queue.reclaimable}
    if queue.capability:
        spec["capability"] = dict(queue.capability)
    return [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": queue.name},
            "spec": spec,
        }
    ]


def priority_class_objects(plans: Sequence[PriorityClassPlan]) -> list[JsonObject]:
    """Return one PriorityClass for each plan, never the global default.

    The value and the preemption policy of an existing class cannot change: Kubernetes refuses the
    apply. A class with another value needs another name.
    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    """
    return [
        manifest(
            "PriorityClass",
            plan.name,
            own_labels={},
            value=plan.value,
            # A pod that names no class keeps priority 0, below every class of ours.
            globalDefault=False,
            preemptionPolicy="PreemptLowerPriority" if plan.preempts else "Never",
        )
        for plan in plans
    ]
