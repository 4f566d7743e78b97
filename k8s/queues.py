"""The Volcano queues that jobs wait in."""

import cdk8s
from constructs import Construct

from k8s.volcano.objects import define_object
from ultrascale.plan.model import QueuePlan, VolcanoPlan


class QueuesChart(cdk8s.Chart):
    """Defines one Queue for each queue of the plan. Applied before Volcano's webhooks."""

    def __init__(self, scope: Construct, id: str, *, plan: VolcanoPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for queue in plan.queues:
            define_object(
                self,
                queue.name,
                {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": {"name": queue.name},
                    "spec": queue_spec(queue),
                },
            )


def queue_spec(queue: QueuePlan) -> dict[str, object]:
    """Return the ``spec`` of the Queue.

    It leaves nothing for Volcano's webhook to fill in, which does not run yet at the first deploy.

    Source: https://volcano.sh/en/docs/queue/
    """
    spec: dict[str, object] = {"weight": queue.weight, "reclaimable": queue.reclaimable}
    if queue.capability:
        spec["capability"] = dict(queue.capability)
    return spec
