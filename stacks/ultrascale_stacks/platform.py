"""The platform: the stack that applies the manifests of ``dist/`` to the cluster."""

from collections.abc import Mapping, Sequence

from ultrascale.plan.stacks import StackName
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.placeholders import fill


class PlatformStack(LayerStack):
    """Stack that applies the charts one after the other, through a kubectl provider of its own."""

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
