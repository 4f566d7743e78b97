"""PriorityClasses of jobs."""

from collections.abc import Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import PriorityClassPlan
from ultrascale_k8s.objects import manifest


def priority_class_objects(plans: Sequence[PriorityClassPlan]) -> list[JsonObject]:
    """Return a PriorityClass for each plan, never as the global default.

    The value and the preemption policy of an existing class cannot change: Kubernetes refuses the
    change. A class with another value needs another name.
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
