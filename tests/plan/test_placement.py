"""Placement of gangs by the network: the settings, the sum and the sizes at which it is refused."""

from typing import Any

import pytest

from tests.support.jobs import (
    VOLCANO,
    job_cluster,
    large_cluster,
    make_job,
    prepared,
    sentences,
)
from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.documents import mapping, text
from ultrascale.parts.volcano import facts
from ultrascale.parts.volcano.facts import Measured
from ultrascale.parts.volcano.model import NodeScoringPlan
from ultrascale.parts.volcano.model import Plan as VolcanoPlan
from ultrascale.parts.volcano.placement import plan_gang
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import GangPlacement
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.pools.pool import plan_pool

AWARE = VOLCANO | {"topology_aware": True}


def cluster(nodes: int, **changes: Any) -> config.Cluster:
    """Return a cluster of ``nodes`` nodes that Karpenter launches."""
    zones = ["us-west-2a", "us-west-2b", "us-west-2c"]
    ranges = {"count": 31, "from": "100.64.0.0/10"}
    pool = pool_document(provisioner="karpenter", nodes={"max": nodes}, zones=["us-west-2b"])
    document: dict[str, Any] = {
        "network": {"vpc_cidr": "10.0.0.0/16", "pod_cidrs": ranges, "zones": zones},
        "karpenter": {"version": "1.15.1"},
        "pools": [SYSTEM_POOL, pool],
    }
    return make_cluster(**document | {"scheduling": AWARE} | changes)


def gang(pods: int, nodes: int, **selector: str) -> GangPlacement:
    made = cluster(nodes)
    pools = [plan_pool(pool, kubernetes_version="1.35") for pool in made.pools]
    selected = {f"topology.k8s.aws/network-node-{layer}": nn for layer, nn in selector.items()}
    return plan_gang(made, pools, pools, config.TrainingJob(nodes=pods, node_selector=selected))


def scoring(nodes: int, **scheduling: Any) -> NodeScoringPlan:
    volcano = assemble(cluster(nodes, scheduling=VOLCANO | scheduling)).part(VolcanoPlan)
    assert volcano is not None
    return volcano.scoring


@pytest.mark.parametrize(
    "measured", facts.MEASURED, ids=[f"{each.gang} on {each.nodes}" for each in facts.MEASURED]
)
def test_the_sum_meets_what_was_measured(measured: Measured) -> None:
    """Within a factor of one and a half, over a hundred times from the fastest to the slowest."""
    size = 16 if measured.gang <= 16 else 500
    cost = facts.placement_seconds(
        nodes=measured.nodes, candidates=measured.candidates, spread_scored=measured.spread_scored
    )
    groups = measured.nodes / size
    seconds = facts.START_SECONDS + measured.gang * (facts.SECONDS_A_POD + groups * cost)

    assert 1 / 1.5 <= seconds / measured.seconds <= 1.5


@pytest.mark.parametrize(
    ("pods", "nodes", "tier", "groups"),
    [(8, 1_200, 1, 75), (16, 1_200, 1, 75), (17, 1_200, 2, 3), (500, 20_000, 2, 40)],
)
def test_a_gang_is_tried_in_each_group_of_the_smallest_tier_that_holds_it(
    pods: int, nodes: int, tier: int, groups: int
) -> None:
    placed = gang(pods, nodes)

    assert (placed.tier, placed.groups, placed.placements) == (tier, groups, pods * groups)


@pytest.mark.parametrize(
    ("pods", "nodes", "aware"),
    [(64, 1_200, True), (500, 4_800, True), (500, 20_000, True), (501, 1_200, False)],
)
def test_a_job_asks_for_its_topology_up_to_the_sizes_that_were_seen_to_work(
    pods: int, nodes: int, aware: bool
) -> None:
    placed = gang(pods, nodes)

    assert placed.aware is aware
    assert not aware or placed.seconds <= 90


def test_scoring_is_cut_down_as_the_fleet_grows() -> None:
    spread = ("podtopologyspread",)
    rest = ("podaffinity", "tainttoleration", "imagelocality")

    assert scoring(400) == NodeScoringPlan(percent=None, least=None, left_out=spread)
    found = [scoring(nodes, topology_aware=True) for nodes in (400, 4_000, 19_900)]

    assert [(each.percent, each.least) for each in found] == [(1, 100), (1, 20), (1, 10)]
    assert [each.left_out for each in found] == [spread, spread, spread + rest]


def test_a_large_job_is_sent_without_its_topology_and_says_so() -> None:
    """Other jobs wait while a gang is placed: for a quarter of an hour with 2,500 pods."""
    large = large_cluster(scheduling=AWARE)
    small, wide = (prepared(large, make_job(nodes=nodes)) for nodes in (64, 2_000))

    assert text(small.objects[-1], "spec", "networkTopology", "mode") == "soft"
    assert not mapping(wide.objects[-1], "spec", "networkTopology")
    assert any("sent without networkTopology" in note for note in wide.notes)


def test_a_fleet_larger_than_any_that_was_seen_to_work_is_refused_with_a_way_out() -> None:
    """At 100,000 nodes a gang of 64 would take minutes, and every other job would wait for it."""
    large = cluster(20_001)
    (line,) = (each for each in config.warnings(large) if "topology_aware" in each)
    (row,) = (each for each in plan_needs(assemble(large)).load if "topology" in each.name)

    assert line.startswith("scheduling.topology_aware: 20,001 nodes, and Volcano was shown")
    assert "no more than 20,000 (a gang of 500 in 78 s" in line
    assert "node_selector: {topology.k8s.aws/network-node-layer-2: nn-...}" in line
    assert (row.state, row.most) == ("beyond", 20_000)
    assert assemble(cluster(20_001, scheduling=VOLCANO)).placement is None


def test_nodes_that_name_no_group_of_the_network_do_not_count() -> None:
    """The walk goes through HyperNodes, which hold the nodes that have the labels alone."""
    plain = pool_document(
        name="plain", provisioner="karpenter", instance_types=["m7g.8xlarge"], nodes={"max": 30_000}
    )
    own = pool_document(provisioner="karpenter", nodes={"max": 400})

    placement = assemble(cluster(400, pools=[SYSTEM_POOL, own, plain])).placement

    assert placement is not None
    assert placement.nodes == 400


def test_the_gangs_of_the_file_are_shown_and_sizes_for_comparison_without_any() -> None:
    templates = {
        name: make_job(name=None, nodes=nodes) for name, nodes in (("a", 8), ("b", 8), ("c", 300))
    }
    shown = [assemble(cluster(400, **changes)).placement for changes in ({"jobs": templates}, {})]

    assert [
        [(gang.gang, gang.pods) for gang in each.gangs] for each in shown if each is not None
    ] == [[("a, b", 8), ("c", 300)], [("for comparison", 8), ("for comparison", 64)]]


def test_a_gang_that_names_its_group_is_tried_in_that_one_alone() -> None:
    """So a group is chosen first, and the nodes within it: one trial instead of forty."""
    anywhere, named = gang(400, 20_000), gang(400, 20_000, **{"layer-2": "nn-1"})

    assert (anywhere.groups, named.groups) == (40, 1)
    assert named.seconds < 10 < 50 < anywhere.seconds
    assert gang(8, 20_000, **{"layer-3": "nn-1"}).groups == 1


FIXED = job_cluster(NEURON_POOL | {"nodes": {"static": 32}}, scheduling=AWARE)


@pytest.mark.parametrize(
    ("nodes", "topology", "asked"),
    [
        (8, None, {"mode": "soft"}),
        (8, "preferred", {"mode": "soft"}),
        # The lowest tier whose groups hold the job.
        (8, "required", {"mode": "hard", "highestTierAllowed": 1}),
        (17, "required", {"mode": "hard", "highestTierAllowed": 2}),
        (8, "any", {}),
    ],
)
def test_a_job_says_how_close_its_nodes_are(
    nodes: int, topology: str | None, asked: dict[str, Any]
) -> None:
    job = prepared(FIXED, make_job(nodes=nodes, topology=topology))
    assert mapping(job.objects[-1], "spec", "networkTopology") == asked
    waits = "It waits for one group of 1 of tier 2"
    assert any(note.startswith(waits) for note in job.notes) == (nodes == 17)


@pytest.mark.parametrize(
    ("cluster", "job", "told"),
    [
        (FIXED, {"nodes": 1}, "one node needs no topology"),
        (job_cluster(), {"nodes": 2}, "no engine of this cluster places pods"),
        (
            job_cluster(scheduling=AWARE),
            {"nodes": 2},
            "launch later, and their group is unknown",
        ),
        (large_cluster(scheduling=AWARE), {"nodes": 501}, "tests placed up to 500 pods"),
    ],
)
def test_a_closeness_that_never_comes_about_is_refused(
    cluster: dict[str, Any], job: dict[str, Any], told: str
) -> None:
    (line,) = sentences(cluster, make_job(topology="required", **job))

    assert line.startswith("job: topology: ")
    assert told in line
