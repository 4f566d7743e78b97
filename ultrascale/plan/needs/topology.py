"""Parts of a cluster and their places."""

from collections.abc import Iterator, Sequence

from ultrascale.plan.model import (
    ClusterPlan,
    FileSystemPart,
    NetworkPlan,
    PoolPart,
    PoolPlan,
    ReservationPlan,
    StoragePlan,
    Topology,
)
from ultrascale.plan.needs.pools import endpoint_interfaces, nat_gateways, shards_of
from ultrascale.plan.network.vpc import node_subnet_kind


def plan_topology(plan: ClusterPlan) -> Topology:
    """Return the parts of ``plan`` for a picture."""
    network, control_plane = plan.network, plan.control_plane
    return Topology(
        existing=network.existing,
        egress=network.egress,
        vpc_cidr=str(network.vpc_cidr),
        secondary_cidrs=tuple(map(str, network.secondary_cidrs)),
        zones=tuple(dict.fromkeys((*network.zones, *(subnet.zone for subnet in network.subnets)))),
        kubernetes=control_plane.version,
        tier=control_plane.tier,
        auto_mode=control_plane.auto_mode,
        public_cidrs=control_plane.public_cidrs,
        service_cidr=str(control_plane.service_cidr),
        nat_gateways=nat_gateways(plan.network),
        interface_endpoints=network.interface_endpoints,
        endpoint_interfaces=endpoint_interfaces(plan.network),
        gateway_endpoints=network.gateway_endpoints,
        present_endpoints=tuple(
            endpoint.service for endpoint in network.endpoints if endpoint.state == "present"
        ),
        flow_logs=network.flow_logs,
        pools=tuple(_pool(plan.network, shards) for shards in shards_of(plan.all_pools).values()),
        file_systems=(*_file_systems(plan.storage),),
        buckets=tuple(
            bucket.name for bucket in (*plan.storage.buckets, *plan.storage.existing_buckets)
        ),
        repositories=plan.images.repositories,
        database=next(
            (part.database_version for part in plan.parts if part.database_version), None
        ),
    )


def _file_systems(storage: StoragePlan) -> Iterator[FileSystemPart]:
    for lustre in storage.lustre:
        yield FileSystemPart(
            name=lustre.name,
            zone=lustre.zone,
            capacity_gib=lustre.capacity_gib,
            throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
            existing=None,
            bucket=lustre.repository.bucket if lustre.repository is not None else None,
        )
    for system in storage.existing_lustre:
        yield FileSystemPart(
            name=system.name,
            zone=system.zone,
            capacity_gib=None,
            throughput_mbps_per_tib=None,
            existing=system.file_system_id,
            bucket=None,
        )


def _pool(network: NetworkPlan, shards: Sequence[PoolPlan]) -> PoolPart:
    first = shards[0]
    return PoolPart(
        pool=first.pool,
        role=first.role,
        provisioner=first.facts.name,
        purchase=first.purchase,
        reservation=None if first.reservation is None else _reservation_name(first.reservation),
        instance_types=first.instance_types,
        zones=first.zones,
        subnets=node_subnet_kind(network, first),
        nodes_min=sum(shard.max_nodes if shard.static else shard.min_nodes for shard in shards),
        nodes_max=sum(shard.max_nodes for shard in shards),
        shards=len(shards),
        nodes_of_shard=max(shard.max_nodes for shard in shards),
        fallback_nodes=sum(shard.fallback_nodes for shard in shards),
        accelerator=first.accelerator,
        accelerators_per_node=first.accelerators_per_node,
        efa_interfaces=first.efa_interfaces,
        placement_group=first.placement_group,
    )


def _reservation_name(reservation: ReservationPlan) -> str:
    """Return the name of a reservation: its id, its tags or its resource group."""
    tags = ", ".join(f"{key}={value}" for key, value in reservation.tags.items())
    return reservation.id or tags or reservation.resource_group or ""
