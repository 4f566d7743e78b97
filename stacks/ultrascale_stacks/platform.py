"""The platform: the manifests of ``dist/`` applied to the cluster."""

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.placeholders import fill


class PlatformStack(Stack):
    """Applies the charts through a kubectl provider of its own, one after the other."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
        charts: Sequence[PlatformChart],
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        manifests = ManifestApplier(self, "Manifests", cluster=cluster)
        for chart in charts:
            manifests.apply(
                chart.name,
                [fill(manifest, placeholders) for manifest in chart.manifests],
                retain=chart.retained,
            )
