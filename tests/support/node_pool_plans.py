"""Pools that Karpenter and EKS Auto Mode launch, planned as their cluster would plan them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.folders import ROOT
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    pool_document,
    shards_of,
)
from ultrascale import config
from ultrascale.plan.model import NodeClassPlan, NodePoolPlan, PoolPlan
from ultrascale.plan.network.vpc import plan_network
from ultrascale.plan.pools.node_pools import plan_node_classes, plan_node_pools
from ultrascale.plan.scale import plan_scale

CLUSTERS = ROOT / "clusters"
PROVISIONERS = ("karpenter", "auto-mode")
SPOT_WITH_FALLBACK = {"option": "spot", "fallback": "on-demand"}
ODCR_BY_TAGS = {"option": "odcr", "reservation_tags": {"team": "inference"}}
BLOCK_BY_TAGS = {key: value for key, value in CAPACITY_BLOCK.items() if key != "reservation"} | {
    "reservation_tags": {"purpose": "pretraining"}
}
G_TYPES = ["g6e.12xlarge", "g6e.24xlarge", "g6.12xlarge"]
STATIC: Mapping[str, Any] = {"role": "reserved", "nodes": {"static": 16}}

LUSTRE: Mapping[str, Any] = {
    "lustre": [
        {"name": "data", "zone": "us-west-2b", "capacity_gib": 1200, "throughput_mbps_per_tib": 250}
    ]
}
# Of few interfaces: the rules of the CRD compare each with each, in Python for seconds.
TRN = {"instance_types": ["trn1.32xlarge"]}
# A cell of the matrix for every purchase option, dynamic and static, with EFA and without.
CELLS: Mapping[str, Mapping[str, Any]] = {
    "on-demand": {"purchase": ON_DEMAND, **TRN},
    "on-demand cpu": {"purchase": ON_DEMAND, "instance_types": ["m7g.8xlarge"], "zones": None},
    "on-demand static": {"purchase": ON_DEMAND, **TRN, **STATIC},
    "spot": {"purchase": SPOT, "instance_types": G_TYPES, "zones": None},
    "spot with fallback": {"purchase": SPOT_WITH_FALLBACK, "instance_types": G_TYPES},
    "odcr": {"purchase": ODCR, **TRN, "role": "reserved"},
    "odcr by tags": {"purchase": ODCR_BY_TAGS, **TRN, "placement_group": True},
    "odcr static": {"purchase": ODCR, **STATIC, "instance_types": ["g6e.12xlarge"]},
    "block": {"purchase": CAPACITY_BLOCK, **TRN, "role": "reserved"},
    "block by tags": {"purchase": BLOCK_BY_TAGS, **TRN, "tags": {"team": "ml"}},
    "block static": {"purchase": CAPACITY_BLOCK, **TRN, **STATIC},
}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Plans of the pools of one cluster."""

    pools: tuple[PoolPlan, ...]  # The pools
    classes: tuple[NodeClassPlan, ...]  # Their node classes
    node_pools: tuple[NodePoolPlan, ...]  # Their NodePools

    @property
    def node_class(self) -> NodeClassPlan:
        """The only node class."""
        (node_class,) = self.classes
        return node_class

    @property
    def node_pool(self) -> NodePoolPlan:
        """The only NodePool."""
        (node_pool,) = self.node_pools
        return node_pool


def planned(
    provisioner: str = "karpenter",
    *,
    network: Mapping[str, Any] | None = None,
    storage: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Planned:
    """Plan a pool in which ``changes`` replace keys, in a cluster that suits it."""
    pool = pool_document(provisioner=provisioner, **changes)
    document: dict[str, Any] = {
        "pools": [*([] if pool["name"] == "system" else [SYSTEM_POOL]), pool]
    }
    if provisioner == "karpenter":
        document["karpenter"] = {"version": "1.15.2"}
    if network is not None:
        document["network"] = network
        if network.get("egress") == "none":
            document["images"] = {"mirror": "registry.example.com/mirror"}
    if storage is not None:
        document["storage"] = storage
    return planned_cluster(make_cluster(**document))


def planned_file(name: str) -> Planned:
    """Plan the pools of a file of ``clusters``."""
    return planned_cluster(config.loads((CLUSTERS / name).read_text(encoding="utf-8")))


def planned_cluster(cluster: config.Cluster) -> Planned:
    """Plan the pools of ``cluster``."""
    pools = tuple(shards_of(cluster))
    return Planned(
        pools=pools,
        classes=plan_node_classes(
            cluster,
            plan_network(cluster),
            pools,
            named_by_id=plan_scale(cluster).instance_id_node_names,
        ),
        node_pools=plan_node_pools(cluster, pools),
    )
