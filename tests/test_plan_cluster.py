"""A whole cluster file: planned, or refused with every mistake at once."""

from pathlib import Path

import pytest
import yaml

from tests.pools import POOL, SYSTEM_POOL, make_cluster, make_document, pool_document
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, load, plan_cluster

CLUSTERS = Path(__file__).parent.parent / "clusters"
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


def mistakes(**changes: object) -> tuple[str, ...]:
    """Return the mistakes that planning finds in a file that is well-formed."""
    cluster = make_cluster(**changes)
    with pytest.raises(ConfigError) as caught:
        plan_cluster(cluster)
    return caught.value.mistakes


class TestClusterFiles:
    """The files in `clusters/`."""

    def test_trainium_bert_is_planned(self) -> None:
        plan = load(CLUSTERS / "trainium-bert.yaml")

        assert [pool.name for pool in plan.system_pools] == ["system"]
        assert [pool.name for pool in plan.pools] == ["trn1"]
        assert plan.pools[0].efa_interfaces == 8
        assert plan.pools[0].placement_group
        assert plan.repositories == ("bert-pretrain", "tensorboard")
        assert plan.control_plane.public_cidrs == ("203.0.113.0/24",)

    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("auto-mode", "pools.1.purchase.option"),
            ("hybrid-hyperpod", "hyperpod"),
            ("mixed-capacity", "karpenter"),
            ("ultra-100k", "pools.1.shards"),
        ],
    )
    def test_what_is_not_built_yet_is_refused_by_file_and_key(self, name: str, key: str) -> None:
        path = CLUSTERS / f"{name}.yaml"

        with pytest.raises(ConfigError) as caught:
            load(path)

        lines = caught.value.mistakes
        assert all(line.startswith(f"{path}: ") for line in lines)
        assert all(": not supported yet" in line for line in lines)
        assert any(line.startswith(f"{path}: {key}: ") for line in lines)

    def test_a_mistake_of_the_network_names_the_file_too(self, tmp_path: Path) -> None:
        path = tmp_path / "small.yaml"
        network = {"vpc_cidr": "10.0.0.0/28", "zones": ["us-west-2a", "us-west-2b"]}
        path.write_text(yaml.safe_dump(make_document(network=network)))

        with pytest.raises(ConfigError) as caught:
            load(path)

        (line,) = caught.value.mistakes
        assert line.startswith(
            f"{path}: network.vpc_cidr: too small for 2 zones, got '10.0.0.0/28'"
        )


class TestEveryMistakeAtOnce:
    """A user who mends one mistake per run needs as many runs as mistakes."""

    def test_everything_that_is_not_built_yet_is_named_together(self) -> None:
        spot = pool_document(
            name="spot",
            purchase={"option": "spot"},
            instance_types=["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"],
        )
        sharded = pool_document(name="sharded", shards=2)
        s3 = {"bucket": "datasets", "import": ["new"]}

        lines = mistakes(
            pools=[SYSTEM_POOL, spot, sharded, pool_document(provisioner="karpenter")],
            karpenter={"version": "1.15.1"},
            storage={"buckets": ["datasets"], "lustre": [LUSTRE | {"s3": s3}]},
            observability={"dashboards": True},
        )

        assert [line.partition(": ")[0] for line in lines] == [
            "pools.1.purchase.option",
            "pools.2.shards",
            "pools.3.provisioner",
            "storage.lustre.0.s3",
            "karpenter",
            "observability",
            "storage.buckets",
        ]

    def test_mistakes_of_pools_network_and_addons_come_together(self) -> None:
        lines = mistakes(
            network={"vpc_cidr": "10.0.0.0/22", "zones": ["us-west-2a", "us-west-2b"]},
            kubernetes={"version": "1.34"},
            pools=[
                SYSTEM_POOL,
                pool_document(name="first", instance_types=["trn2u.48xlarge"]),
                pool_document(name="second", instance_types=["g6f.xlarge"]),
                POOL,
            ],
        )

        assert [line.partition(": ")[0] for line in lines] == [
            "pools.1.instance_types",
            "pools.2.instance_types",
            "network.vpc_cidr",
            "kubernetes.version",
        ]

    @pytest.mark.parametrize(
        ("instance_type", "unknown"),
        [
            ("trn2u.48xlarge", "enis_card0"),
            ("g6f.xlarge", "accelerator.count"),
            ("p6e-gb300.36xlarge", "efa_cards"),
        ],
    )
    def test_a_value_that_no_source_states_is_a_mistake_of_its_pool(
        self, instance_type: str, unknown: str
    ) -> None:
        lines = mistakes(pools=[SYSTEM_POOL, pool_document(instance_types=[instance_type])])

        assert lines == (
            f"pools.1.instance_types: {instance_type}: {unknown} is not known; no source states it",
        )

    def test_a_region_without_a_known_addon_registry_is_a_mistake(self) -> None:
        network = {"vpc_cidr": "10.0.0.0/16", "zones": ["me-west-1a", "me-west-1b"]}
        pools = [SYSTEM_POOL, pool_document(zones=["me-west-1b"])]
        changes = {"region": "me-west-1", "network": network, "pools": pools}

        (line,) = mistakes(**changes)

        assert line.startswith("region: ")
        registry = "123456789012.dkr.ecr.me-west-1.amazonaws.com"
        plan = planned(**changes, images={"eks_registry": registry})
        assert plan.efa is not None
        assert plan.efa.image.startswith(f"{registry}/")


class TestPoolNames:
    """A pool's stack that takes the name of another stack replaces it, and what is in it."""

    @pytest.mark.parametrize("layer", LAYERS)
    def test_no_pool_takes_the_name_of_another_stack(self, layer: str) -> None:
        with pytest.raises(ConfigError, match=r"pools\.1\.name: "):
            planned(pools=[SYSTEM_POOL, pool_document(name=layer)])


def test_system_pools_are_told_from_the_others() -> None:
    second = SYSTEM_POOL | {"name": "more", "role": "system"}

    plan = planned(pools=[POOL, SYSTEM_POOL, second])

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

    first, second = planned(storage={"lustre": [LUSTRE, other]}).lustre

    assert first.file_system_id == "${FSX_TRAINING_ID}"
    assert second.dns_name == "${FSX_SCRATCH_2_DNS_NAME}"
    assert second.mount_name == "${FSX_SCRATCH_2_MOUNT_NAME}"
    assert first.claim is None
