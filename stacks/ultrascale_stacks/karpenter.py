"""Karpenter: its AWS permissions, and its controller in the cluster."""

from ultrascale.plan import names
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.karpenter import Karpenter, controller_values
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_stacks.cluster import ClusterStacks, LayerStack


class KarpenterStack(LayerStack):
    """Stack of Karpenter's roles, queue and two charts.

    Delete the NodePools and their nodes before this stack: nothing else would terminate the
    instances.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        karpenter = cluster.plan.nodes.karpenter
        assert karpenter is not None, "a cluster without Karpenter has no such stack"
        rights = Karpenter(self, "Karpenter", plan=karpenter, cluster_name=cluster.plan.name)
        charts = ManifestApplier(self, "Charts", cluster=cluster.context)
        # A pod older than the association of its role has no credentials until it is restarted.
        charts.node.add_dependency(rights.identity)
        charts.install_chart(
            "Crds",
            repository=karpenter.crd_chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values={},
            # Without the CRDs the cluster loses its NodePools, and their nodes lose their owner.
            retain=True,
        )
        charts.install_chart(
            "Controller",
            repository=karpenter.chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values=controller_values(karpenter, cluster_name=cluster.plan.name),
            retain=False,
        )
