"""The Secret of JobSet's webhooks, before its chart brings it.

Sources:
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/internalcert/secret.yaml
    https://github.com/helm/helm/blob/v4.1.4/pkg/action/validate.go
"""

from ultrascale.documents import JsonObject
from ultrascale.plan.names import JOBSET_CERTIFICATE, JOBSET_NAMESPACE
from ultrascale_k8s.objects import manifest

_RELEASE = "jobset"


def jobset_certificate_objects() -> list[JsonObject]:
    """Return the Secret without data, as one that Helm's release owns.

    The deployment changes its owners before each run of Helm, and so it must be there.
    """
    secret = manifest(
        "Secret",
        JOBSET_CERTIFICATE,
        namespace=JOBSET_NAMESPACE,
        # Helm takes no object over without these three.
        own_labels={"app.kubernetes.io/managed-by": "Helm"},
        annotations={
            "meta.helm.sh/release-name": _RELEASE,
            "meta.helm.sh/release-namespace": JOBSET_NAMESPACE,
        },
    )
    return [secret]
