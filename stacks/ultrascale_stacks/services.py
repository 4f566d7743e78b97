"""KEDA and LeaderWorkerSet, the controllers of services."""

from collections.abc import Mapping

from ultrascale.parts.services.keda import NAMESPACE as KEDA_NAMESPACE
from ultrascale.parts.services.model import Plan
from ultrascale.plan import names
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_constructs.services import keda_values, leader_worker_set_values
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack


class ServicesStack(LayerStack):
    """Installs the charts.

    Both stay when the stack is deleted: replicas of several nodes and rules of scaling would be
    deleted with their CRDs, or wait for finalizers that no controller removes.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        serving = cluster.part(Plan)
        charts = ManifestApplier(self, "Charts", cluster=cluster.context)
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
                values=keda_values(serving.keda, cluster_name=cluster.plan.name),
                retain=True,
                wait=True,
            )


STACKS: Mapping[LayerId, Builder] = {"serving-controllers": ServicesStack}
