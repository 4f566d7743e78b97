"""Node classes of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping

from msgspec.structs import replace

from ultrascale import config
from ultrascale.config.pools import has_efa_cards
from ultrascale.plan import names
from ultrascale.plan.model import NetworkInterface, NetworkPlan, NodeClassPlan, PoolPlan
from ultrascale.plan.model.node_pools import NodeClassKind
from ultrascale.plan.network.vpc import (
    node_prefixes,
    node_subnet_kind,
    own_pods_of,
    subnets_of,
)


def node_class_kind(pool: PoolPlan) -> NodeClassKind:
    """Return the kind of the node class of a pool of NodePools."""
    return "NodeClass" if pool.is_auto_mode else "EC2NodeClass"


def plan_node_class(
    cluster: config.Cluster, network: NetworkPlan, pool: PoolPlan, *, named_by_id: bool
) -> NodeClassPlan:
    """Return the node class of ``pool``, which Karpenter or EKS Auto Mode launches.

    Args:
        cluster: The cluster file.
        network: VPC.
        pool: The pool.
        named_by_id: Whether Karpenter's nodes are named by their instance ids.
    """
    role = names.node_role(cluster.name, cluster.region, by_id=named_by_id)
    return replace(
        node_class_of_others(pool, role=role),
        # EKS makes the profiles of Auto Mode's nodes, from its own side.
        instance_profile=role if pool.is_karpenter and network.egress == "none" else None,
        subnet_tags={
            names.DISCOVERY_TAG: cluster.name,
            names.SUBNET_KIND_TAG: node_subnet_kind(network, pool),
        },
        subnet_ids=_subnet_ids(network, pool),
        security_group_tags=_security_group_tags(cluster.name, pool),
        placement_group=names.placement_group(pool.name) if pool.placement_group else None,
        ip_prefixes=_ip_prefixes(network, pool),
        pod_addresses=None if network.pod_addresses is None else own_pods_of(network, pool),
        named_by_id=named_by_id,
    )


def node_class_of_others(pool: PoolPlan, *, role: str) -> NodeClassPlan:
    """Return the node class of ``pool`` in another owner's network, without a place in it.

    Another owner's VPC CNI may know no prefixes. The maker of subnets, security groups and the
    placement group adds them.

    Args:
        pool: The pool.
        role: Name of the nodes' IAM role.
    """
    return NodeClassPlan(
        name=pool.name,
        kind=node_class_kind(pool),
        role=role,
        subnet_tags={},
        security_group_tags=(),
        reservation=pool.reservation,
        placement_group=None,
        network_interfaces=pool.network_interfaces or _without_efa(pool),
        root_disk=pool.root_disk,
        volume_key=pool.volume_key,
        ip_prefixes=0,
        pod_addresses=None,
        tags=pool.tags,
        ami_alias=pool.ami_alias,
        raid0=pool.raid0,
        max_pods=pool.max_pods,
        parallel_image_pull=pool.parallel_image_pull,
        name_servers=pool.name_servers,
        named_by_id=False,
    )


def _subnet_ids(network: NetworkPlan, pool: PoolPlan) -> tuple[str, ...]:
    """Return the subnets of an existing VPC; none of ours, which carry tags.

    Tags that the owner of a shared subnet sets are not visible in our account, and ours would
    change another owner's subnet.

    Source: https://github.com/aws/karpenter-provider-aws/issues/1368
    """
    return tuple(subnet.id for subnet in subnets_of(network, pool) if subnet.id is not None)


def _without_efa(pool: PoolPlan) -> tuple[NetworkInterface, ...]:
    """Return the only interface of a Karpenter node without EFA whose type could have it.

    Where no interface is listed, Karpenter counts all that the type could have: it would launch a
    node for any pod that asks for `vpc.amazonaws.com/efa`. Our plugin does not run there, so the
    node would be paid for, never be initialized, and never take the pod.

    Source:
    https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/instancetype/types.go
    """
    if not pool.is_karpenter or not any(map(has_efa_cards, pool.specs)):
        return ()
    return (NetworkInterface(card=0, device=0, kind="interface"),)


def _security_group_tags(cluster: str, pool: PoolPlan) -> tuple[Mapping[str, str], ...]:
    """Return the tags of the cluster security group, and of the pool's EFA group if it has one.

    The shards of a pool share the group: EFA traffic between them would be dropped otherwise.
    """
    of_cluster = {names.CLUSTER_SECURITY_GROUP_TAG: cluster}
    if not pool.efa_interfaces:
        return (of_cluster,)
    return (of_cluster, {names.DISCOVERY_TAG: cluster, names.POOL_LABEL: pool.pool})


def _ip_prefixes(network: NetworkPlan, pool: PoolPlan) -> int:
    """Return the /28 prefixes that a node of ``pool`` launches with.

    On EKS Auto Mode a node whose interfaces are listed never gets another address: it launches with
    as many prefixes as the address plan counts for a node, enough for a pod on each of its
    accelerators and as many pods of DaemonSets. Where the interfaces are not listed, Auto Mode adds
    prefixes as pods need them.

    On Karpenter one prefix spares the first pods of a node in the pod ranges, or of an accelerated
    one, the CNI's call to EC2, which throttles when a large job starts everywhere at once.
    Karpenter leaves EFA-only interfaces out.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html#static-network-interfaces
        https://github.com/aws/karpenter-provider-aws/pull/8480
    """
    if network.pod_addresses is not None:
        return 0
    if pool.is_auto_mode:
        return node_prefixes(network, pool) if pool.network_interfaces else 0
    inside = node_subnet_kind(network, pool) == "accelerated"
    return 1 if inside or pool.accelerator is not None else 0
