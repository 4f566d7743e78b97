"""Service accounts of training pods, and S3's names of buckets, for output in a bucket."""

from collections.abc import Collection

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import OutputAccessPlan
from ultrascale_k8s._pods import metadata


class OutputAccessChart(cdk8s.Chart):
    """Defines the service account of each job namespace, and a ConfigMap for each bucket.

    A pod of the service account gets credentials by EKS Pod Identity, and none for the API server.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: OutputAccessPlan, namespaces: Collection[str]
    ) -> None:
        """Define those of ``namespaces``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plan: Name of the service account, and the buckets.
            namespaces: Namespaces of jobs.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for namespace in namespaces:
            kube.KubeServiceAccount(
                self,
                f"{namespace}-account",
                metadata=metadata(plan.service_account, namespace=namespace),
                automount_service_account_token=False,
            )
            for bucket in plan.bucket_names:
                kube.KubeConfigMap(
                    self,
                    f"{namespace}-{bucket.config_map}",
                    metadata=metadata(bucket.config_map, namespace=namespace),
                    data={bucket.key: bucket.bucket_name},
                    # The kubelet of each node would watch one that can change.
                    immutable=True,
                )
