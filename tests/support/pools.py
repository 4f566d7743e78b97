"""Valid clusters and pools for tests to bend."""

import json
from functools import cache
from operator import methodcaller
from typing import Any, cast

import yaml

from ultrascale import config
from ultrascale.config._document import parse_yaml
from ultrascale.config._reading import check, read_document
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pools

CAPACITY_BLOCK = {
    "option": "capacity-block",
    "reservation": "cr-0123456789abcdef0",
    "starts": "2026-12-01T11:30:00Z",
    "ends": "2026-12-08T11:30:00Z",
}
TRAINING_PLAN = {
    "option": "training-plan",
    "plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/baseline",
    "starts": "2026-12-01T11:30:00Z",
    "ends": "2026-12-08T11:30:00Z",
}
ODCR = {"option": "odcr", "reservation": "cr-0123456789abcdef0"}
SPOT = {"option": "spot"}
ON_DEMAND = {"option": "on-demand"}
LUSTRE: dict[str, Any] = {
    "name": "training",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}

SYSTEM_POOL: dict[str, Any] = {
    "name": "system",
    "instance_types": ["m7g.2xlarge"],
    "provisioner": "managed-node-group",
    "nodes": {"min": 2, "max": 4},
}
POOL: dict[str, Any] = {
    "name": "train",
    "instance_types": ["p5.48xlarge"],
    "provisioner": "managed-node-group",
    "zones": ["us-west-2b"],
    "nodes": {"max": 16},
}
# GPU pools cannot be planned as a whole cluster yet.
NEURON_POOL: dict[str, Any] = POOL | {"instance_types": ["trn1.32xlarge"]}
HYPERPOD_POOL: dict[str, Any] = POOL | {
    "name": "hp",
    "provisioner": "hyperpod",
    "purchase": TRAINING_PLAN,
    "nodes": {"static": 8},
}

# Where CloudFormation has all of task governance.
GOVERNED_ZONES = ["us-east-1a", "us-east-1b"]
GOVERNED_POOL: dict[str, Any] = HYPERPOD_POOL | {
    "purchase": TRAINING_PLAN
    | {"plan": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/baseline"},
    "zones": ["us-east-1b"],
}


def governed_document(*teams: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a valid cluster file of which ``teams``, or one, share a HyperPod pool."""
    governance = {"teams": list(teams) or [{"name": "research", "fair_share_weight": 40}]}
    return make_document(
        **{
            "region": "us-east-1",
            "network": {"vpc_cidr": "10.0.0.0/16", "zones": GOVERNED_ZONES},
            "pools": [SYSTEM_POOL, GOVERNED_POOL],
            "hyperpod": {"task_governance": governance},
            **changes,
        }
    )


def pool_document(**changes: Any) -> dict[str, Any]:
    """Return a valid entry of `pools` in which ``changes`` replace keys; None removes one."""
    return _changed(POOL, changes)


def make_document(**changes: Any) -> dict[str, Any]:
    """Return a valid cluster file in which ``changes`` replace keys; None removes one."""
    document: dict[str, Any] = {
        "name": "research",
        "region": "us-west-2",
        "network": {"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2b", "us-west-2c"]},
        "kubernetes": {"admins": ["arn:aws:iam::111122223333:role/PlatformAdmin"]},
        "pools": [SYSTEM_POOL, NEURON_POOL],
    }
    return _changed(document, changes)


def make_cluster(**changes: Any) -> config.Cluster:
    """Return a valid cluster in which ``changes`` replace keys of its file; None removes one."""
    return _cluster(as_json(make_document(**changes)))


def as_text(document: object) -> str:
    """Return ``document`` as a file without keys that are None; libyaml writes it faster."""
    return yaml.dump(_without_nulls(document), Dumper=yaml.CSafeDumper, sort_keys=False)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        # Null in a merge patch takes a key away.
        return {
            key: item if key == "patch" else _without_nulls(item)
            for key, item in items
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast("list[object]", value)]
    return value


def as_json(document: object) -> str:
    """Return ``document`` as a file in the part of YAML that is JSON, for tests that read many."""
    return json.dumps(
        _without_nulls(document), ensure_ascii=False, default=methodcaller("isoformat")
    )


def loads_own(text: str, *, source: str = "cluster file") -> config.Cluster:
    """Return what `config.loads` does of what `as_text` wrote, which libyaml also reads.

    Tests of files as people write them use `config.loads`.
    """
    return check(read_document(parse_yaml(text, source=source, own=True)))


def make_pool(**changes: Any) -> config.Pool:
    """Return a valid pool in which ``changes`` replace keys; None removes one.

    The cluster around it has the pool's zones, and Karpenter where the pool needs it.
    """
    pool = pool_document(**changes)
    document: dict[str, Any] = {}
    zones: list[str] = pool.get("zones", [])
    network = make_document()["network"]
    network["zones"] = [*network["zones"], *(z for z in zones if z not in network["zones"])]
    if zones and not zones[0].startswith("us-west-2"):
        region = zones[0].rstrip("abcdef")
        document["region"] = region
        network["zones"] = [*zones, *(z for z in (f"{region}a", f"{region}b") if z not in zones)]
    if pool["provisioner"] == "karpenter":
        document["karpenter"] = {"version": "1.15.2"}
    others = [] if pool.get("name") == "system" else [SYSTEM_POOL]
    cluster = make_cluster(**document, network=network, pools=[*others, pool])
    made = cluster.pools[-1]
    return made.model_copy(update={"zones": config.zones_of(made, cluster.network)})


def shards_of(cluster: config.Cluster) -> list[PoolPlan]:
    """Return the plan of each shard of each pool of ``cluster``."""
    return [
        plan
        for pool in cluster.pools
        for plan in plan_pools(
            pool, kubernetes_version=cluster.kubernetes.version, network_zones=cluster.network.zones
        )
    ]


@cache
def _cluster(text: str) -> config.Cluster:
    """Clusters are frozen: tests may share one."""
    return loads_own(text)


def _changed(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = document | changes
    return {key: value for key, value in merged.items() if value is not None}
