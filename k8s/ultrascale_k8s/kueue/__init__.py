"""Kueue's objects of a cluster, and what keeps pods from passing its queues by."""

from collections.abc import Iterable, Iterator, Mapping

from ultrascale.parts.kueue.model import Plan
from ultrascale_k8s._platform_chart import PlatformChart, plain_chart
from ultrascale_k8s.kueue.admission import queue_gate_objects
from ultrascale_k8s.kueue.controllers import jobset_certificate_objects, queueing_ingress_objects
from ultrascale_k8s.kueue.queues import (
    cluster_queue,
    cohort,
    local_queues,
    resource_flavor,
    topology,
    workload_priority,
)


def charts(plan: Plan) -> Mapping[str, Iterable[PlatformChart]]:
    """Return its charts by the layer that applies them."""
    return {"platform": _of_controllers(plan), "scheduling": _of_queues(plan)}


def _of_controllers(plan: Plan) -> Iterator[PlatformChart]:
    """Yield what its controllers need, which the stack of its layer installs by Helm."""
    # Where Kueue is left running, its webhooks must be reached, or no job could be made.
    yield plain_chart("queueing-ingress", queueing_ingress_objects(), retained=True)
    # JobSet's chart stays as well, and its webhooks with it.
    yield plain_chart("jobset-certificate", jobset_certificate_objects(), retained=True)
    yield plain_chart("queue-gate", queue_gate_objects(plan))


def _of_queues(plan: Plan) -> Iterator[PlatformChart]:
    """Yield Kueue's objects, each after those that it names.

    They are deleted the other way round: Kueue keeps a flavor as long as a queue names it, and a
    queue as long as a job has its quota. What leaves the cluster file by itself has a chart of its
    own: nothing that is taken out of a chart that stays is ever deleted.
    """
    objects = [
        *((f"topology-{each.name}", [topology(each)]) for each in plan.topologies),
        *((f"flavor-{each.name}", [resource_flavor(each)]) for each in plan.flavors),
        ("cohort", [cohort(plan.cohort)]),
        ("workload-priorities", [workload_priority(each) for each in plan.priorities]),
        *(
            (
                f"cluster-queue-{each.name}",
                [cluster_queue(each, cohort=plan.cohort.name), *local_queues(each)],
            )
            for each in plan.queues
        ),
    ]
    for name, manifests in objects:
        yield plain_chart(name, manifests)
