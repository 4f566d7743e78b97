"""Self-managed Karpenter."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.catalog import karpenter
from ultrascale.plan import names
from ultrascale.plan.model import KarpenterPlan, PoolPlan

# All pods of a gang must be in one batch: nodes that are launched for its first half alone may
# never get the capacity for the second, and wait for it at full price.
_GANG_BATCH_MAX_DURATION = "30s"


def plan_karpenter(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> KarpenterPlan | None:
    """Return Karpenter, sized for ``pools``, if the file asks for it."""
    stated = cluster.karpenter
    if stated is None:
        return None
    own = [pool for pool in pools if pool.provisioner == "karpenter"]
    size = karpenter.controller_size(
        sum(pool.max_nodes for pool in own), vcpus=stated.vcpus, memory_gib=stated.memory_gib
    )
    gates = {name: gate.default for name, gate in karpenter.FEATURE_GATES.items()}
    return KarpenterPlan(
        version=stated.version,
        crd_chart=karpenter.CRD_CHART,
        chart=karpenter.CHART,
        replicas=karpenter.REPLICAS,
        cpu=str(size.vcpus),
        memory=f"{size.memory_gib}Gi",
        client_qps=karpenter.CLIENT_QPS,
        client_burst=karpenter.CLIENT_BURST,
        feature_gates={
            **gates,
            "ReservedCapacity": True,
            "StaticCapacity": any(pool.static for pool in own),
        },
        batch_max_duration=_GANG_BATCH_MAX_DURATION
        if cluster.scheduling.gang_scheduler == "volcano"
        else karpenter.BATCH_MAX_DURATION,
        interruption_queue=names.interruption_queue(cluster.name),
        node_role=names.node_role(cluster.name, cluster.region),
    )
