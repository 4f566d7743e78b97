"""Connections allowed to the controllers of Kueue and JobSet, and the Secret of JobSet's webhooks.

Their namespaces refuse all others, and their charts bring no policies.

Sources:
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/charts/kueue/templates
    https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/charts/jobset/templates
"""

from ultrascale.documents import JsonObject
from ultrascale.parts.kueue import facts, jobset
from ultrascale_k8s.network_policy import program_policy
from ultrascale_k8s.objects import manifest

# Release of the chart that brings the Secret.
# Sources:
#     https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/internalcert/secret.yaml
#     https://github.com/helm/helm/blob/v4.1.4/pkg/action/validate.go
_RELEASE = "jobset"


def jobset_certificate_objects() -> list[JsonObject]:
    """Return the Secret without data, as one that Helm's release owns.

    The deployment changes its owners before each run of Helm, and so it must be there.
    """
    secret = manifest(
        "Secret",
        jobset.CERTIFICATE,
        namespace=jobset.NAMESPACE,
        # Helm takes no object over without these three.
        own_labels={"app.kubernetes.io/managed-by": "Helm"},
        annotations={
            "meta.helm.sh/release-name": _RELEASE,
            "meta.helm.sh/release-namespace": jobset.NAMESPACE,
        },
    )
    return [secret]


_WEBHOOK, _METRICS = 9443, 8443
# The API of jobs that wait, which the API server passes requests on to. While it did not answer, no
# namespace could be deleted.
# Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
_VISIBILITY = 8082


def queueing_ingress_objects() -> list[JsonObject]:
    """Let everything reach the ports that the two controllers serve."""
    return [
        program_policy("kueue", facts.NAMESPACE, (_WEBHOOK, _METRICS, _VISIBILITY)),
        program_policy("jobset", jobset.NAMESPACE, (_WEBHOOK, _METRICS)),
    ]
