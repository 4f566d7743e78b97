"""Self-managed Karpenter."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.catalog import karpenter
from ultrascale.plan import names
from ultrascale.plan.model import KarpenterPlan, PoolPlan
from ultrascale.plan.node_pools import unseen_resources

# A gang that falls into two batches may get nodes for its first half alone, which then wait at full
# price for capacity that may never come. Karpenter sees a pod once Volcano has tried to place it,
# which it does once a second: a batch that ended at the first quiet second would end between two
# tries. No window holds every gang: one that takes longer to come is launched in parts.
_GANG_BATCH_IDLE_DURATION = "5s"
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
    gangs = cluster.scheduling.gang_scheduler == "volcano"
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
            "NodeOverlay": any(unseen_resources(pool) for pool in own),
        },
        batch_idle_duration=_GANG_BATCH_IDLE_DURATION if gangs else karpenter.BATCH_IDLE_DURATION,
        batch_max_duration=_GANG_BATCH_MAX_DURATION if gangs else karpenter.BATCH_MAX_DURATION,
        interruption_queue=names.interruption_queue(cluster.name),
        node_role=names.node_role(cluster.name, cluster.region),
    )
