"""Kueue's objects of a cluster, and policies that keep pods from bypassing its queues."""

from collections.abc import Iterable, Iterator, Mapping

from ultrascale.documents import JsonObject
from ultrascale.parts.kueue import facts, jobset
from ultrascale.parts.kueue.model import Plan
from ultrascale_k8s._platform_chart import PlatformChart, plain_chart
from ultrascale_k8s.kueue.admission import queue_gate_objects
from ultrascale_k8s.kueue.queues import (
    cluster_queue,
    cohort,
    local_queues,
    resource_flavor,
    topology,
    workload_priority,
)
from ultrascale_k8s.namespaces import program_policy
from ultrascale_k8s.objects import manifest


def charts(plan: Plan) -> Mapping[str, Iterable[PlatformChart]]:
    """Return Kueue's charts, by the layer that applies them."""
    return {"platform": _controller_charts(plan), "scheduling": _queue_charts(plan)}


def _controller_charts(plan: Plan) -> Iterator[PlatformChart]:
    """Yield the charts that Kueue's controllers need; a stack installs Kueue itself by Helm."""
    # Even if Kueue has left the file and still runs, its webhooks must be reachable, or no job
    # could be made.
    yield plain_chart("queueing-ingress", queueing_ingress_objects(), retained=True)
    # JobSet's chart stays as well, and with it its webhooks.
    yield plain_chart("jobset-certificate", jobset_certificate_objects(), retained=True)
    yield plain_chart("queue-gate", queue_gate_objects(plan))


def _queue_charts(plan: Plan) -> Iterator[PlatformChart]:
    """Yield the charts of Kueue's objects, each after the objects that it names.

    Objects are deleted in the reverse order: Kueue keeps a flavor as long as a queue names it, and
    a queue as long as a job has quota in it. An object that can leave the cluster file alone has a
    chart of its own: an object that is taken out of a chart that stays is never deleted.
    """
    objects = [
        *((f"topology-{each.name}", [topology(each)]) for each in plan.topologies),
        *((f"flavor-{flavor.name}", [resource_flavor(flavor)]) for flavor in plan.flavors),
        ("cohort", [cohort(plan.cohort)]),
        ("workload-priorities", [workload_priority(priority) for priority in plan.priorities]),
        *(
            (
                f"cluster-queue-{queue.name}",
                [cluster_queue(queue, cohort=plan.cohort.name), *local_queues(queue)],
            )
            for queue in plan.queues
        ),
    ]
    for name, manifests in objects:
        yield plain_chart(name, manifests)


# Release of the chart that brings the Secret.
# Sources:
# https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/internalcert/secret.yaml
# https://github.com/helm/helm/blob/v4.1.4/pkg/action/validate.go
_RELEASE = "jobset"


def jobset_certificate_objects() -> list[JsonObject]:
    """Return the Secret without data, as an object that Helm's release owns.

    The deployment changes the Secret's owners before each run of Helm, so the Secret must exist.
    """
    secret = manifest(
        "Secret",
        jobset.CERTIFICATE,
        namespace=jobset.NAMESPACE,
        # Helm takes over no object without these three labels and annotations.
        own_labels={"app.kubernetes.io/managed-by": "Helm"},
        annotations={
            "meta.helm.sh/release-name": _RELEASE,
            "meta.helm.sh/release-namespace": jobset.NAMESPACE,
        },
    )
    return [secret]


_WEBHOOK, _METRICS = 9443, 8443
# API of waiting jobs, to which the API server passes requests on. While this API does not answer,
# no namespace can be deleted.
# Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
_VISIBILITY = 8082


def queueing_ingress_objects() -> list[JsonObject]:
    """Let everything reach the ports that the two controllers serve.

    Their namespaces refuse all others, and their charts bring no policies.

    Sources:
        https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/charts/kueue/templates
        https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/charts/jobset/templates
    """
    return [
        program_policy("kueue", facts.NAMESPACE, (_WEBHOOK, _METRICS, _VISIBILITY)),
        program_policy("jobset", jobset.NAMESPACE, (_WEBHOOK, _METRICS)),
    ]
