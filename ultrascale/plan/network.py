"""The VPC: its subnets and endpoints."""

from ultrascale import config
from ultrascale.catalog import regions
from ultrascale.plan import retention
from ultrascale.plan.model import NetworkPlan, PoolPlan, SubnetKind
from ultrascale.plan.subnets import accelerated_subnets, primary_subnets

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
    """Lay out the VPC of ``cluster``, in ranges that `AddressCheck` finds large enough."""
    network = cluster.network
    blocks = network.pod_blocks
    keep = regions.lookup_region(cluster.region).subnet_cidr_reservations
    endpoints = [*_ALWAYS_ENDPOINTS]
    if cluster.storage.lustre:
        endpoints.append("fsx")
    if _hears_of_interruptions(cluster):
        endpoints.append("sqs")
    return NetworkPlan(
        vpc_cidr=network.vpc_cidr,
        secondary_cidrs=blocks,
        zones=network.zones,
        subnets=(
            *primary_subnets(network.vpc_cidr, network.zones, reservations=keep),
            *accelerated_subnets(blocks, network.zones, reservations=keep),
        ),
        interface_endpoints=tuple(endpoints),
        flow_log_retention_days=retention.LOG_DAYS,
    )


def _hears_of_interruptions(cluster: config.Cluster) -> bool:
    """Return whether a controller reads a queue of instances that AWS is about to take away."""
    self_managed = any(pool.provisioner == "self-managed" for pool in cluster.pools)
    return cluster.karpenter is not None or self_managed


def node_subnet_kind(network: NetworkPlan, pool: PoolPlan) -> SubnetKind:
    """Return the kind of subnet that the nodes of ``pool`` live in."""
    return subnet_kind(network, accelerated=pool.accelerator is not None)


def subnet_kind(network: NetworkPlan, *, accelerated: bool) -> SubnetKind:
    """Return the kind of subnet that nodes with accelerators, or without, live in."""
    return "accelerated" if accelerated and network.secondary_cidrs else "private"
