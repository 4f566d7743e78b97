"""Defaults, derived values and warnings of a cluster file."""

import subprocess
import sys
from datetime import UTC, datetime
from ipaddress import IPv4Network

import pytest
import yaml
from pydantic import ValidationError

from tests.support.cases import for_each
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    POOL,
    SPOT,
    SYSTEM_POOL,
    governed_document,
    make_cluster,
    make_document,
    make_pool,
    pool_document,
)
from tests.support.verdicts import warned_of
from ultrascale import config
from ultrascale.errors import ConfigError
from ultrascale.parts.backend import Backend
from ultrascale.parts.hyperpod.section import HyperPod, Team, settings_of
from ultrascale.parts.observability import Observability
from ultrascale.parts.pipeline.section import Pipeline

TOLD: dict[str, object] = {"alarms": {"email": "ops@example.com"}}


def test_a_file_of_the_required_keys_alone_gets_every_default() -> None:
    cluster = make_cluster(kubernetes=None)

    assert cluster.account is None
    assert cluster.network.pod_blocks == ()
    assert cluster.kubernetes == config.Kubernetes(
        version="1.35",
        control_plane_tier="standard",
        endpoint=config.Endpoint(private=True, public_cidrs=()),
        admins=(),
        service_cidr=IPv4Network("172.20.0.0/16"),
        event_ttl="60m",
        addons={},
    )
    assert cluster.karpenter is None
    assert cluster.storage == config.Storage(lustre=(), buckets=())
    assert cluster.images.model_dump(exclude_defaults=True) == {}
    assert cluster.jobs == {}
    assert settings_of(cluster) == HyperPod(node_recovery="automatic", task_governance=None)
    assert cluster.agreed_limits is None
    assert cluster.section(Pipeline) is None
    assert cluster.section(Backend) is None
    assert cluster.section(Observability) is None


def test_scheduling_defaults_to_no_engine_and_five_priorities() -> None:
    scheduling = make_cluster().scheduling

    assert scheduling.engine == "none"
    assert scheduling.rendezvous == config.Rendezvous(backend="static", replicas=1)
    assert scheduling.priority_classes == {
        "critical": 1_000_000,
        "high": 800_000,
        "medium": 600_000,
        "low": 400_000,
        "preemptible": 200_000,
    }
    assert not scheduling.topology_aware
    assert not scheduling.neuron_scheduler_extension


def test_the_older_name_of_the_engine_still_chooses_it() -> None:
    cluster = make_cluster(scheduling={"gang_scheduler": "volcano"})

    assert cluster.scheduling.engine == "volcano"
    (note,) = config.remarks(cluster, "note")
    assert (note.code, note.at, note.todo) == (
        "older_keys",
        ("scheduling", "gang_scheduler"),
        "write queueing: volcano",
    )
    assert not config.remarks(make_cluster(scheduling={"queueing": "volcano"}), "note")


def test_a_pool_of_the_required_keys_alone_gets_every_default() -> None:
    train = pool_document(zones=None, instance_types=["g6e.12xlarge"])
    cluster = make_cluster(pools=[SYSTEM_POOL, train])
    pool = cluster.pool("train")

    assert pool.role == "burst"
    assert pool.purchase == config.OnDemand()
    assert config.zones_of(pool, cluster.network) == ("us-west-2a", "us-west-2b", "us-west-2c")
    assert (pool.nodes.min, pool.shards, pool.efa) == (0, 1, "auto")
    assert not pool.placement_group
    assert not pool.deep_health_checks
    assert pool.labels == {}


@pytest.mark.parametrize(
    ("changes", "role"),
    [
        (SYSTEM_POOL, "system"),
        ({"name": "train"}, "burst"),
        ({"name": "train", "role": "reserved"}, "reserved"),
    ],
)
def test_the_role_follows_from_the_name_unless_the_file_says_otherwise(
    changes: dict[str, object], role: str
) -> None:
    assert make_pool(**changes).role == role


@pytest.mark.parametrize(
    ("nodes", "bounds"),
    [({"max": 4}, (0, 4)), ({"min": 2, "max": 4}, (2, 4)), ({"static": 3}, (3, 3))],
)
def test_node_counts_have_bounds(nodes: dict[str, int], bounds: tuple[int, int]) -> None:
    pool = make_pool(nodes=nodes)

    assert (pool.nodes.lowest, pool.nodes.highest) == bounds


def test_the_node_type_is_the_name_unless_a_label_says_otherwise() -> None:
    assert make_pool(name="p5").node_type == "p5"
    assert make_pool(name="p5", labels={"node-type": "gpu"}).node_type == "gpu"


def test_a_job_may_prefer_a_node_type_that_a_label_gives() -> None:
    pool = POOL | {"labels": {"node-type": "gpu"}}

    cluster = make_cluster(pools=[SYSTEM_POOL, pool], jobs={"tune": {"prefer": ["gpu"]}})

    assert cluster.jobs["tune"].prefer == ("gpu",)


def test_pod_blocks_are_the_first_of_the_larger_range() -> None:
    network = make_document()["network"] | {"pod_cidrs": {"count": 3, "from": "100.64.0.0/10"}}

    cluster = make_cluster(network=network)

    assert cluster.network.pod_blocks == (
        IPv4Network("100.64.0.0/16"),
        IPv4Network("100.65.0.0/16"),
        IPv4Network("100.66.0.0/16"),
    )


def test_listed_pod_ranges_are_kept_in_order() -> None:
    ranges = ["100.65.0.0/16", "100.64.0.0/17"]

    cluster = make_cluster(network=make_document()["network"] | {"pod_cidrs": ranges})

    assert cluster.network.pod_blocks == tuple(IPv4Network(each) for each in ranges)


@pytest.mark.parametrize(
    "starts", ["2026-12-01T11:30:00Z", "2026-12-01T13:30:00+02:00", "2026-12-01T11:30:00+00:00"]
)
def test_a_window_is_told_in_utc(starts: str) -> None:
    purchase = make_pool(purchase=CAPACITY_BLOCK | {"starts": starts}).purchase

    assert isinstance(purchase, config.CapacityBlock)
    assert purchase.starts == datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
    assert purchase.starts.tzinfo is UTC


def test_a_reserved_pool_never_spills_unless_asked() -> None:
    purchase = make_pool(purchase=ODCR).purchase

    assert isinstance(purchase, config.Odcr)
    assert purchase.spill == "never"


def test_zones_may_be_ids() -> None:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": ["usw2-az1", "usw2-az4"]}

    cluster = make_cluster(network=network, pools=[SYSTEM_POOL, POOL | {"zones": ["usw2-az4"]}])

    assert cluster.pool("train").zones == ("usw2-az4",)


def test_a_cluster_of_auto_mode_pools_alone_needs_no_system_pool() -> None:
    pool = POOL | {"provisioner": "auto-mode"}

    assert len(make_cluster(pools=[pool]).pools) == 1


def test_an_auto_scaling_group_of_our_own_is_not_bound_by_the_quota_of_managed_ones() -> None:
    assert make_pool(provisioner="self-managed", nodes={"max": 4000}).nodes.highest == 4000


def test_an_efa_file_system_and_trn2_in_another_zone_get_along() -> None:
    lustre = {
        "name": "scratch",
        "zone": "us-west-2a",
        "capacity_gib": 19200,
        "throughput_mbps_per_tib": 250,
        "efa": True,
    }
    pool = POOL | {"instance_types": ["trn2.48xlarge"]}

    cluster = make_cluster(pools=[SYSTEM_POOL, pool], storage={"lustre": [lustre]})

    assert cluster.storage.lustre[0].efa


def test_hyperpod_settings_are_read() -> None:
    team = {"name": "research", "fair_share_weight": 40, "lend": True, "borrow_limit_percent": 50}
    document = governed_document(
        hyperpod={"node_recovery": "none", "task_governance": {"teams": [team]}}
    )
    cluster = config.loads(yaml.safe_dump(document))

    settings = settings_of(cluster)
    assert settings.node_recovery == "none"
    assert settings.task_governance is not None
    assert settings.task_governance.teams == (Team.model_validate(team),)


def test_a_loaded_cluster_cannot_be_changed() -> None:
    cluster = make_cluster()

    with pytest.raises(ValidationError, match="frozen"):
        cluster.name = "other"


def test_a_pool_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="nope"):
        make_cluster().pool("nope")


def test_without_admins_the_user_learns_that_nobody_can_use_kubectl() -> None:
    assert warned_of(make_cluster(kubernetes=None)) == [
        "warning kubernetes.admins: nobody_has_access"
    ]


def test_a_type_without_a_price_in_the_region_is_worth_a_warning() -> None:
    pool = POOL | {"instance_types": ["p5e.48xlarge"]}

    assert warned_of(make_cluster(pools=[SYSTEM_POOL, pool])) == [
        "warning pools[train].instance_types[0]: types_may_not_be_had"
    ]


@pytest.mark.parametrize(
    ("name", "warned"), [("p5e.48xlarge", False), ("p5.48xlarge", False), ("trn2.48xlarge", True)]
)
def test_of_a_block_the_list_of_blocks_is_asked_and_not_that_of_prices(
    name: str, warned: bool
) -> None:
    block = {
        "option": "capacity-block",
        "reservation": "cr-0feedfeedfeedfee1",
        "starts": "2026-12-01T11:30:00Z",
        "ends": "2026-12-08T11:30:00Z",
    }
    pool = POOL | {"instance_types": [name], "purchase": block}

    found = warned_of(make_cluster(pools=[SYSTEM_POOL, pool], observability=TOLD))
    unlisted = ["warning pools[train].instance_types[0]: types_may_not_be_had"]
    assert found == (unlisted if warned else [])


def test_a_preview_type_is_worth_a_warning() -> None:
    pool = POOL | {"instance_types": ["p6e-gb300.36xlarge"]}

    assert warned_of(make_cluster(pools=[SYSTEM_POOL, pool])) == [
        "warning pools[train].instance_types[0]: types_may_not_be_had"
    ]


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        (
            {"instance_types": ["g6e.12xlarge"], "zones": ["us-west-2a", "us-west-2b"]},
            ("pools[train].efa: no EFA across several zones; keep one zone, or write efa: none",),
        ),
        (
            {
                "provisioner": "self-managed",
                "purchase": SPOT,
                "zones": ["us-west-2a", "us-west-2b"],
                "instance_types": ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"],
            },
            ("pools[train].efa: no EFA for several instance types; write efa: none",),
        ),
        (
            {"provisioner": "auto-mode", "purchase": SPOT, "zones": ["us-west-2a", "us-west-2b"]},
            ("pools[train].efa: no EFA across several zones; write efa: none",),
        ),
        ({"zones": ["us-west-2a", "us-west-2b"], "efa": "none"}, ()),
        ({"zones": ["us-west-2a", "us-west-2b"], "instance_types": ["g6.xlarge"]}, ()),
        ({"zones": ["us-west-2a", "us-west-2b"], "instance_types": ["m7i.48xlarge"]}, ()),
        ({}, ()),
    ],
)
def test_efa_that_is_lost_without_a_word_is_worth_a_warning(
    changes: dict[str, object], warnings: tuple[str, ...]
) -> None:
    cluster = make_cluster(pools=[SYSTEM_POOL, POOL | changes])

    assert config.warnings(cluster) == warnings


@for_each(
    {
        "two types": ({"instance_types": ["trn1.32xlarge", "trn1n.32xlarge"]}, "instance_types"),
        "types of which one has EFA": (
            {"instance_types": ["g6.xlarge", "g6.12xlarge"]},
            "instance_types",
        ),
        "two types of NodePools": (
            {"instance_types": ["p5.48xlarge", "p5en.48xlarge"], "provisioner": "auto-mode"},
            "instance_types",
        ),
        "two zones": ({"zones": ["us-west-2a", "us-west-2b"]}, "zones"),
        "two zones of a small type that is reserved": (
            {
                "instance_types": ["g6e.12xlarge"],
                "zones": ["us-west-2a", "us-west-2b"],
                "role": "reserved",
                "nodes": {"static": 4},
            },
            "zones",
        ),
    }
)
def test_efa_that_jobs_over_several_nodes_would_miss_is_given_up_by_a_word_alone(
    changes: dict[str, object], key: str
) -> None:
    with pytest.raises(ConfigError, match=rf"pools\[train\]\.{key}: .*, or write efa: none"):
        make_cluster(pools=[SYSTEM_POOL, POOL | changes])

    assert make_cluster(pools=[SYSTEM_POOL, POOL | changes | {"efa": "none"}])


def test_the_greatest_priority_that_users_may_set_is_taken() -> None:
    cluster = make_cluster(scheduling={"priority_classes": {"top": 1_000_000_000}})

    assert cluster.scheduling.priority_classes == {"top": 1_000_000_000}


def test_a_file_system_far_from_every_node_is_worth_a_warning() -> None:
    lustre = {
        "name": "scratch",
        "zone": "us-west-2c",
        "capacity_gib": 1200,
        "throughput_mbps_per_tib": 250,
    }
    pools = [SYSTEM_POOL | {"zones": ["us-west-2a", "us-west-2b"]}]

    cluster = make_cluster(pools=pools, storage={"lustre": [lustre]})

    assert warned_of(cluster) == ["warning storage.lustre[scratch].zone: file_system_is_far"]


def test_config_loads_neither_cdk_nor_an_aws_client() -> None:
    code = "import sys, ultrascale.config; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    loaded = {name.partition(".")[0] for name in answer.stdout.split()}
    assert loaded.isdisjoint({"aws_cdk", "cdk8s", "constructs", "boto3", "botocore", "jsii"})
