"""The table of what follows from the number of nodes: sizes that grow, and settings that switch."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folders import ROOT
from tests.support.pools import HYPERPOD_POOL, NEURON_POOL, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.catalog import registries
from ultrascale.catalog.quantities import amount
from ultrascale.parts.observability import Plan as Observability
from ultrascale.parts.volcano.scale import SCALES
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import ResourcesPlan, ScalePlan
from ultrascale.plan.pools.scaling import system_groups_scale
from ultrascale.plan.scale import ROWS, karpenter_scale, plan_scale, scale_for

PAIRS = [*itertools.pairwise(ROWS)]
NETWORK = {
    "vpc_cidr": "10.0.0.0/16",
    "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
    "zones": ["us-west-2a", "us-west-2b", "us-west-2c"],
}
KARPENTER = {"version": "1.15.2"}


def launched(nodes: int, **changes: Any) -> dict[str, Any]:
    """Return a pool of ``nodes`` nodes at most that Karpenter launches."""
    return pool_document(provisioner="karpenter", nodes={"max": nodes}, **changes)


def planned(*pools: dict[str, Any], **changes: Any) -> ScalePlan:
    """Return what is set for a cluster with ``pools``."""
    karpenter = KARPENTER if any(pool["provisioner"] == "karpenter" for pool in pools) else None
    document = {"network": NETWORK, "karpenter": karpenter, "pools": [SYSTEM_POOL, *pools]}
    return plan_scale(make_cluster(**document | changes))


def sizes(resources: ResourcesPlan | None) -> tuple[float, ...]:
    if resources is None:
        return (0, 0, 0)
    texts = (resources.cpu, resources.memory, resources.memory_limit)
    return tuple(float(amount(text)) for text in texts)


@pytest.mark.parametrize(
    ("nodes", "row"),
    [
        (0, 200),
        (200, 200),
        (201, 1_000),
        (1_000, 1_000),
        (1_001, 5_000),
        (5_001, 20_000),
        (20_001, 100_000),
        (100_000, 100_000),
        (150_000, 100_000),
    ],
)
def test_every_number_of_nodes_has_a_row(nodes: int, row: int) -> None:
    assert scale_for(nodes).nodes == row


@pytest.mark.parametrize(("smaller", "larger"), PAIRS, ids=[str(row.nodes) for _, row in PAIRS])
def test_a_larger_cluster_gets_no_less_of_anything(smaller: ScalePlan, larger: ScalePlan) -> None:
    for name in ("vcpus", "memory_gib", "client_qps", "client_burst"):
        assert getattr(smaller.karpenter, name) <= getattr(larger.karpenter, name)
    for name in ("sync_seconds", "client_qps", "client_burst", "workers", "webhook_replicas"):
        assert getattr(SCALES[smaller.nodes], name) <= getattr(SCALES[larger.nodes], name)
    for name in ("min_replicas", "max_replicas"):
        assert getattr(smaller.dns, name) <= getattr(larger.dns, name)
    for less, more in (
        (SCALES[smaller.nodes].scheduler, SCALES[larger.nodes].scheduler),
        (SCALES[smaller.nodes].controllers, SCALES[larger.nodes].controllers),
        (SCALES[smaller.nodes].webhooks, SCALES[larger.nodes].webhooks),
        (smaller.dns.resources, larger.dns.resources),
        (smaller.ebs_csi, larger.ebs_csi),
        (smaller.neuron_scheduler, larger.neuron_scheduler),
    ):
        assert all(a <= b for a, b in zip(sizes(less), sizes(more), strict=True))


@given(nodes=st.integers(0, 120_000))
def test_no_row_is_passed_over_and_none_is_beyond_what_addons_take(nodes: int) -> None:
    row = scale_for(nodes)

    assert nodes <= row.nodes or row is ROWS[-1]
    assert 2 <= row.dns.min_replicas <= row.dns.max_replicas <= 1_000
    # Where pods wait for the leader to be replaced, one must be there to replace it.
    assert SCALES[row.nodes].webhook_replicas >= 2


@pytest.mark.parametrize("row", ROWS, ids=[str(row.nodes) for row in ROWS])
def test_the_page_shows_the_row_as_it_is(row: ScalePlan) -> None:
    page = (ROOT / "docs" / "ultra-scale.md").read_text()
    # The table of sizes is the first; one of switches comes after it.
    line = next(each for each in page.splitlines() if each.startswith(f"| {row.nodes:,} | "))
    _, _, controller, replicas, _, cache, proxy, *_ = (cell.strip() for cell in line.split("|"))

    own = row.karpenter
    assert controller == f"{own.vcpus}, {own.memory_gib}, {own.client_qps:,}"
    assert replicas == f"{row.dns.min_replicas} to {row.dns.max_replicas}"
    assert (cache == "yes") is row.dns.node_local
    assert proxy == (row.proxy_mode or "EKS's")


class TestSmallClusters:
    """Up to 1,000 nodes programs and add-ons keep the defaults that they were made with."""

    @pytest.mark.parametrize("row", ROWS[:2])
    def test_nothing_is_changed(self, row: ScalePlan) -> None:
        assert row.dns.resources is None
        assert row.dns.lameduck_seconds is None
        assert not row.dns.node_local
        assert row.proxy_mode is None
        assert row.ebs_csi is None
        assert row.pull_through == ()
        assert row.cluster_autoscaler
        assert row.policies_of_jobs
        assert not row.instance_id_node_names


class TestCounting:
    """A row too small is a controller that runs out of memory when the fleet has come."""

    def test_shards_and_every_provisioner_count(self) -> None:
        assert planned(NEURON_POOL | {"nodes": {"max": 400}, "shards": 3}).nodes == 5_000
        assert planned(launched(900), launched(200, name="second")).nodes == 5_000
        assert planned(launched(900)).nodes == 1_000

    def test_karpenter_is_sized_by_its_own_nodes(self) -> None:
        others = NEURON_POOL | {"name": "groups", "nodes": {"max": 400}, "shards": 3}
        scale = planned(others, launched(100))

        assert scale.karpenter.memory_gib == 1
        assert scale.dns.node_local

    @pytest.mark.parametrize(
        ("nodes", "size"),
        [(0, (1, 1)), (201, (2, 4)), (1_001, (4, 16)), (5_001, (8, 32)), (20_001, (16, 64))],
    )
    def test_its_controller_grows_with_its_fleet(self, nodes: int, size: tuple[int, int]) -> None:
        scale = karpenter_scale(nodes, None)

        assert (scale.vcpus, scale.memory_gib) == size

    def test_what_the_file_says_of_it_wins(self) -> None:
        scale = karpenter_scale(50_000, config.Karpenter(version="1.15.2", memory_gib=96))

        assert (scale.vcpus, scale.memory_gib) == (16, 96)


class TestWhatTheFileSays:
    """A table is a guess; whoever knows better writes it into the file."""

    def test_nodes_are_named_by_their_ids_where_karpenter_launches_very_many(self) -> None:
        large = [SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}, launched(20_001)]

        assert planned(launched(20_001), pools=large).instance_id_node_names
        assert not planned(launched(100)).instance_id_node_names

    def test_either_can_be_chosen(self) -> None:
        by_id = {"instance_id_node_names": True}

        assert planned(launched(100), kubernetes=by_id).instance_id_node_names
        assert not planned(
            launched(20_001), kubernetes={"instance_id_node_names": False}
        ).instance_id_node_names

    def test_no_other_nodes_have_such_names(self) -> None:
        assert not planned(
            NEURON_POOL, kubernetes={"instance_id_node_names": True}
        ).instance_id_node_names

    @pytest.mark.parametrize(
        ("nodes", "stated", "upstreams"),
        [
            (100, None, ()),
            (2_000, None, tuple(registries.ANONYMOUS)),
            (2_000, [], ()),
            (100, ["quay.io"], ("quay.io",)),
        ],
    )
    def test_a_cache_of_images_is_for_large_clusters_and_those_that_ask(
        self, nodes: int, stated: list[str] | None, upstreams: tuple[str, ...]
    ) -> None:
        images = None if stated is None else {"pull_through": stated}

        assert planned(launched(nodes), images=images).pull_through == upstreams


def test_no_cache_is_made_where_nobody_says_that_there_are_any() -> None:
    govcloud = NETWORK | {"zones": ["us-gov-west-1a", "us-gov-west-1b"]}
    pool = launched(2_000, zones=["us-gov-west-1a"])
    document: dict[str, Any] = {"region": "us-gov-west-1", "network": govcloud, "kubernetes": None}

    assert planned(pool, **document).pull_through == ()
    asked = document | {"images": {"pull_through": ["quay.io"]}}
    assert planned(pool, **asked).pull_through == ("quay.io",)


class TestWhatOthersRunOn:
    """A setting for all nodes must work on each of them."""

    def test_a_kernel_that_nobody_states_keeps_the_mode_of_kube_proxy(self) -> None:
        many = launched(6_000)

        assert planned(many).proxy_mode == "nftables"
        assert planned(many, HYPERPOD_POOL).proxy_mode is None

    def test_jobs_that_prefer_nodes_are_heard_by_karpenter(self) -> None:
        many = (launched(6_000), launched(10, name="second"))
        job = {"prefer": ["train", "second"], "resources": {"gpu": 8}}

        assert planned(*many).karpenter.ignores_preferences
        assert not planned(*many, jobs={"bert": job}).karpenter.ignores_preferences


def large(nodes: int, **changes: Any) -> ClusterPlan:
    """Return the plan of a cluster of ``nodes`` nodes that Karpenter launches, and four others."""
    document = {"network": NETWORK, "karpenter": KARPENTER, "observability": {}, **changes}
    return plan_cluster(make_cluster(pools=[SYSTEM_POOL, launched(nodes - 4)], **document))


def configuration(plan: ClusterPlan, name: str) -> dict[str, Any]:
    (found,) = (each for each in plan.addons if each.name == name)
    return dict(found.configuration)


class TestBeyondFiveThousandNodes:
    """Work that every node causes overloads the API server or an account's quotas."""

    def test_no_node_watches_the_pods_of_network_policies(self) -> None:
        assert configuration(large(5_000), "vpc-cni")["enableNetworkPolicy"] == "true"
        assert configuration(large(5_001), "vpc-cni")["enableNetworkPolicy"] == "false"

    def test_no_node_asks_ec2_for_the_interfaces_of_all_others(self) -> None:
        key = "DISABLE_LEAKED_ENI_CLEANUP"

        assert key not in configuration(large(5_000), "vpc-cni")["env"]
        assert configuration(large(5_001), "vpc-cni")["env"][key] == "true"

    def test_agents_run_on_system_nodes_and_on_those_that_somebody_labels(self) -> None:
        everywhere = configuration(large(5_000), "amazon-cloudwatch-observability")
        sampled = configuration(large(5_001), "amazon-cloudwatch-observability")
        (agent,), fluent_bit = sampled["agents"], sampled["containerLogs"]["fluentBit"]
        terms = agent["affinity"]["nodeAffinity"]
        labels = {
            expression["key"]: expression["values"]
            for term in terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            for expression in term["matchExpressions"]
        }

        assert everywhere["containerInsights"] == {"enabled": True}
        assert "affinity" not in everywhere["agents"][0]
        assert sampled["containerInsights"] == {"enabled": False}
        assert sampled["dcgmExporter"] == sampled["neuronMonitor"] == {"enabled": False}
        assert fluent_bit["affinity"] == agent["affinity"]
        assert labels == {"ultrascale.dev/role": ["system"], "ultrascale.dev/sampled": ["true"]}

    def test_the_dashboard_shows_no_graph_that_nobody_measures(self) -> None:
        plan = large(5_001, observability={"dashboards": True}).part(Observability)
        assert plan is not None
        namespaces = {
            metric.namespace
            for section in plan.dashboard
            for graph in section.graphs
            for line in graph.lines
            for metric in line.metrics.values()
        }

        assert namespaces
        assert "ContainerInsights" not in namespaces

    def test_the_log_groups_stay_with_their_history(self) -> None:
        few, many = (large(nodes).part(Observability) for nodes in (5_000, 5_001))

        assert few is not None
        assert many is not None
        assert few.written_logs == many.written_logs

    def test_the_audit_log_is_left_to_those_who_ask_for_it(self) -> None:
        asked = large(5_001, kubernetes={"logs": ["audit", "api"]}).control_plane

        assert len(large(5_000).control_plane.log_types) == 5
        assert large(5_001).control_plane.log_types == ("api", "authenticator")
        assert asked.log_types == ("api", "audit")
        assert large(5_001, kubernetes={"logs": []}).control_plane.log_types == ()

    def test_the_driver_of_volumes_runs_where_controllers_mount_them(self) -> None:
        assert "node" not in configuration(large(5_000), "aws-ebs-csi-driver")
        assert configuration(large(5_001), "aws-ebs-csi-driver")["node"] == {
            "nodeSelector": {"ultrascale.dev/role": "system"}
        }


class TestBeyondAThousandNodes:
    def test_no_cluster_autoscaler_looks_at_all_nodes(self) -> None:
        plan = large(1_001)
        (system,) = plan.system_pools

        assert large(1_000).nodes.autoscaler is not None
        assert plan.nodes.autoscaler is None
        assert (system.initial_nodes, system.max_nodes, system.sized_by) == (4, 4, "file")

    def test_whoever_wrote_a_group_that_scales_is_told(self) -> None:
        def told(nodes: int) -> list[str]:
            pools = [SYSTEM_POOL, launched(nodes - 4)]
            found = system_groups_scale(make_cluster(karpenter=KARPENTER, pools=pools))
            return [each.text for each in found]

        (line,) = told(1_001)
        assert told(1_000) == []
        assert line.startswith("4 nodes at all times: ")

    def test_no_network_policy_selects_the_pods_of_jobs_or_names_them(self) -> None:
        few, many = (large(nodes).network.policies for nodes in (1_000, 1_001))

        assert few.of_jobs
        assert few.ranges == ()
        assert not many.of_jobs
        assert many.ranges[:2] == ("10.0.0.0/16", "100.64.0.0/16")
        assert many.enforced
