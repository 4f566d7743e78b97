"""KEDA and LeaderWorkerSet, the controllers of services."""

from collections.abc import Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.parts.services.keda import NAMESPACE as KEDA_NAMESPACE
from ultrascale.parts.services.model import Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_constructs.services import keda_values, leader_worker_set_values
from ultrascale_stacks.builders import Builder
from ultrascale_stacks.deployment import stack_properties


class ServicesStack(Stack):
    """Installs the charts.

    Both stay when the stack is deleted: replicas of several nodes and rules of scaling would be
    deleted with their CRDs, or wait for finalizers that no controller removes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            cluster: The cluster's context for constructs.
        """
        super().__init__(scope, id, **stack_properties(plan))
        serving = plan.part(Plan)
        assert serving is not None, "a cluster without such controllers has no such stack"
        charts = ManifestApplier(self, "Charts", cluster=cluster)
        if serving.leader_worker_set is not None:
            charts.install_chart(
                "LeaderWorkerSet",
                repository=serving.leader_worker_set.chart,
                version=serving.leader_worker_set.version,
                namespace=names.LWS_NAMESPACE,
                values=leader_worker_set_values(serving.leader_worker_set),
                retain=True,
                # Its webhooks check every pod of a replica, and Kueue looks for its kind.
                wait=True,
            )
        if serving.keda is not None:
            charts.install_chart(
                "Keda",
                repository=serving.keda.chart,
                version=serving.keda.version,
                namespace=KEDA_NAMESPACE,
                values=keda_values(serving.keda, cluster_name=plan.name),
                retain=True,
                wait=True,
            )


STACKS: Mapping[str, Builder] = {
    "serving-controllers": lambda cluster, name: ServicesStack(
        cluster.app, name, plan=cluster.plan, cluster=cluster.context
    )
}
