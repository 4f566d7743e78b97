"""The Secret of JobSet's webhooks, before its chart brings it.

Sources:
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/internalcert/secret.yaml
    https://github.com/helm/helm/blob/v4.1.4/pkg/action/validate.go
"""

import cdk8s
from constructs import Construct

from ultrascale.plan.names import JOBSET_CERTIFICATE, JOBSET_NAMESPACE
from ultrascale_k8s.objects import define_object

_RELEASE = "jobset"


class JobSetCertificateChart(cdk8s.Chart):
    """Defines the Secret without data, as one that Helm's release owns.

    The deployment changes its owners before each run of Helm, and so it must be there.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_object(
            self,
            "secret",
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": JOBSET_CERTIFICATE,
                    "namespace": JOBSET_NAMESPACE,
                    # Helm takes no object over without these three.
                    "labels": {"app.kubernetes.io/managed-by": "Helm"},
                    "annotations": {
                        "meta.helm.sh/release-name": _RELEASE,
                        "meta.helm.sh/release-namespace": JOBSET_NAMESPACE,
                    },
                },
            },
        )
