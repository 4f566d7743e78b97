"""What runs in the cluster: the manifests of ``dist/``, applied."""

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import ClusterPlan
from ultrascale_constructs.network import Network
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks._environment import environment
from ultrascale_stacks._placeholders import fill


class PlatformStack(Stack):
    """Applies the charts through a kubectl provider of its own, one after the other."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster_security_group_id: str,
        charts: Sequence[PlatformChart],
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        manifests = ManifestApplier(
            self,
            "Manifests",
            cluster_name=plan.name,
            cluster_security_group_id=cluster_security_group_id,
            vpc=network.vpc,
            subnet_ids=network.subnet_ids("private"),
        )
        for chart in charts:
            manifests.apply(
                chart.name,
                [fill(manifest, placeholders) for manifest in chart.manifests],
                retain=chart.retained,
            )
