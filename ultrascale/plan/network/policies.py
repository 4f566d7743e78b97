"""Network policies: enforcement, and the pods that they may select or name.

EKS lists a policy's pods and peers in objects that every node watches. A policy over a large job's
pods therefore costs every node, and was seen to freeze.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network

from ultrascale import config
from ultrascale.catalog import scale as limits
from ultrascale.plan.model import NetworkPolicyPlan, ScalePlan
from ultrascale.plan.network.subnets import primary_subnets


def plan_network_policies(cluster: config.Cluster, scale: ScalePlan) -> NetworkPolicyPlan:
    """Return how far network policies reach in ``cluster``."""
    services = (job for job in cluster.jobs.values() if isinstance(job, config.ServiceJob))
    most = max((job.most_replicas * job.nodes for job in services), default=0)
    of_jobs = scale.policies_of_jobs and most <= limits.PODS_OF_A_POLICY
    return NetworkPolicyPlan(
        enforced=scale.network_policies,
        of_jobs=of_jobs,
        ranges=() if of_jobs else tuple(map(str, _pod_ranges(cluster.network))),
    )


def control_plane_ranges(network: config.Network) -> tuple[str, ...]:
    """Return the ranges from which the API server calls pods, without addresses of our pods.

    In an existing VPC, nodes may share a subnet with the control plane.
    """
    if network.vpc is not None:
        subnets = [subnet.cidr for subnet in network.subnets if "control-plane" in subnet.use]
    else:
        made = primary_subnets(network.ranges[0], network.zones)
        subnets = [subnet.cidr for subnet in made if subnet.kind == "control-plane"]
    return tuple(map(str, subnets))


def _pod_ranges(network: config.Network) -> Iterator[IPv4Network]:
    """Yield the address ranges of the cluster's pods, not of other users of an existing VPC."""
    if network.vpc is None:
        yield from network.ranges
    for subnet in network.subnets:
        if {"nodes", "accelerated"} & {*subnet.use}:
            yield subnet.cidr


def policy_remarks(plan: NetworkPolicyPlan) -> Iterator[str]:
    """Yield notes on traffic that is open because the cluster is large."""
    if not plan.enforced:
        yield (
            "Network policies are not enforced: above "
            "5,000 nodes the VPC CNI's agent is off, as every node would watch the pods of every "
            "policy. Security groups, and what listens, are what guards a pod"
        )
    if not plan.of_jobs:
        yield (
            "No network policy selects the pods of jobs or names them as peers: a namespace may "
            f"hold more than {limits.PODS_OF_A_POLICY:,} pods, of which each change is told to "
            "every node. Pods of jobs are reached from the whole VPC"
        )
