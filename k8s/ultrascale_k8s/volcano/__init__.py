"""Volcano, the gang scheduler: its kinds, its three programs and their webhooks.

`VolcanoCrdsChart` is applied first and `VolcanoWebhooksChart` last, after `VolcanoChart` and the
queues, so that the first deployment never waits for a webhook that does not run yet.
"""

from collections.abc import Iterable, Iterator, Mapping

import cdk8s

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.volcano.model import Plan, QueuePlan
from ultrascale_k8s._platform_chart import PlatformChart, built_chart, plain_chart


def charts(plan: Plan) -> Mapping[str, Iterable[PlatformChart]]:
    """Return Volcano's charts, by the layer that applies them."""
    return {"platform": _platform_charts(plan)}


def _platform_charts(plan: Plan) -> Iterator[PlatformChart]:
    """Yield the platform's charts, webhooks last: their server must be up before they are asked."""
    from ultrascale_k8s.volcano.admission import VolcanoWebhooksChart
    from ultrascale_k8s.volcano.chart import VolcanoChart, VolcanoCrdsChart

    yield built_chart(VolcanoCrdsChart(cdk8s.App(), "volcano-crds"), retained=True)
    yield built_chart(VolcanoChart(cdk8s.App(), "volcano", plan=plan))
    for queue in plan.queues:
        yield plain_chart(f"queue-{queue.name}", queue_objects(queue))
    yield built_chart(VolcanoWebhooksChart(cdk8s.App(), "volcano-webhooks"))


def queue_objects(queue: QueuePlan) -> list[JsonObject]:
    """Return the Volcano Queue of a queue.

    All fields are set: Volcano's webhook, which would set defaults, does not run yet at the first
    deployment.

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
