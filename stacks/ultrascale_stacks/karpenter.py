"""Karpenter: its permissions in AWS and its controller in the cluster."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.karpenter import Karpenter, controller_values
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_stacks.deployment import stack_properties


class KarpenterStack(Stack):
    """Defines the roles, the queue and the two charts of Karpenter.

    Delete the NodePools with their nodes before this stack: nothing else terminates their
    instances.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        karpenter = plan.nodes.karpenter
        assert karpenter is not None, "a cluster without Karpenter has no such stack"
        rights = Karpenter(self, "Karpenter", plan=karpenter, cluster_name=plan.name)
        charts = ManifestApplier(self, "Charts", cluster=cluster)
        # A pod from before the association of its role has no credentials until it is restarted.
        charts.node.add_dependency(rights.identity)
        charts.install_chart(
            "Crds",
            repository=karpenter.crd_chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values={},
            # Without its CRDs the cluster loses its NodePools, and their nodes lose their owner.
            retain=True,
        )
        charts.install_chart(
            "Controller",
            repository=karpenter.chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values=controller_values(karpenter, cluster_name=plan.name),
            retain=False,
        )
