"""A whole cluster file: planned, or refused with every mistake at once."""

from pathlib import Path

import pytest

from tests.support.config_documents import with_lustre
from tests.support.pools import (
    LUSTRE,
    NEURON_POOL,
    SYSTEM_POOL,
    as_text,
    make_cluster,
    pool_document,
)
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, load, plan_cluster


def planned(**changes: object) -> ClusterPlan:
    return plan_cluster(make_cluster(**changes))


def test_what_is_not_built_yet_is_refused_by_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "efa.yaml"
    path.write_text(as_text(with_lustre({"capacity_gib": 19200, "efa": True})))
    with pytest.raises(ConfigError) as caught:
        load(path)
    (line,) = caught.value.mistakes
    assert (
        line == f"{path}:34:5: storage.lustre[scratch].efa: not supported yet, got true; use false"
    )


def test_no_pool_has_the_name_of_a_stack_of_the_cluster() -> None:
    """Its own stack would replace that one, and what is in it."""
    layers = ("network", "cluster", "access", "node-addons", "addons", "storage", "registry")
    for name in (*layers, "platform", "hyperpod-groups", "pipeline-gate", "default"):
        with pytest.raises(ConfigError, match=rf"pools\[{name}\]\.name: the name of one of the"):
            planned(pools=[SYSTEM_POOL, pool_document(name=name)])


def test_system_pools_are_told_from_the_others() -> None:
    second = SYSTEM_POOL | {"name": "more", "role": "system"}
    plan = planned(pools=[NEURON_POOL, SYSTEM_POOL, second])
    assert [pool.name for pool in plan.system_pools] == ["system", "more"]
    assert [pool.name for pool in plan.pools] == ["train"]
    assert [pool.name for pool in plan.all_pools] == ["system", "more", "train"]


def test_control_plane_is_private_and_writes_every_log_unless_the_file_says_otherwise() -> None:
    cidrs = ["203.0.113.0/24"]
    stated = {"version": "1.36", "control_plane_tier": "8xl", "service_cidr": "172.21.0.0/16"}
    stated |= {"event_ttl": "10m", "endpoint": {"public_cidrs": cidrs}}
    plan, own = planned().control_plane, planned(kubernetes=stated).control_plane
    assert plan.log_types == ("api", "audit", "authenticator", "controllerManager", "scheduler")
    assert (plan.public_cidrs, plan.tier, plan.event_ttl) == ((), "standard", "60m")
    assert str(plan.service_cidr) == "172.20.0.0/16"
    assert (own.version, own.tier, own.event_ttl) == ("1.36", "tier-8xl", "10m")
    assert (str(own.service_cidr), own.public_cidrs) == ("172.21.0.0/16", (*cidrs,))


@pytest.mark.parametrize(
    ("region", "partition"), [("us-west-2", "aws"), ("us-gov-west-1", "aws-us-gov")]
)
def test_arns_are_of_the_partition_of_the_region(region: str, partition: str) -> None:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": [f"{region}a", f"{region}b"]}

    plan = planned(region=region, network=network, kubernetes=None, pools=[SYSTEM_POOL])

    assert plan.partition == partition


def test_two_file_systems_never_share_a_placeholder() -> None:
    other = LUSTRE | {"name": "scratch-2"}

    first, second = planned(storage={"lustre": [LUSTRE, other]}).storage.lustre

    assert first.file_system_id == "${FSX_TRAINING_ID}"
    assert second.dns_name == "${FSX_SCRATCH_2_DNS_NAME}"
    assert second.mount_name == "${FSX_SCRATCH_2_MOUNT_NAME}"
