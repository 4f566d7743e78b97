"""The VPC, its subnets, the nodes in them, and the deletion of interfaces that nodes left."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import eks, regions, vpc
from ultrascale.core.table import all_parts
from ultrascale.plan import retention
from ultrascale.plan.model import (
    AddonPlan,
    ExistingVpcPlan,
    InterfaceCleanerPlan,
    NetworkPlan,
    PoolPlan,
    ScalePlan,
    SubnetKind,
    SubnetPlan,
)
from ultrascale.plan.network.addresses import address_check
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign
from ultrascale.plan.network.demand import demands, may_move, single_addresses
from ultrascale.plan.network.existing_addresses import (
    MODES,
    PODS_OF_TWO,
    AddressesOfSubnets,
    AddressMode,
    ExistingAddresses,
    is_limited,
    pods_of,
    room_of,
    surge,
)
from ultrascale.plan.network.existing_addresses import node_draw as existing_node_draw
from ultrascale.plan.network.policies import plan_network_policies
from ultrascale.plan.network.subnets import WARM_PREFIXES, primary_subnets
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import plan_scale

PODS_OF_A_PREFIX = eks.ADDRESSES_PER_PREFIX - 1
"""Pods with an address of their own on a node that holds a single prefix.

With WARM_IP_TARGET=1 the VPC CNI holds one address free, and takes a prefix more for it.

Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/prefix-and-ip-target.md
"""


def plan_network(cluster: config.Cluster) -> NetworkPlan:
    """Lay out the VPC of ``cluster``, in ranges that `AddressCheck` accepts.

    Its endpoints follow from the deployed parts, see `plan.network.endpoints`.
    """
    network = cluster.network
    region = regions.lookup_region(cluster.region)
    primary, *secondary = network.ranges
    existing = plan_existing_vpc(network, cluster.account)
    check = address_check(network)
    ranges = check and check.pod_ranges([*demands(cluster.pools, network)])
    addresses = _existing_addresses(cluster)
    made = (*primary_subnets(primary, network.zones), *ranges.subnets) if ranges else ()
    if network.egress == "none":
        # They would hold NAT gateways and load balancers of the internet.
        made = tuple(subnet for subnet in made if subnet.kind != "public")
    return NetworkPlan(
        existing=existing,
        egress=network.egress,
        vpc_cidr=primary,
        secondary_cidrs=tuple(secondary),
        zones=network.zone_names,
        subnets=made or tuple(existing_subnets(network)),
        prefixes_per_node=ranges.prefixes_per_node if ranges else addresses.mode.prefixes,
        most_pods=addresses.mode.pods,
        pod_addresses=addresses.mode.pods if addresses.mode.single else None,
        assigned=addresses.assigned,
        standing=addresses.standing,
        plain_in_pod_ranges=ranges is not None and ranges.plain,
        dealt_by_need=ranges is not None and ranges.by_need,
        reserves_by_function=existing is None and not region.subnet_cidr_reservations,
        endpoint_security_group=network.endpoints.security_group,
        flow_logs=network.flow_logs if existing is None else "none",
        log_retention_days=retention.LOG_DAYS,
        policies=plan_network_policies(cluster, plan_scale(cluster)),
    )


def _existing_addresses(cluster: config.Cluster) -> ExistingAddresses:
    """Return how nodes take addresses in existing subnets, which the rules accepted."""
    existing = None
    if cluster.network.vpc is not None:
        existing = AddressesOfSubnets(
            cluster.network,
            cluster.pools,
            storage=cluster.storage,
            sections=cluster.sections,
        ).plan()
    return existing or ExistingAddresses(mode=MODES[0], assigned={}, standing={})


_RANGES = "network.pod_cidrs"


@rule(severity="warning")
def network_leaves_room(network: NetworkPlan) -> Iterator[config.Mistake]:
    """Yield notes on the ranges of a cluster file for its user."""
    if network.existing is not None:
        yield from _existing_warnings(network)
        return
    if network.prefixes_per_node == 1:
        wrong = (
            "room for one /28 prefix on each node, so a node runs at most "
            f"{PODS_OF_A_PREFIX} pods with an address of their own, DaemonSets' among them"
        )
        yield config.refuse(_RANGES, wrong, "add ranges for a second", got="")
    if network.dealt_by_need:
        wrong = "ranges are too small to deal evenly, so zones get them by their need"
        todo = "later counts of nodes may move subnets, which fails while nodes use them"
        yield config.refuse(_RANGES, wrong, todo, got="")


def _existing_warnings(network: NetworkPlan) -> Iterator[config.Mistake]:
    pods = _mode(network).pods
    if pods == PODS_OF_A_PREFIX:
        wrong = (
            f"room for {pods} pods with an address of their own on each node outside system pools, "
            "DaemonSets' among them"
        )
        yield config.refuse("network.subnets", wrong, "add subnets for more", got="")
    for subnet in network.of_kind("control-plane"):
        free, advised = room_of(subnet).addresses, eks.ADVISED_CONTROL_PLANE_ADDRESSES
        if free < advised:
            wrong = f"{subnet.id} has {free} free addresses for the control plane's interfaces"
            todo = f"EKS advises {advised}: each upgrade makes new interfaces beside the old"
            yield config.refuse("network.subnets", wrong, todo, got="")


def unrecorded_subnets(network: NetworkPlan) -> tuple[str, ...]:
    """Return the ids of existing subnets that count as empty, without recorded free addresses."""
    return tuple(
        dict.fromkeys(
            subnet.id
            for subnet in network.subnets
            if subnet.id is not None
            and subnet.free_addresses is None
            and subnet.free_prefixes is None
        )
    )


@rule(severity="note")
def free_addresses_are_recorded(network: NetworkPlan) -> Iterator[config.Mistake]:
    """Yield what is assumed of existing subnets."""
    if network.existing is not None and (assumed := unrecorded_subnets(network)):
        wrong = f"no free addresses recorded of {', '.join(assumed)}, so they count as empty"
        todo = f"`ultrascale network record {network.existing.vpc_id}` writes them down"
        yield config.refuse("network.subnets", wrong, todo, got="")


def address_remarks(network: NetworkPlan) -> Iterator[str]:
    """Yield what is assumed of existing subnets, and how pods get their addresses there."""
    if network.existing is None:
        return
    if assumed := unrecorded_subnets(network):
        yield (
            f"Assumed: nobody else has addresses in {', '.join(assumed)}; `ultrascale network "
            f"record {network.existing.vpc_id}` writes down what is free"
        )
    pods = network.most_pods
    who = "with accelerators" if pods is None else "outside system pools"
    most = f"A node {who} runs at most {pods or PODS_OF_TWO} pods with an address of their own"
    if network.pod_addresses is None:
        yield (
            "Pods get addresses by prefixes. Nothing can be reserved in subnets of others: an "
            f"address that somebody else takes there may cost a block of 16. {most}"
        )
    else:
        yield (
            "Pods get single addresses: too few free blocks of 16 would be left for prefixes. "
            f"{most}"
        )


def node_subnet_kind(network: NetworkPlan, pool: PoolPlan) -> SubnetKind:
    """Return the kind of subnet of ``pool``'s nodes."""
    moved = network.plain_in_pod_ranges and may_move(pool)
    return subnet_kind(network, accelerated=pool.accelerator is not None or moved)


def subnet_kind(network: NetworkPlan, *, accelerated: bool) -> SubnetKind:
    """Return the kind of subnet of nodes in the pod ranges, or of others."""
    return "accelerated" if accelerated and network.of_kind("accelerated") else "private"


def subnets_of(network: NetworkPlan, pool: PoolPlan) -> tuple[SubnetPlan, ...]:
    """Return the subnets of ``pool``'s nodes.

    In an existing VPC the address plan chose them: groups have one in each zone.
    """
    own = network.of_kind(node_subnet_kind(network, pool))
    if network.existing is not None:
        chosen = network.assigned.get(pool.name, ())
        return tuple(subnet for subnet in own if subnet.id in chosen)
    return tuple(subnet for subnet in own if subnet.zone in pool.zones)


def node_draw(network: NetworkPlan, pool: PoolPlan) -> Draw:
    """Return the addresses that the address plan counts for a node of ``pool``."""
    if network.existing is not None:
        return existing_node_draw(pool, _mode(network))
    return Draw(addresses=single_addresses(pool), prefixes=node_prefixes(network, pool))


def _mode(network: NetworkPlan) -> AddressMode:
    mode = AddressMode(prefixes=network.prefixes_per_node, pods=network.most_pods)
    return next(known for known in MODES if known == mode)


def node_prefixes(network: NetworkPlan, pool: PoolPlan) -> int:
    """Return the /28 prefixes that the address plan counts for a node of ``pool``."""
    if network.existing is not None:
        return existing_node_draw(pool, _mode(network)).prefixes
    inside = node_subnet_kind(network, pool) == "accelerated"
    return network.prefixes_per_node if inside else WARM_PREFIXES


def within_addresses(cluster: config.Cluster, network: NetworkPlan, pool: PoolPlan) -> PoolPlan:
    """Return ``pool`` with no more pods on a node than the address plan has addresses for.

    Pods with single addresses are counted by these already.
    """
    counted = network.existing is not None and is_limited(pool)
    if pool.facts.has_single_addresses or not (counted or node_prefixes(network, pool) == 1):
        return pool
    collectors = sum(part.collects_logs(cluster) for part in all_parts())
    others = 0 if pool.is_auto_mode else collectors
    most = own_pods_of(network, pool) + pods_on_host_network(pool) + others
    return replace(pool, max_pods=min(pool.max_pods, most))


def own_pods_of(network: NetworkPlan, pool: PoolPlan) -> int:
    """Return the most pods with an address of their own on a node of ``pool``."""
    if network.existing is None:
        return PODS_OF_A_PREFIX
    efa = sum(nic.card == 0 and nic.kind == "efa-only" for nic in pool.network_interfaces)
    specs = pool.specs
    return min(pods_of(pool, spec, _mode(network), efa_on_card_0=efa) for spec in specs)


def pods_on_host_network(pool: PoolPlan) -> int:
    """Return the pods that every node of ``pool`` runs on its own network, without an address each.

    Kubelets count them like others. Without them, eight pods of a GPU each would not fit beside the
    DaemonSets of a node with a single prefix.
    """
    if not pool.facts.runs_pinned_image:
        return eks.HOST_NETWORK_PODS
    # The EFA device plugin, and the cache that pods ask for names.
    return eks.ADDON_HOST_NETWORK_PODS + (pool.efa_interfaces > 0) + bool(pool.name_servers)


KINDS: Mapping[config.SubnetUse, SubnetKind] = {
    "public": "public",
    "control-plane": "control-plane",
    "nodes": "private",
    "accelerated": "accelerated",
}
"""Kind of the subnets of each use."""


def plan_existing_vpc(network: config.Network, account: str | None) -> ExistingVpcPlan | None:
    """Return the existing VPC; None for one of ours.

    Args:
        network: The section of the file.
        account: Account of the cluster, where the file names it.
    """
    if network.vpc is None:
        return None
    shared = config.is_shared(network, account)
    return ExistingVpcPlan(vpc_id=network.vpc.id, owner=network.vpc.owner, shared=shared)


def existing_subnets(network: config.Network) -> Iterator[SubnetPlan]:
    """Yield the subnets of a VPC that exists, by kind, zone and id.

    In file order, two lines that change places would replace node groups.
    """
    ordered = sorted(network.subnets, key=lambda subnet: (subnet.zone, subnet.id))
    for use, kind in KINDS.items():
        for subnet in ordered:
            if use in subnet.use:
                yield SubnetPlan(
                    kind=kind,
                    zone=subnet.zone,
                    cidr=subnet.cidr,
                    prefix_reservations=(),
                    id=subnet.id,
                    free_addresses=subnet.free_addresses,
                    free_prefixes=subnet.free_prefixes,
                )


_HOURLY = 60
# The plugin attaches an interface seconds after it has made it.
_LEAST_MINUTES = 30
# EC2 takes five deletions a second of an account: the rest waits for the next hour.
_MOST = 2_000
_TIMEOUT_SECONDS = 900


def plan_interface_cleaner(
    scale: ScalePlan, addons: Sequence[AddonPlan]
) -> InterfaceCleanerPlan | None:
    """Return the function that deletes interfaces; None where each node does, or EKS Auto Mode."""
    if scale.node_cleanup or not any(addon.name == "vpc-cni" for addon in addons):
        return None
    return InterfaceCleanerPlan(
        cluster_tag=vpc.CLUSTER_TAG,
        made_tag=vpc.MADE_TAG,
        interval_minutes=_HOURLY,
        least_minutes=_LEAST_MINUTES,
        most=_MOST,
        timeout_seconds=_TIMEOUT_SECONDS,
        log_retention_days=retention.LOG_DAYS,
    )


def nodes_in(
    network: NetworkPlan, pools: Sequence[PoolPlan], zone: str, *, whole: bool = False
) -> Iterator[Nodes]:
    """Yield the nodes of each shard in a zone, in the subnets that the plan names.

    Args:
        network: Network of the cluster.
        pools: Pools of the cluster, those of the system first.
        zone: Zone name or zone id.
        whole: Whether all nodes of a shard count, not its share of an even spread.
    """
    there = {subnet.id for subnet in network.subnets if subnet.zone == zone}
    for pool in pools:
        if zone not in pool.zones:
            continue
        assigned = network.assigned.get(pool.name, ())
        yield Nodes(
            name=pool.name,
            subnets=tuple(id for id in assigned if id in there),
            count=pool.max_nodes if whole else -(-pool.max_nodes // len(pool.zones)),
            surge=surge(pool),
            each=node_draw(network, pool),
            spreads=pool.is_node_pool,
        )


def zones_without_room(
    network: NetworkPlan, pools: Sequence[PoolPlan], rooms: Mapping[str, Room]
) -> tuple[str, ...]:
    """Return the zones in which the fleet finds too few addresses at its full size.

    Nodes stay in the subnets that the plan names.

    Args:
        network: Network of the cluster.
        pools: Pools of the cluster, those of the system first.
        rooms: What is free in each of its subnets, by id.
    """
    standing = {id: Draw(addresses=sum(uses.values())) for id, uses in network.standing.items()}
    zones = dict.fromkeys(subnet.zone for subnet in network.subnets)
    short: list[str] = []
    for zone in zones:
        ids = dict.fromkeys(subnet.id or "" for subnet in network.subnets if subnet.zone == zone)
        there = [rooms[id] for id in ids if id in rooms]
        if assign(there, [*nodes_in(network, pools, zone)], standing) is None:
            short.append(zone)
    return tuple(short)
