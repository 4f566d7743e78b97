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
        *((0, 200), (200, 200), (201, 1_000), (1_000, 1_000), (1_001, 5_000), (5_001, 20_000)),
        *((20_001, 100_000), (100_000, 100_000), (150_000, 100_000)),
    ],
)
def test_every_number_of_nodes_has_a_row(nodes: int, row: int) -> None:
    assert scale_for(nodes).nodes == row


@pytest.mark.parametrize("row", ROWS[:2])
def test_up_to_a_thousand_nodes_programs_keep_the_defaults_they_were_made_with(
    row: ScalePlan,
) -> None:
    dns = row.dns
    assert (dns.resources, dns.lameduck_seconds, dns.node_local) == (None, None, False)
    assert (row.proxy_mode, row.ebs_csi, row.pull_through) == (None, None, ())
    assert row.cluster_autoscaler
    assert row.policies_of_jobs
    assert not row.instance_id_node_names


# A row too small is a controller that runs out of memory when the fleet has come.
def test_shards_and_every_provisioner_count() -> None:
    others = NEURON_POOL | {"name": "groups", "nodes": {"max": 400}, "shards": 3}
    scale = planned(others, launched(100))
    assert planned(others).nodes == 5_000
    assert planned(launched(900), launched(200, name="second")).nodes == 5_000
    assert planned(launched(900)).nodes == 1_000
    # Karpenter is sized by its own nodes.
    assert scale.karpenter.memory_gib == 1
    assert scale.dns.node_local


@pytest.mark.parametrize(
    ("nodes", "size"),
    [(0, (1, 1)), (201, (2, 4)), (1_001, (4, 16)), (5_001, (8, 32)), (20_001, (16, 64))],
)
def test_karpenter_grows_with_its_fleet_unless_the_file_says_otherwise(
    nodes: int, size: tuple[int, int]
) -> None:
    scale = karpenter_scale(nodes, None)
    own = karpenter_scale(nodes, config.Karpenter(version="1.15.2", memory_gib=96))
    assert (scale.vcpus, scale.memory_gib) == size
    assert (own.vcpus, own.memory_gib) == (size[0], 96)


@pytest.mark.parametrize(
    ("pool", "stated", "by_id"),
    [
        # Where Karpenter launches very many, or the file says so; no other nodes have such names.
        (launched(20_001), None, True),
        (launched(100), None, False),
        (launched(100), True, True),
        (launched(20_001), False, False),
        (NEURON_POOL, True, False),
    ],
)
def test_nodes_are_named_by_their_ids(
    pool: dict[str, Any], stated: bool | None, by_id: bool
) -> None:
    pools = [SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}, pool]
    own = {} if stated is None else {"kubernetes": {"instance_id_node_names": stated}}
    assert planned(pool, pools=pools, **own).instance_id_node_names is by_id


GOVCLOUD: dict[str, Any] = {
    "region": "us-gov-west-1",
    "network": NETWORK | {"zones": ["us-gov-west-1a", "us-gov-west-1b"]},
    "kubernetes": None,
}
_GOV_POOL = launched(2_000, zones=["us-gov-west-1a"])


@pytest.mark.parametrize(
    ("pool", "stated", "document", "upstreams"),
    [
        (launched(100), None, {}, ()),
        (launched(2_000), None, {}, tuple(registries.ANONYMOUS)),
        (launched(2_000), [], {}, ()),
        (launched(100), ["quay.io"], {}, ("quay.io",)),
        # Nobody says that there are any in GovCloud.
        (_GOV_POOL, None, GOVCLOUD, ()),
        (_GOV_POOL, ["quay.io"], GOVCLOUD, ("quay.io",)),
    ],
)
def test_a_cache_of_images_is_for_large_clusters_and_those_that_ask(
    pool: dict[str, Any],
    stated: list[str] | None,
    document: dict[str, Any],
    upstreams: tuple[str, ...],
) -> None:
    images = None if stated is None else {"pull_through": stated}
    assert planned(pool, images=images, **document).pull_through == upstreams


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

    def test_no_node_watches_policies_lists_interfaces_or_drives_volumes(self) -> None:
        key = "DISABLE_LEAKED_ENI_CLEANUP"
        few, many = (configuration(large(nodes), "vpc-cni") for nodes in (5_000, 5_001))
        assert (few["enableNetworkPolicy"], many["enableNetworkPolicy"]) == ("true", "false")
        assert (few["env"].get(key), many["env"].get(key)) == (None, "true")
        few, many = (configuration(large(nodes), "aws-ebs-csi-driver") for nodes in (5_000, 5_001))
        # Controllers mount volumes.
        assert "node" not in few
        assert many["node"] == {"nodeSelector": {"ultrascale.dev/role": "system"}}

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
