"""Connections allowed to the controllers of Kueue and JobSet.

Their namespaces refuse all others, and their charts bring no policies.

Sources:
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/charts/kueue/templates
    https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/charts/jobset/templates
"""

from ultrascale.documents import JsonObject
from ultrascale.plan.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from ultrascale_k8s.network_policy import program_policy

_WEBHOOK, _METRICS = 9443, 8443
# The API of jobs that wait, which the API server passes requests on to. While it did not answer, no
# namespace could be deleted.
# Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
_VISIBILITY = 8082


def queueing_ingress_objects() -> list[JsonObject]:
    """Let everything reach the ports that the two controllers serve."""
    return [
        program_policy("kueue", KUEUE_NAMESPACE, (_WEBHOOK, _METRICS, _VISIBILITY)),
        program_policy("jobset", JOBSET_NAMESPACE, (_WEBHOOK, _METRICS)),
    ]
