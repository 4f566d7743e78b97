"""Quotas of Kueue's queues: what is guaranteed, what is borrowed, and that the sum is the fleet."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.jobs import JOB, refusals
from tests.support.pools import LUSTRE, SPOT, pool_document
from tests.support.queued_pools import (
    BURST,
    CPU,
    NEURON,
    POOLS,
    RESERVED,
    kueue_of,
    mistakes_of,
    planned,
    queued_document,
)
from ultrascale.parts.kueue.model import Plan as KueuePlan

RACKS = {"name": "racks", "guarantee": {"reserved": 9}, "prefer": ["reserved"], "topology": True}
FALLS_BACK = pool_document(
    name="spot",
    provisioner="karpenter",
    purchase=SPOT | {"fallback": "on-demand"},
    nodes={"max": 4},
)
FOUNDATION: dict[str, Any] = {
    "name": "foundation",
    "guarantee": {"reserved": 3},
    "prefer": ["reserved", "burst", "spot"],
}
APPLIED: dict[str, Any] = {
    "name": "applied",
    "guarantee": {"reserved": 4},
    "prefer": ["reserved", "spot"],
    "limit": {"spot": 2},
}
FIXED = {"role": "reserved", "nodes": {"static": 2}}
MANY = (
    *POOLS,
    CPU,
    NEURON,
    pool_document(name="managed", nodes={"min": 4, "max": 4}),
    pool_document(**BURST | {"name": "sharded", "shards": 3}),
    pool_document(**BURST | {"name": "unplaced", "instance_types": ["g6.xlarge"]} | FIXED),
    pool_document(
        **BURST | {"name": "mixed", "instance_types": ["g6.12xlarge", "g6.48xlarge"], "efa": "none"}
    ),
)


def quotas(kueue: KueuePlan, name: str) -> dict[str, tuple[int, int | None]]:
    """Return the quotas of a queue by flavor, in the order in which they are tried."""
    (queue,) = (each for each in kueue.queues if each.name == name)
    return {
        quota.flavor: (quota.nominal, quota.borrowing_limit)
        for group in queue.groups
        for quota in group.quotas
    }


def shared(kueue: KueuePlan) -> dict[str, int]:
    """Return what the cohort holds of each flavor for every queue."""
    return {quota.flavor: quota.nominal for group in kueue.cohort.groups for quota in group.quotas}


def test_a_guarantee_is_the_queues_own_and_what_is_left_stands_once_for_all() -> None:
    kueue = kueue_of(RACKS, FOUNDATION, APPLIED)

    assert quotas(kueue, "foundation") == {
        "reserved": (24, None),
        "burst": (0, None),
        "spot": (0, None),
    }
    assert quotas(kueue, "applied") == {"reserved": (32, None), "spot": (0, 16)}
    assert shared(kueue) == {"reserved-topology": 0, "reserved": 0, "burst": 64, "spot": 32}


def test_a_pool_of_both_kinds_of_queues_counts_each_node_in_one_of_two_flavors() -> None:
    kueue = kueue_of(RACKS, FOUNDATION, APPLIED)
    placed, plain, *_ = kueue.flavors

    assert (placed.name, placed.nodes, placed.topology) == ("reserved-topology", 9, "aws-3")
    assert (plain.name, plain.nodes, plain.topology) == ("reserved", 7, None)
    assert quotas(kueue, "racks") == {"reserved-topology": (72, None)}
    # Its labels can never change, and nothing but the pool is in them.
    assert placed.node_labels == {"ultrascale.dev/pool": "reserved", "node-type": "reserved"}
    assert [each.levels[-1] for each in kueue.topologies] == ["kubernetes.io/hostname"]


def test_without_queues_one_has_all_pools_with_accelerators_and_the_cheapest_first() -> None:
    kueue = kueue_of(pools=(BURST, *POOLS[2:], RESERVED, CPU))
    (queue,) = kueue.queues

    assert queue.name == "default"
    assert queue.pools == ("reserved", "spot", "burst")
    assert shared(kueue) == {"burst": 64, "spot": 32, "reserved": 128}


def test_devices_and_vcpus_are_counted_apart() -> None:
    kueue = kueue_of(
        {"name": "any"}, {"name": "data", "prefer": ["cpu"]}, pools=(RESERVED, NEURON, CPU)
    )

    assert [[group.resource for group in queue.groups] for queue in kueue.queues] == [
        ["nvidia.com/gpu", "aws.amazon.com/neuron"],
        ["cpu"],
    ]
    # Karpenter launches the largest type where that holds the pods that wait.
    assert shared(kueue) == {"cpu": 16 * 64, "neuron": 2 * 16, "reserved": 128}
    assert kueue.gated_resources == (
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "nvidia.com/gpu",
    )


def test_no_job_holds_paid_nodes_for_devices_that_a_pool_of_two_sizes_may_lack() -> None:
    types = {"instance_types": ["g6.12xlarge", "g6.48xlarge"], "efa": "none"}
    fixed = pool_document(name="fixed", nodes={"min": 4, "max": 4}, **types)
    queue = {"name": "a", "guarantee": {"fixed": 1}, "limit": {"fixed": 2}}
    kueue = kueue_of(queue, pools=(fixed,))

    # Each node may be the smaller one, of four GPUs.
    assert quotas(kueue, "a") == {"fixed": (4, 8)}
    assert shared(kueue) == {"fixed": 12}


def test_no_flavor_has_a_label_that_only_some_of_its_nodes_have() -> None:
    sharded = pool_document(**BURST | {"shards": 2})
    for flavor in kueue_of(pools=(FALLS_BACK, sharded)).flavors:
        assert not flavor.node_labels.keys() & {"ultrascale.dev/shard"}
        assert len(flavor.node_labels) <= 8
        if flavor.pool == "burst":
            assert flavor.nodes == 16
        else:
            assert "karpenter.sh/capacity-type" not in flavor.node_labels


def test_a_job_that_moves_to_another_flavor_keeps_no_label_of_the_one_before() -> None:
    """JobSet replaces labels of a node selector, and takes none away."""
    labelled = BURST | {"labels": {"example.com/rack": "b"}}
    alone = NEURON | {"labels": {"example.com/rack": "c"}}
    plan = kueue_of(
        {"name": "a", "prefer": ["burst", "reserved"]},
        {"name": "b", "prefer": ["reserved", "spot"]},
        {"name": "c", "prefer": ["neuron"]},
        pools=(RESERVED, labelled, FALLS_BACK, alone),
    )
    keys = {flavor.pool: {*flavor.node_labels} for flavor in plan.flavors}
    assert keys["burst"] == keys["reserved"] == keys["spot"]
    assert {"ultrascale.dev/pool", "ultrascale.dev/role"} <= keys["spot"]
    assert not keys["spot"] & {"example.com/rack", "karpenter.sh/capacity-type"}
    assert {"example.com/rack", "karpenter.sh/capacity-type"} <= keys["neuron"]


def test_a_service_in_a_queue_takes_its_namespace_into_the_queues() -> None:
    claim = {"namespace": "serving", "name": "models", "mount_path": "/models"}
    storage = {"buckets": [{"name": "models", "claim": claim}]}
    chat = {"kind": "service", "pool": "reserved", "namespace": "serving", "queue": "research"}
    queue = {"name": "research", "prefer": ["reserved"]}

    found = kueue_of(queue, storage=storage, jobs={"chat": chat})
    chat.pop("queue")
    without = kueue_of(queue, storage=storage, jobs={"chat": chat})

    assert (found.namespaces, found.queues_services) == (("serving", "training"), True)
    assert (without.namespaces, without.queues_services) == (("training",), False)


def test_a_namespace_of_services_alone_is_outside_the_queues() -> None:
    claim = {"namespace": "serving", "name": "models", "mount_path": "/models"}
    storage = {"lustre": [LUSTRE | {"claim": claim}]}
    service = {"kind": "service", "namespace": "serving", "pool": "spot", "image": "a.io/b:1"}

    def namespaces(**jobs: Any) -> tuple[str, ...]:
        return kueue_of({"name": "a", "prefer": ["burst"]}, storage=storage, jobs=jobs).namespaces

    assert namespaces(chat=service) == ("training",)
    assert namespaces() == ("serving", "training")


@st.composite
def queues(draw: st.DrawFn, names: Sequence[str]) -> dict[str, Any]:
    """Return a queue that is likely to be right: its counts are of pools that it prefers."""
    topology = draw(st.booleans())
    placed = [name for name in names if name in ("reserved", "managed", "neuron")]
    among = placed if topology and placed else [name for name in names if name != "cpu"] or names
    prefer = draw(st.lists(st.sampled_from(among), min_size=1, max_size=3, unique=True))
    counts = st.dictionaries(st.sampled_from(prefer), st.integers(1, 5), min_size=1, max_size=2)
    queue: dict[str, Any] = {"prefer": prefer, "topology": topology, "guarantee": draw(counts)}
    return queue | draw(st.fixed_dictionaries({}, optional={"limit": counts}))


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Return a cluster file of random pools and queues, some of them wrong."""
    others = [pool for pool in MANY if pool["name"] != "reserved"]
    some = draw(st.lists(st.sampled_from(others), max_size=4, unique_by=lambda pool: pool["name"]))
    pools = (RESERVED, *some)
    names = [pool["name"] for pool in pools]
    of_any = st.dictionaries(st.sampled_from(names), st.integers(0, 9), max_size=2)
    careless = st.fixed_dictionaries(
        {},
        optional={
            "prefer": st.lists(st.sampled_from(names), min_size=1, unique=True),
            "guarantee": of_any,
            "limit": of_any,
            "topology": st.booleans(),
        },
    )
    careful = queues(names)
    size = draw(st.sampled_from((0, 1, 2, 3, 3, 4)))
    one = st.one_of(careful, careful, careful, careful, careless)
    drawn = draw(st.lists(one, min_size=size, max_size=size))
    named = [{"name": f"q{number}", **each} for number, each in enumerate(drawn)]
    return queued_document(*named, pools=pools)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=files())
def test_a_random_file_is_refused_or_its_quotas_sum_to_the_fleet(document: dict[str, Any]) -> None:
    if wrong := mistakes_of(document):
        assert all(line.startswith("scheduling.") for line in wrong)
        return
    plan = planned(document)
    kueue = plan.part(KueuePlan)
    assert kueue is not None

    nodes: dict[str, int] = {}
    for flavor in kueue.flavors:
        nodes[flavor.pool] = nodes.get(flavor.pool, 0) + flavor.nodes
        own = [quotas(kueue, queue.name).get(flavor.name, (0, None)) for queue in kueue.queues]
        assert shared(kueue)[flavor.name] >= 0
        assert sum(quota for quota, _ in own) + shared(kueue)[flavor.name] == flavor.quantity
    queued = {name for queue in kueue.queues for name in queue.pools}
    assert nodes == {
        name: sum(pool.max_nodes for pool in plan.pools if pool.pool == name) for name in queued
    }
    for queue in kueue.queues:
        own = {each.name: queue.quota_of(each) for each in kueue.flavors}
        mine = [each for each in kueue.flavors if own[each.name] is not None]
        assert {each.pool for each in mine} == {*queue.pools}
        assert {each.topology is not None for each in mine} == {queue.topology}
        for flavor in mine:
            quota = own[flavor.name]
            assert quota is not None
            assert 0 < quota.most <= flavor.quantity
            assert quota.own <= quota.most


def test_the_plan_tells_who_is_guaranteed_what_and_which_nodes_are_in_no_queue() -> None:
    plan = planned(queued_document(RACKS, FOUNDATION, APPLIED, pools=MANY))
    kueue = plan.part(KueuePlan)
    assert kueue is not None
    needs = kueue.needs(plan.pools)
    of_pool = {(each.pool, each.by_topology): each for each in needs.flavors}

    assert [
        (share.queue, share.tried, share.guaranteed, share.most)
        for share in of_pool["spot", False].shares
    ] == [("foundation", 3, 0, 4), ("applied", 2, 0, 2)]
    assert of_pool["reserved", True].nodes + of_pool["reserved", False].nodes == 16
    for flavor in needs.flavors:
        assert sum(share.guaranteed for share in flavor.shares) + flavor.shared == flavor.nodes
    assert needs.nodes == 16 + 8 + 4
    others = {"cpu": 16, "neuron": 2, "managed": 4, "sharded": 24, "unplaced": 2, "mixed": 8}
    assert needs.unqueued == others


def test_a_queue_with_topology_takes_by_itself_what_names_its_place_in_the_network() -> None:
    (queue,) = kueue_of({"name": "racks", "topology": True}, pools=MANY).queues

    assert queue.pools == ("reserved", "managed")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    guarantee=st.integers(0, 16),
    others=st.integers(0, 16),
    limit=st.none() | st.integers(1, 9),
    nodes=st.integers(2, 20),
)
def test_a_job_that_no_pool_of_its_queue_could_ever_hold_is_refused_and_no_other(
    guarantee: int, others: int, limit: int | None, nodes: int
) -> None:
    mine = {"name": "mine", "guarantee": {"reserved": guarantee}, "prefer": ["reserved", "burst"]}
    if limit is not None:
        mine |= {"limit": {"reserved": limit, "burst": limit}}
    others = min(others, 16 - guarantee)
    document = queued_document(mine, {"name": "others", "guarantee": {"reserved": others}})

    wrong = refusals(document, {**JOB, "pool": None}, queue="mine", nodes=nodes)

    def most(own: int, all_nodes: int) -> int:
        return all_nodes if limit is None else min(all_nodes, own + limit)

    holds = nodes <= max(most(guarantee, 16), most(0, 8))
    assert wrong == ([] if holds else ["queue: queue_can_admit_the_pods"])
