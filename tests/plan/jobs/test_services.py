"""A service runs on its kind of capacity, and its updates wait for no node that never comes."""

from typing import Any

import pytest

from tests.support.jobs import SERVICE, job_cluster, objects, pod_spec, prepared, refusals
from tests.support.models.placement import nodes, plan_of
from tests.support.pools import SPOT, pool_document

FALLBACK = SPOT | {"fallback": "on-demand"}
SPOT_POOL = pool_document(
    name="burst",
    instance_types=["g6e.12xlarge", "g6.12xlarge"],
    provisioner="karpenter",
    purchase=FALLBACK,
    zones=None,
    nodes={"max": 8},
)
RESERVED_POOL = pool_document(
    name="kept",
    instance_types=["g6e.12xlarge"],
    provisioner="karpenter",
    purchase={"option": "odcr", "reservation_tags": {"team": "a"}},
    role="reserved",
    nodes={"max": 4},
)
PLAIN_POOL = pool_document(name="plain", instance_types=["g6e.12xlarge"], provisioner="karpenter")
SERVING = job_cluster(SPOT_POOL, RESERVED_POOL, PLAIN_POOL)


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        ("reserved", {("kept", "odcr")}),
        ("spot", {("burst", "spot")}),
        ("on-demand", {("burst", "on-demand"), ("plain", "on-demand")}),
        (None, {("kept", "odcr"), ("burst", "spot"), ("burst", "on-demand")}),
    ],
)
def test_a_service_runs_on_all_nodes_of_its_kind_of_capacity(
    capacity: str | None, expected: set[tuple[str, str]]
) -> None:
    """Nodes that stand in for Spot ones are On-Demand, in a pool of Spot."""
    cluster = plan_of(SERVING)
    job = SERVICE | {"pool": None, "resources": {"gpu": 1}}
    if capacity is None:
        pools = {"ultrascale.dev/role": "burst"}
        expected = {("burst", "spot"), ("burst", "on-demand"), ("plain", "on-demand")}
        job |= {"node_selector": pools}
    else:
        job |= {"capacity": capacity}

    spec = pod_spec(prepared(SERVING, job))

    found = {
        (node.pool, node.labels["ultrascale.dev/capacity"])
        for node in nodes(cluster)
        if node.takes(spec)
    }
    assert found == expected


def test_a_service_takes_the_capacity_of_the_pool_that_it_names() -> None:
    job = SERVICE | {"resources": {"gpu": 1}}

    assert refusals(SERVING, job | {"pool": "kept", "capacity": "spot"}) == [
        "capacity: capacity_is_the_pools"
    ]
    assert not refusals(SERVING, job | {"pool": "burst", "capacity": "on-demand"})


TUNE = {"script": "tune.py", "durable": False}


@pytest.mark.parametrize(
    ("tune", "pool", "refused"),
    [
        (TUNE | {"pool": "kept"}, "kept", True),
        (TUNE | {"node_selector": {"ultrascale.dev/role": "reserved"}}, "kept", True),
        (TUNE | {"pool": "plain"}, "kept", False),
        (TUNE, "kept", False),
        (TUNE | {"pool": "plain"}, "plain", False),
        ({"kind": "batch", "command": ["sweep"], "pool": "kept"}, "kept", False),
    ],
)
def test_a_service_takes_no_reserved_nodes_from_training_without_a_quota(
    tune: dict[str, Any], pool: str, *, refused: bool
) -> None:
    """It holds them for good, and training would wait for nodes that are paid for."""
    cluster = SERVING | {"jobs": {"tune": tune}}
    line = "pool: takes_nothing_reserved"
    assert refusals(cluster, SERVICE | {"pool": pool}) == ([line] if refused else [])


_FIXED = [
    job_cluster(pool_document(instance_types=["g6e.12xlarge"], nodes=nodes))
    for nodes in ({"static": 4}, {"min": 4, "max": 4})
]


@pytest.mark.parametrize(
    ("cluster", "pool", "replicas", "gpus", "surge"),
    [
        (SERVING, "burst", 2, 4, True),
        (SERVING, "burst", 8, 4, False),
        (SERVING, "burst", 8, 1, True),
        (SERVING, "burst", 32, 1, False),
        (SERVING, "kept", 1, 4, False),
        (SERVING, "plain", 1, 4, True),
        (SERVING, "plain", 16, 4, False),
        # No update waits for a node of a pool of fixed size.
        (_FIXED[0], "train", 2, 4, False),
        (_FIXED[1], "train", 2, 4, False),
    ],
)
def test_an_update_starts_a_pod_more_only_where_a_node_can_be_launched_for_it(
    cluster: dict[str, Any], pool: str, replicas: int, gpus: int, surge: bool
) -> None:
    """Elsewhere the new pod would wait for the old one, and the old one for it."""
    stated = {"pool": pool, "replicas": replicas, "resources": {"gpu": gpus}}
    (deployment,) = objects(prepared(cluster, SERVICE | stated), "Deployment")
    rolling = {"maxSurge": int(surge), "maxUnavailable": int(not surge)}
    assert deployment["spec"]["strategy"]["rollingUpdate"] == rolling


@pytest.mark.parametrize(
    ("least", "most", "replaced"), [(1, 7, 0), (1, 8, "13%"), (7, 8, "13%"), (8, 8, 1)]
)
def test_an_update_of_a_service_that_follows_the_load_keeps_its_fewest_replicas(
    least: int, most: int, replaced: int | str
) -> None:
    """At its most replicas all nodes are taken, and only there may one go first."""
    scaled = {"metric": "cpu", "target": 70, "min": least, "max": most}
    job = SERVICE | {"pool": "burst", "resources": {"gpu": 4}, "autoscale": scaled}
    (deployment,) = objects(prepared(SERVING, job), "Deployment")
    rolling = {"maxSurge": 0 if replaced == 1 else 1, "maxUnavailable": replaced}
    assert deployment["spec"]["strategy"]["rollingUpdate"] == rolling
    if isinstance(replaced, str):
        share = int(replaced.removesuffix("%"))
        gone = [count * share // 100 for count in range(least, most + 1)]
        assert gone == [*[0] * (most - least), 1]


def test_a_pool_holds_what_its_largest_nodes_do_and_no_more() -> None:
    unlike = {"instance_types": ["g6e.12xlarge", "g6e.48xlarge"], "zones": None, "efa": "none"}
    cluster = job_cluster(pool_document(**unlike, nodes={"max": 4}))
    assert not refusals(cluster, SERVICE | {"replicas": 4, "resources": {"gpu": 8}})
    assert len(refusals(cluster, SERVICE | {"replicas": 5, "resources": {"gpu": 8}})) == 1
    job = SERVICE | {"pool": "kept", "replicas": 17, "resources": {"gpu": 1}}
    assert refusals(SERVING, job) == ["replicas: nodes_are_there"]
