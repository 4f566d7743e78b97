"""Self-managed Karpenter."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import karpenter
from ultrascale.plan import names
from ultrascale.plan.model import CopiesPlan, KarpenterPlan, KarpenterScale, PoolPlan, ScalePlan
from ultrascale.plan.pools.node_pools import unseen_resources
from ultrascale.plan.pools.repair import karpenter_repairs
from ultrascale.plan.pools.reservations import naming_pool
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import karpenter_scale

# A gang that falls into two batches may get nodes for its first half alone, which then wait at full
# price for capacity that may never come. Karpenter sees a pod once Volcano has tried to place it,
# which it does once a second: a batch that ended at the first quiet second would end between two
# tries. Pods of a job that Kueue admits are made in batches too. No window holds every gang: one
# that takes longer to come is launched in parts.
_GANG_BATCH_IDLE_DURATION = "5s"
_GANG_BATCH_MAX_DURATION = "30s"


def plan_karpenter(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    scale: ScalePlan,
    volume_key: str | None = None,
    copies: CopiesPlan | None = None,
) -> KarpenterPlan | None:
    """Return Karpenter, sized by ``scale`` for ``pools``, if the file asks for it.

    Args:
        cluster: The cluster.
        pools: Its pools.
        scale: Its size.
        volume_key: ARN of the KMS key of nodes' volumes; None: the account's default key of EBS.
        copies: Copies of its charts, whose values name its image; None: they are the publisher's.
    """
    stated = cluster.karpenter
    if stated is None:
        return None
    size = scale.karpenter
    known = karpenter.release(stated.version)
    repairs = karpenter_repairs(cluster)
    gangs = cluster.scheduling.engine != "none"
    return KarpenterPlan(
        version=stated.version,
        # Charts come from a registry, as `oci://`: the function that installs them logs in to a
        # private one of Amazon ECR by its own role, through the endpoints that pods have. An
        # archive in S3 would have to be at hand while templates are made, which ask nobody.
        crd_chart=copies.chart(karpenter.CRD_CHART) if copies else karpenter.CRD_CHART,
        chart=copies.chart(karpenter.CHART) if copies else karpenter.CHART,
        # The chart names the image by digest, and copies keep digests.
        image=copies.reference(karpenter.CONTROLLER_IMAGE) if copies else None,
        replicas=karpenter.REPLICAS,
        cpu=str(size.vcpus),
        memory=f"{size.memory_gib}Gi",
        client_qps=size.client_qps,
        client_burst=size.client_burst,
        feature_gates=_feature_gates(
            [pool for pool in pools if pool.is_karpenter], known, repairs=bool(repairs)
        ),
        aws_feature_gates={
            name: "reboot" in repairs for name in _defaults(karpenter.AWS_FEATURE_GATES, known)
        },
        legacy_node_repair=False
        if known >= karpenter.release(karpenter.FEATURES["repair"])
        else None,
        batch_idle_duration=_GANG_BATCH_IDLE_DURATION if gangs else karpenter.BATCH_IDLE_DURATION,
        batch_max_duration=_GANG_BATCH_MAX_DURATION if gangs else karpenter.BATCH_MAX_DURATION,
        ignores_preferences=size.ignores_preferences,
        hides_cluster_state=size.hides_cluster_state,
        volume_key=volume_key,
        interruption_queue=names.interruption_queue(cluster.name),
        node_role=names.node_role(cluster.name, cluster.region),
        node_role_by_id=names.node_role(cluster.name, cluster.region, by_id=True),
        # IAM has no endpoint, and prices have one in a few Regions.
        # Source: https://karpenter.sh/docs/getting-started/getting-started-with-karpenter/#private-clusters
        is_isolated=cluster.network.egress == "none",
    )


def _feature_gates(
    pools: Sequence[PoolPlan], known: tuple[int, ...], *, repairs: bool
) -> dict[str, bool]:
    """Return the feature gates of a release: as ``pools`` need them, else by default."""
    return {
        **_defaults(karpenter.FEATURE_GATES, known),
        # It keeps all launches but those of reserved NodePools out of open reservations.
        "ReservedCapacity": naming_pool(pools) is not None,
        "StaticCapacity": any(pool.static for pool in pools),
        "NodeOverlay": any(unseen_resources(pool) for pool in pools),
        "NodeRepair": repairs,
    }


def _defaults(
    gates: Mapping[str, karpenter.FeatureGate], known: tuple[int, ...]
) -> Mapping[str, bool]:
    return {
        name: gate.default for name, gate in gates.items() if known >= karpenter.release(gate.since)
    }


@rule
def karpenter_has_room(
    pools: config.Every[config.Pool], karpenter: config.Karpenter
) -> Iterator[config.Mistake]:
    """Yield system pools without room for the controller: without it no other node comes."""
    system = [placed for placed in pools.placed if placed.item.role == "system"]
    launched = sum(_most_nodes(pool) for pool in pools if pool.is_karpenter)
    size = karpenter_scale(launched, karpenter)
    if not system or any(_has_more_than(placed.item, size) for placed in system):
        return
    wrong = (
        f"nodes too small for Karpenter, which takes {size.vcpus} vCPUs and {size.memory_gib} GiB "
        f"where it may launch {launched} nodes"
    )
    todo = "use larger types, or state less in karpenter.vcpus and karpenter.memory_gib"
    yield config.Mistake((*system[0].at, "instance_types"), wrong, todo)


def _most_nodes(pool: config.Pool) -> int:
    # Another rule refuses a pool without any count.
    return (pool.nodes.static or pool.nodes.max or 0) * pool.shards


def _has_more_than(pool: config.Pool, size: KarpenterScale) -> bool:
    """Return whether a node of ``pool`` has more than ``size``: the kubelet needs some as well."""
    specs = pool.specs
    memory_mib = size.memory_gib * 1024
    return all(spec.vcpus > size.vcpus and spec.memory_mib > memory_mib for spec in specs)
