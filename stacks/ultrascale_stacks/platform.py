"""The platform: the manifests of ``dist/`` applied to the cluster."""

from collections.abc import Mapping, Sequence

from ultrascale.plan.stacks import StackName
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.placeholders import fill


class PlatformStack(LayerStack):
    """Applies the charts through a kubectl provider of its own, one after the other."""

    def __init__(
        self,
        cluster: ClusterStacks,
        name: StackName,
        *,
        charts: Sequence[PlatformChart],
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(cluster, name)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        for chart in charts:
            manifests.apply(
                chart.name,
                [fill(manifest, placeholders) for manifest in chart.manifests],
                retain=chart.retained,
            )
