"""Subnets: where they lie, and whether they hold what the file asks for.

The layout follows from the VPC's range and the order of the zones alone, never from the pools: a
subnet cannot change its range, and a node group or file system cannot change its subnet, so a pool
that grows must not move anything.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.errors import ConfigError
from ultrascale.plan.model import NetworkPlan, PoolPlan, SubnetKind, SubnetPlan

# Smallest subnet that EC2 makes. EKS asks for six addresses for its own interfaces.
_SMALLEST_PREFIX_LENGTH = 28
# EC2 takes the first four addresses and the last of every subnet.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
_RESERVED_BY_EC2 = 5
# Single addresses of a zone beside its nodes: interface endpoints, file-system and Lambda
# interfaces, internal load balancers.
_ADDRESSES_BESIDE_NODES = 40
# With WARM_PREFIX_TARGET=1 the CNI holds one /28 in use and one in reserve.
PREFIXES_PER_NODE = 2

_ALWAYS_ENDPOINTS = (
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "sts",
    "logs",
    "monitoring",
    "ssm",
    "ssmmessages",
    "ec2messages",
    "eks",
    "eks-auth",
    "elasticloadbalancing",
    "autoscaling",
    "kms",
)


def plan_network(cluster: config.Cluster) -> NetworkPlan:
    """Lay out the VPC of ``cluster``.

    Raises:
        ConfigError: The ranges cannot hold one subnet of each kind in every zone; the message says
            how large they would have to be.
    """
    network = cluster.network
    blocks = network.pod_blocks
    subnets = [*_primary_subnets(network.vpc_cidr, network.zones)]
    if blocks:
        subnets.extend(_accelerated_subnets(blocks, network.zones))
    endpoints = [*_ALWAYS_ENDPOINTS]
    if cluster.storage.lustre:
        endpoints.append("fsx")
    return NetworkPlan(
        vpc_cidr=network.vpc_cidr,
        secondary_cidrs=blocks,
        zones=network.zones,
        subnets=tuple(subnets),
        interface_endpoints=tuple(endpoints),
    )


def _primary_subnets(vpc: IPv4Network, zones: Sequence[str]) -> Iterator[SubnetPlan]:
    """Divide the VPC in equal parts: one shared by all zones, then one for each zone's nodes."""
    bits = math.ceil(math.log2(len(zones) + 1))
    shared_length = vpc.prefixlen + bits
    # The shared part: its lower half holds the public subnets, its upper half the control plane's.
    half_length = shared_length + 1
    per_zone = math.ceil(math.log2(len(zones)))
    if half_length + per_zone > _SMALLEST_PREFIX_LENGTH:
        needed = _SMALLEST_PREFIX_LENGTH - per_zone - 1 - bits
        raise _too_small("network.vpc_cidr", vpc, zones=len(zones), needed=needed)
    shared, *node_parts = vpc.subnets(new_prefix=shared_length)
    public_half, control_half = shared.subnets(new_prefix=half_length)
    public_length = max(min(vpc.prefixlen + 8, _SMALLEST_PREFIX_LENGTH), half_length + per_zone)
    for zone, cidr in zip(zones, public_half.subnets(new_prefix=public_length), strict=False):
        yield SubnetPlan(kind="public", zone=zone, cidr=cidr, prefix_reservations=())
    control = control_half.subnets(new_prefix=_SMALLEST_PREFIX_LENGTH)
    for zone, cidr in zip(zones, control, strict=False):
        yield SubnetPlan(kind="control-plane", zone=zone, cidr=cidr, prefix_reservations=())
    for zone, cidr in zip(zones, node_parts, strict=False):
        yield _node_subnet("private", zone, cidr)


def _accelerated_subnets(
    blocks: Sequence[IPv4Network], zones: Sequence[str]
) -> Iterator[SubnetPlan]:
    """Split the first range among all zones and deal each further one to a zone, in turn.

    So one more range adds subnets and moves none. One more zone moves none either, as long as no
    further range is dealt out yet and the zones stay below the next power of two.
    """
    first, *further = blocks
    length = first.prefixlen + math.ceil(math.log2(len(zones) + 1))
    if length > _SMALLEST_PREFIX_LENGTH:
        needed = _SMALLEST_PREFIX_LENGTH - (length - first.prefixlen)
        raise _too_small("network.pod_cidrs", first, zones=len(zones), needed=needed)
    for zone, cidr in zip(zones, first.subnets(new_prefix=length), strict=False):
        yield _node_subnet("accelerated", zone, cidr)
    for index, block in enumerate(further):
        yield _node_subnet("accelerated", zones[index % len(zones)], block)


def _node_subnet(kind: SubnetKind, zone: str, cidr: IPv4Network) -> SubnetPlan:
    """Reserve all but the first quarter of a node subnet for prefixes.

    A node takes one single address and two prefixes, so single addresses never need more.
    """
    reservations: tuple[IPv4Network, ...] = ()
    if cidr.prefixlen <= _SMALLEST_PREFIX_LENGTH - 2:
        _, second, *_ = cidr.subnets(prefixlen_diff=2)
        *_, upper_half = cidr.subnets()
        reservations = (second, upper_half)
    return SubnetPlan(kind=kind, zone=zone, cidr=cidr, prefix_reservations=reservations)


def _too_small(key: str, cidr: IPv4Network, *, zones: int, needed: int) -> ConfigError:
    line = (
        f"{key}: too small for {zones} zones, got '{cidr}'; the smallest that would do is /{needed}"
    )
    return ConfigError([line])


def node_subnet_kind(network: NetworkPlan, pool: PoolPlan) -> SubnetKind:
    """Return the kind of subnet that the nodes of ``pool`` live in."""
    if pool.accelerator is not None and network.secondary_cidrs:
        return "accelerated"
    return "private"


def address_mistakes(network: NetworkPlan, pools: Sequence[PoolPlan]) -> Iterator[tuple[str, str]]:
    """Yield what the subnets cannot hold at the pools' full size, with the key to change.

    Nodes of a pool with several zones are counted as spread evenly over them.
    """
    kinds: tuple[SubnetKind, ...] = ("private", "accelerated")
    for kind in kinds:
        subnets = network.of_kind(kind)
        nodes: Counter[str] = Counter()
        for pool in pools:
            if kind == node_subnet_kind(network, pool):
                for zone in pool.zones:
                    nodes[zone] += math.ceil(pool.max_nodes / len(pool.zones))
        for zone, count in nodes.items():
            mistake = _zone_mistake([s for s in subnets if s.zone == zone], zone, count)
            if mistake is not None:
                key = "network.pod_cidrs" if kind == "accelerated" else "network.vpc_cidr"
                yield key, mistake


def _zone_mistake(subnets: Sequence[SubnetPlan], zone: str, nodes: int) -> str | None:
    reserved = [sum(part.num_addresses for part in s.prefix_reservations) for s in subnets]
    prefixes = sum(reserved) // eks.ADDRESSES_PER_PREFIX
    singles = sum(s.cidr.num_addresses - _RESERVED_BY_EC2 for s in subnets) - sum(reserved)
    if nodes * PREFIXES_PER_NODE <= prefixes and nodes + _ADDRESSES_BESIDE_NODES <= singles:
        return None
    got = ", ".join(str(s.cidr) for s in subnets)
    addresses = max(
        math.ceil(nodes * PREFIXES_PER_NODE * eks.ADDRESSES_PER_PREFIX * 4 / 3),
        4 * (nodes + _ADDRESSES_BESIDE_NODES + _RESERVED_BY_EC2),
    )
    needed = 32 - math.ceil(math.log2(addresses))
    return (
        f"too small for {nodes} nodes in zone {zone}, got {got!r}; "
        f"that zone's nodes need the room of a /{needed}"
    )
