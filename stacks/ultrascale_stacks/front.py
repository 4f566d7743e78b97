"""The front: Envoy Gateway, and the Gateway of all models."""

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.front import gateway_values
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.deployment import stack_properties


class FrontStack(Stack):
    """Installs the controller, then applies the Gateway.

    The definitions of the kinds stay when the stack goes, as Helm leaves those of a folder `crds`,
    and with them the routes of services.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
        charts: Sequence[PlatformChart],
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            cluster: The same, as its constructs refer to it.
            charts: The Gateway and what hangs on it.
        """
        super().__init__(scope, id, **stack_properties(plan))
        front = plan.front
        assert front is not None, "a cluster without a front has no such stack"
        manifests = ManifestApplier(self, "Manifests", cluster=cluster)
        manifests.install_chart(
            "Controller",
            repository=front.chart,
            version=front.version,
            namespace=names.FRONT_NAMESPACE,
            values=gateway_values(front),
            retain=False,
            # As the stack goes, it has to take the proxies away before it goes itself.
            wait=True,
        )
        for chart in charts:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)
