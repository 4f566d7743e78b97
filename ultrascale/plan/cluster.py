"""The whole plan of a cluster file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import quotas, regions
from ultrascale.core.table import all_parts
from ultrascale.errors import Diagnostic
from ultrascale.frozen import Frozen
from ultrascale.own_images import NO_IMAGES, OwnImages
from ultrascale.plan import names
from ultrascale.plan.access import plan_access
from ultrascale.plan.addons import node_addons, workload_addons
from ultrascale.plan.control_plane import plan_control_plane
from ultrascale.plan.delivery.images import plan_images
from ultrascale.plan.jobs.checkpoints import plan_saves
from ultrascale.plan.mistakes import all_mistakes, mistakes_of_plan
from ultrascale.plan.model import (
    AgreedLimit,
    AppPlan,
    ClusterPlan,
    CopiesPlan,
    NetworkPlan,
    NodesPlan,
    PlannedPart,
    PoolPlan,
    QueueingPlan,
    ScalePlan,
    copies_of,
    key_for,
)
from ultrascale.plan.namespaces import (
    plan_namespaces,
    plan_node_readers,
)
from ultrascale.plan.network.dns import name_servers, plan_node_local_dns
from ultrascale.plan.network.endpoints import features_of, plan_endpoints
from ultrascale.plan.network.vpc import plan_interface_cleaner, plan_network, within_addresses
from ultrascale.plan.platform import (
    plan_devices,
    plan_priority_classes,
)
from ultrascale.plan.pools.karpenter import plan_karpenter
from ultrascale.plan.pools.node_groups import plan_node_groups
from ultrascale.plan.pools.node_pools import plan_node_classes, plan_node_pools
from ultrascale.plan.pools.pool import plan_pools
from ultrascale.plan.pools.repair import plan_repairs, repaired_groups
from ultrascale.plan.pools.scaling import (
    plan_cluster_autoscaler,
    plan_termination_handler,
    with_fixed_system_groups,
)
from ultrascale.plan.scale import plan_scale
from ultrascale.plan.services import plan_services
from ultrascale.plan.volumes import plan_storage


def load(path: Path) -> ClusterPlan:
    """Read the cluster file at ``path`` and plan it.

    Raises:
        ConfigError: The file is wrong, asks for something that is not built yet, or for more than
            its network holds. One line for each mistake, ``file: key.path: …``.
    """
    return _plan(config.read(path))


def load_to_destroy(path: Path) -> tuple[ClusterPlan, tuple[Diagnostic, ...]]:
    """Read and plan a deployed cluster's file, with its mistakes: they keep nothing alive.

    A rule may be younger than the cluster, or about a fact that has changed since.

    Raises:
        ConfigError: The mistakes leave open which cluster it is; one line for each.
    """
    reading = config.read(path)
    mistakes = [*all_mistakes(reading)]
    if reading.cluster is None:
        raise reading.refusal(mistakes)
    try:
        planned = assemble(reading.cluster, reading.own_images, reading.records)
    except Exception:
        # A plan may rest on any rule.
        if mistakes:
            raise reading.refusal(mistakes) from None
        raise
    mistakes = mistakes or [*mistakes_of_plan(planned)]
    return planned, reading.refusal(mistakes).diagnostics if mistakes else ()


def draft(path: Path) -> ClusterPlan:
    """Read the cluster file at ``path`` and plan it, even if its network lacks endpoints.

    Raises:
        ConfigError: The file is wrong, as for `load`; endpoints may be missing.
    """
    reading = config.read(path)
    mistakes = all_mistakes(reading)
    if mistakes or reading.cluster is None:
        raise reading.refusal(mistakes)
    return assemble(reading.cluster, reading.own_images, reading.records)


def load_app(path: Path) -> AppPlan | None:
    """Read the cluster file at ``path``, and plan the app by which a part of it deploys clusters.

    Returns:
        The app; None for a file without one.

    Raises:
        ConfigError: The file is wrong, or another file that the app deploys; one line a mistake.
    """
    reading = config.read(path)
    if mistakes := all_mistakes(reading):
        raise reading.refusal(mistakes)
    apps = (part.plan_app(path, reading) for part in all_parts())
    return next((app for app in apps if app is not None), None)


def plan_cluster(cluster: config.Cluster, own_images: OwnImages = NO_IMAGES) -> ClusterPlan:
    """Plan ``cluster``.

    Args:
        cluster: The cluster.
        own_images: Folders beside its file that images are built from.

    Raises:
        ConfigError: It asks for something that is not built yet, for a value that the catalog
            does not know, or for more than its network holds. One line for each mistake,
            ``key.path: …``.
    """
    return _plan(replace(config.reading_of(cluster), own_images=own_images))


def _plan(reading: config.Reading) -> ClusterPlan:
    mistakes = all_mistakes(reading)
    if mistakes or reading.cluster is None:
        raise reading.refusal(mistakes)
    planned = assemble(reading.cluster, reading.own_images, reading.records)
    if mistakes := [*mistakes_of_plan(planned)]:
        raise reading.refusal(mistakes)
    return planned


def assemble(
    cluster: config.Cluster,
    own_images: OwnImages = NO_IMAGES,
    records: Sequence[Frozen] = (),
) -> ClusterPlan:
    """Join the plans of all parts of a cluster without mistakes.

    Args:
        cluster: The cluster file.
        own_images: Folders beside the cluster file that images are built from.
        records: Records of parts beside the file.

    Raises:
        CatalogError: No source states a value that the cluster needs.
        UltrascaleError: An image is built from a folder that is none of ``own_images``.
    """
    cluster = with_fixed_system_groups(cluster)
    parts = _parts(cluster, records)
    volume_key = key_for("volumes", parts)
    copies = copies_of(parts)
    network, scale = plan_network(cluster), plan_scale(cluster)
    pools = [*_pools(cluster, network, scale, volume_key)]
    control_plane = plan_control_plane(
        cluster.kubernetes,
        pools,
        scale,
        node_addons=node_addons(cluster, network, scale),
        workload_addons=workload_addons(cluster, pools, scale, volume_key),
        secrets_key=key_for("secrets", parts),
        volume_key=volume_key,
    )
    storage = plan_storage(cluster)
    images = plan_images(cluster, pools, scale, own_images=own_images, copies=copies)
    parts = _with_pools(cluster, pools, parts)
    queueing = next((part for part in parts if isinstance(part, QueueingPlan)), None)
    namespaces = plan_namespaces(cluster)
    services = plan_services(
        cluster,
        pools,
        claims=storage.claims,
        queueing=queueing,
        ignores_preferences=scale.karpenter.ignores_preferences,
    )
    planned = ClusterPlan(
        name=cluster.name,
        region=cluster.region,
        partition=regions.lookup_region(cluster.region).partition,
        account=cluster.account,
        permissions_boundary=cluster.permissions_boundary,
        parts=parts,
        network=replace(
            network,
            interface_cleaner=plan_interface_cleaner(scale, control_plane.node_addons),
            node_local_dns=plan_node_local_dns(cluster, scale),
        ),
        control_plane=control_plane,
        access=replace(
            plan_access(cluster, pools),
            node_readers=plan_node_readers(cluster, pools, queueing, namespaces),
        ),
        system_pools=tuple(pool for pool in pools if pool.role == "system"),
        pools=tuple(pool for pool in pools if pool.role != "system"),
        nodes=_nodes(cluster, network, pools, scale, volume_key, copies),
        storage=storage,
        images=images,
        namespaces=namespaces,
        priority_classes=plan_priority_classes(cluster),
        devices=plan_devices(cluster, pools, scale),
        saves=plan_saves(cluster, pools, claims=storage.claims, queueing=queueing),
        services=services,
        agreed_limits=_agreed_limits(cluster.agreed_limits),
        recorded=config.recorded_facts(cluster.facts),
    )
    planned = _with_parts(cluster, planned)
    endpoints = plan_endpoints(features_of(planned), cluster.network)
    return replace(planned, network=replace(planned.network, endpoints=endpoints))


def _pools(
    cluster: config.Cluster, network: NetworkPlan, scale: ScalePlan, volume_key: str | None
) -> Iterator[PoolPlan]:
    for pool in cluster.pools:
        for plan in plan_pools(
            pool,
            kubernetes_version=cluster.kubernetes.version,
            network_zones=config.zones_of(pool, cluster.network),
            name_servers=name_servers(cluster, pool, scale),
            volume_key=volume_key,
        ):
            yield within_addresses(cluster, network, plan)


def _nodes(
    cluster: config.Cluster,
    network: NetworkPlan,
    pools: Sequence[PoolPlan],
    scale: ScalePlan,
    volume_key: str | None,
    copies: CopiesPlan | None,
) -> NodesPlan:
    autoscaler = plan_cluster_autoscaler(cluster, pools)
    has_role = cluster.karpenter or any(pool.is_node_pool for pool in pools)
    return NodesPlan(
        karpenter=plan_karpenter(cluster, pools, scale, volume_key, copies),
        groups=plan_node_groups(network, pools, autoscaler, repaired=repaired_groups(cluster)),
        role=names.node_role(cluster.name, cluster.region) if has_role else None,
        classes=plan_node_classes(
            cluster, network, pools, named_by_id=scale.instance_id_node_names
        ),
        node_pools=plan_node_pools(cluster, pools),
        repairs=plan_repairs(cluster),
        autoscaler=autoscaler,
        termination_handler=plan_termination_handler(cluster, pools),
    )


def _parts(cluster: config.Cluster, records: Sequence[Frozen]) -> tuple[PlannedPart, ...]:
    plans = (part.plan(cluster, records) for part in all_parts())
    return tuple(plan for plan in plans if plan is not None)


def _with_pools(
    cluster: config.Cluster, pools: Sequence[PoolPlan], parts: tuple[PlannedPart, ...]
) -> tuple[PlannedPart, ...]:
    for part in all_parts():
        if (plan := part.plan_with_pools(cluster, pools, parts)) is not None:
            parts = (*parts, plan)
    return parts


def _with_parts(cluster: config.Cluster, planned: ClusterPlan) -> ClusterPlan:
    for part in all_parts():
        if (plan := part.plan_on(cluster, planned)) is not None:
            planned = replace(planned, parts=(*planned.parts, plan))
    return planned


def _agreed_limits(stated: config.AgreedLimits | None) -> tuple[AgreedLimit, ...]:
    if stated is None:
        return ()
    values = {
        quotas.quota("network-address-usage").code: stated.nau_per_vpc,
        "pods": stated.pods,
        "database": stated.database_gb,
    }
    return tuple(
        AgreedLimit(code=code, value=value, reference=stated.reference)
        for code, value in values.items()
        if value is not None
    )
