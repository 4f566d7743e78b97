"""Service accounts of training pods, and ConfigMaps with buckets' names in S3, for output."""

from collections.abc import Collection, Iterator

from ultrascale.documents import JsonObject
from ultrascale.plan.model import OutputAccessPlan
from ultrascale_k8s.objects import manifest


def output_access_objects(
    plan: OutputAccessPlan, namespaces: Collection[str]
) -> Iterator[JsonObject]:
    """Yield the service account of each job namespace, and a ConfigMap for each bucket.

    A pod of the service account gets AWS credentials by EKS Pod Identity, and no token for the API
    server.
    """
    for namespace in namespaces:
        yield manifest(
            "ServiceAccount",
            plan.service_account,
            namespace=namespace,
            automountServiceAccountToken=False,
        )
        for bucket in plan.bucket_names:
            yield manifest(
                "ConfigMap",
                bucket.config_map,
                namespace=namespace,
                data={bucket.key: bucket.bucket_name},
                # Immutable: the kubelet of each node would watch a ConfigMap that can change.
                immutable=True,
            )
