"""A whole cluster file: planned, or refused with every mistake at once."""

from pathlib import Path

import pytest
import yaml

from tests.support.config_documents import with_lustre
from tests.support.folders import ROOT
from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_cluster, make_document, pool_document
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, load, plan_cluster

CLUSTERS = ROOT / "clusters"
LUSTRE = {
    "name": "training",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}
# What the stacks are called beside those of the pools.
LAYERS = (
    "network",
    "cluster",
    "access",
    "node-addons",
    "addons",
    "storage",
    "registry",
    "platform",
)


def planned(**changes: object) -> ClusterPlan:
    return plan_cluster(make_cluster(**changes))


class TestClusterFiles:
    """The files in `clusters/`."""

    def test_trainium_bert_is_planned(self) -> None:
        plan = load(CLUSTERS / "trainium-bert.yaml")

        assert [pool.name for pool in plan.system_pools] == ["system"]
        assert [pool.name for pool in plan.pools] == ["trn1"]
        assert plan.pools[0].efa_interfaces == 8
        assert plan.pools[0].placement_group
        assert plan.images.repositories == ("bert-pretrain", "tensorboard")
        assert plan.control_plane.public_cidrs == ("203.0.113.0/24",)

    def test_what_is_not_built_yet_is_refused_by_file_and_key(self, tmp_path: Path) -> None:
        path = tmp_path / "efa.yaml"
        path.write_text(yaml.safe_dump(with_lustre({"capacity_gib": 19200, "efa": True})))

        with pytest.raises(ConfigError) as caught:
            load(path)

        (line,) = caught.value.mistakes
        assert (
            line
            == f"{path}:33:5: storage.lustre[scratch].efa: not supported yet, got true; use false"
        )

    def test_a_mistake_of_the_network_names_the_file_too(self, tmp_path: Path) -> None:
        path = tmp_path / "small.yaml"
        network = {"vpc_cidr": "10.0.0.0/28", "zones": ["us-west-2a", "us-west-2b"]}
        path.write_text(yaml.safe_dump(make_document(network=network)))

        with pytest.raises(ConfigError) as caught:
            load(path)

        (line,) = caught.value.mistakes
        assert line == (
            f"{path}:6:3: network.vpc_cidr: too small for 2 zones, got '10.0.0.0/28'; "
            "use a /20 or larger"
        )


class TestPoolNames:
    """A pool's stack that takes the name of another stack replaces it, and what is in it."""

    @pytest.mark.parametrize("layer", LAYERS)
    def test_no_pool_takes_the_name_of_another_stack(self, layer: str) -> None:
        with pytest.raises(ConfigError, match=rf"pools\[{layer}\]\.name: "):
            planned(pools=[SYSTEM_POOL, pool_document(name=layer)])


def test_system_pools_are_told_from_the_others() -> None:
    second = SYSTEM_POOL | {"name": "more", "role": "system"}

    plan = planned(pools=[NEURON_POOL, SYSTEM_POOL, second])

    assert [pool.name for pool in plan.system_pools] == ["system", "more"]
    assert [pool.name for pool in plan.pools] == ["train"]
    assert [pool.name for pool in plan.all_pools] == ["system", "more", "train"]


def test_control_plane_is_private_and_writes_every_log_unless_the_file_says_otherwise() -> None:
    plan = planned().control_plane

    assert plan.public_cidrs == ()
    assert plan.log_types == ("api", "audit", "authenticator", "controllerManager", "scheduler")
    assert plan.tier == "standard"
    assert str(plan.service_cidr) == "172.20.0.0/16"
    assert plan.event_ttl == "60m"


def test_control_plane_takes_what_the_file_says() -> None:
    plan = planned(
        kubernetes={
            "version": "1.36",
            "control_plane_tier": "8xl",
            "service_cidr": "172.21.0.0/16",
            "event_ttl": "10m",
            "endpoint": {"public_cidrs": ["203.0.113.0/24"]},
        }
    ).control_plane

    assert (plan.version, plan.tier, plan.event_ttl) == ("1.36", "tier-8xl", "10m")
    assert str(plan.service_cidr) == "172.21.0.0/16"
    assert plan.public_cidrs == ("203.0.113.0/24",)


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
