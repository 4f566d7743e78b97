"""Clusters of some zones and nodes, and the subnets that they get."""

from typing import Any

from tests.support.pools import POOL, SYSTEM_POOL, make_cluster
from ultrascale import config
from ultrascale.plan.model import NetworkPlan, SubnetPlan
from ultrascale.plan.network.vpc import plan_network

ZONES = [f"us-east-1{letter}" for letter in "abcdef"]
# Addresses that EC2 keeps of every subnet.
KEPT_BY_EC2 = 5


def cluster_of(zones: int = 2, **network: Any) -> config.Cluster:
    """Return a cluster whose ranges are ``network``'s; its pools stay in the first two zones."""
    document = {"vpc_cidr": "10.0.0.0/16", "zones": ZONES[:zones]} | network
    closed = document.get("egress") == "none"
    return make_cluster(
        region="us-east-1",
        network=document,
        images={"mirror": "registry.example.com/mirror"} if closed else None,
        pools=[SYSTEM_POOL, POOL | {"zones": ZONES[1:2]}],
    )


def layout(zones: int = 2, **network: Any) -> NetworkPlan:
    return plan_network(cluster_of(zones, **network))


def of(network: NetworkPlan, kind: str) -> list[SubnetPlan]:
    return [subnet for subnet in network.subnets if subnet.kind == kind]
