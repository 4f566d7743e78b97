"""Queues and PriorityClasses of jobs."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.documents import Json
from ultrascale.plan.model import PriorityClassPlan, QueuePlan
from ultrascale_k8s.objects import define_object


class QueueChart(cdk8s.Chart):
    """Defines one Queue.

    A chart of its own, so that a queue that leaves the cluster file leaves the cluster: what is
    taken out of a chart that stays is never deleted.
    """

    def __init__(self, scope: Construct, id: str, *, plan: QueuePlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_object(
            self,
            "Queue",
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": plan.name},
                "spec": queue_spec(plan),
            },
        )


def queue_spec(queue: QueuePlan) -> dict[str, Json]:
    """Return the ``spec`` of the Queue.

    It leaves nothing for Volcano's webhook to fill in, which does not run yet at the first deploy.

    Source: https://volcano.sh/en/docs/queue/
    """
    spec: dict[str, Json] = {"weight": queue.weight, "reclaimable": queue.reclaimable}
    if queue.capability:
        spec["capability"] = dict(queue.capability)
    return spec


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
