"""Connections that the controllers of Kueue and JobSet accept, and JobSet's webhook Secret.

The controllers' namespaces refuse all other connections, and their charts bring no policies.

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
# no namespace can be deleted. Source:
# https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
_VISIBILITY = 8082


def queueing_ingress_objects() -> list[JsonObject]:
    """Return the policies that let everything reach the ports of the two controllers."""
    return [
        program_policy("kueue", facts.NAMESPACE, (_WEBHOOK, _METRICS, _VISIBILITY)),
        program_policy("jobset", jobset.NAMESPACE, (_WEBHOOK, _METRICS)),
    ]
