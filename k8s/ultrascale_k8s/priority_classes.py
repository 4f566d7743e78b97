"""The PriorityClasses that jobs name."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import PriorityClassPlan


class PriorityClassesChart(cdk8s.Chart):
    """Defines one PriorityClass for each plan, never the global default.

    The value and the preemption policy of an existing class cannot change: Kubernetes refuses the
    apply. A class with another value needs another name.
    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    """

    def __init__(self, scope: Construct, id: str, *, plans: Sequence[PriorityClassPlan]) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for plan in plans:
            kube.KubePriorityClass(
                self,
                plan.name,
                metadata=kube.ObjectMeta(name=plan.name),
                value=plan.value,
                # A pod that names no class keeps priority 0, below every class of ours.
                global_default=False,
                preemption_policy="PreemptLowerPriority" if plan.preempts else "Never",
            )
