"""Mistakes in Kueue's queues: each is named before nodes are paid for that no job can have."""

from typing import Any

from tests.support.cases import for_each
from tests.support.pools import CAPACITY_BLOCK, as_json, governed_document, loads_own, pool_document
from tests.support.queued_pools import (
    BURST,
    CPU,
    POOLS,
    RESERVED,
    SPOT_POOL,
    mistakes_of,
    queued_document,
    sentences_of,
)
from ultrascale import config

FIXED = {"role": "reserved", "nodes": {"static": 2}}
TAINTS = [{"key": f"team-{number}", "value": "a"} for number in range(7)]
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a key of Volcano": (
        queued_document({"name": "a", "weight": 2}),
        "scheduling.queues[a].weight: queue_keys_are_the_engines",
    ),
    "a key of Kueue": (
        queued_document(
            scheduling={
                "queueing": "volcano",
                "queues": [{"name": "a", "guarantee": {"reserved": 1}}],
            }
        ),
        "scheduling.queues[a].guarantee: queue_keys_are_the_engines",
    ),
    "beside task governance": (
        governed_document(scheduling={"queueing": "kueue"}),
        "scheduling.queueing: one_scheduler_governs",
    ),
    "a name that no label holds": (
        queued_document({"name": "a" * 64}),
        "scheduling.queues[0].name: queue_name_fits_a_label",
    ),
    "the queue of Jobs that name none, without accelerators": (
        queued_document({"name": "default", "prefer": ["cpu"]}, pools=(*POOLS, CPU)),
        "scheduling.queues[default].name: queue_of_unnamed_jobs_has_accelerators",
    ),
    "a pool that is not there": (
        queued_document({"name": "a", "prefer": ["reservd"]}),
        "scheduling.queues[a].prefer[0]: queue_pools_exist",
    ),
    "a guarantee of a pool that is not there": (
        queued_document({"name": "a", "guarantee": {"brust": 1}}),
        "scheduling.queues[a].guarantee.brust: queue_pools_exist",
    ),
    "a guarantee of a pool that it does not prefer": (
        queued_document({"name": "a", "guarantee": {"burst": 1}, "prefer": ["reserved"]}),
        "scheduling.queues[a].guarantee.burst: queue_pools_exist",
    ),
    "controllers' nodes": (
        queued_document({"name": "a", "prefer": ["system"]}),
        "scheduling.queues[a].prefer[0]: queue_pools_run_jobs",
    ),
    "vCPUs among devices": (
        queued_document({"name": "a", "prefer": ["reserved", "cpu"]}, pools=(*POOLS, CPU)),
        "scheduling.queues[a].prefer: queue_pools_run_jobs",
    ),
    "nothing to queue for": (
        queued_document(pools=(CPU,)),
        "scheduling.queueing: queue_has_pools",
    ),
    "a queue without pools": (
        queued_document({"name": "a"}, pools=(CPU,)),
        "scheduling.queues[a].prefer: queue_has_pools",
    ),
    "vCPUs that it does not name": (
        queued_document({"name": "a", "guarantee": {"cpu": 1}}, pools=(*POOLS, CPU)),
        "scheduling.queues[a].guarantee.cpu: unstated_pools_are_known",
    ),
    "more guaranteed than there is": (
        queued_document(
            {"name": "a", "guarantee": {"reserved": 9}}, {"name": "b", "guarantee": {"reserved": 8}}
        ),
        "scheduling.queues: guarantees_are_there",
    ),
    "a pool that it may never use": (
        queued_document({"name": "a", "limit": {"spot": 0}}),
        "scheduling.queues[a].limit.spot: queue_may_use_its_pools",
    ),
    "more kinds of nodes than a cohort holds": (
        queued_document(
            pools=tuple(BURST | {"name": f"p{number}", "nodes": {"max": 1}} for number in range(65))
        ),
        "scheduling.queues: queues_fit_kueue",
    ),
    "two flavors of one name": (
        queued_document(
            {"name": "a", "prefer": ["reserved"], "topology": True},
            pools=(*POOLS, BURST | {"name": "reserved-topology"}),
        ),
        "pools[reserved-topology].name: flavors_have_a_name_each",
    ),
    "topology on nodes that are not there yet": (
        queued_document({"name": "a", "prefer": ["reserved", "burst"], "topology": True}),
        "scheduling.queues[a].prefer[1]: topology_has_its_nodes",
    ),
    "topology of nodes that do not name theirs": (
        queued_document(
            {"name": "a", "prefer": ["small"], "topology": True},
            pools=(*POOLS, BURST | {"name": "small", "instance_types": ["g6.xlarge"]} | FIXED),
        ),
        "scheduling.queues[a].prefer[0]: topology_has_its_nodes",
    ),
    "topology where nothing is fixed": (
        queued_document({"name": "a", "topology": True}, pools=(BURST, SPOT_POOL)),
        "scheduling.queues[a].topology: topology_has_its_nodes",
    ),
    "a pool of both kinds of queues without a share": (
        queued_document(
            {"name": "racks", "prefer": ["reserved"], "topology": True}, {"name": "others"}
        ),
        "scheduling.queues: pool_divides_between_queues",
    ),
    "a pool of both kinds of queues without a rest": (
        queued_document(
            {
                "name": "racks",
                "prefer": ["reserved"],
                "topology": True,
                "guarantee": {"reserved": 16},
            },
            {"name": "others"},
        ),
        "scheduling.queues: pool_divides_between_queues",
    ),
    "more taints than a flavor holds": (
        queued_document(
            {"name": "a", "prefer": ["tainted"]},
            pools=(*POOLS, pool_document(**BURST | {"name": "tainted", "taints": TAINTS})),
        ),
        "scheduling.queues[a].prefer: flavors_hold_the_taints",
    ),
}


@for_each(BAD)
def test_a_queue_that_could_not_work_is_refused_with_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_of(document) == [line]


def test_pools_that_grow_are_counted_once_beside_a_queue_with_topology() -> None:
    growing = (BURST | {"name": f"p{number}", "nodes": {"max": 1}} for number in range(40))
    racks = {"name": "racks", "guarantee": {"reserved": 9}, "topology": True}

    found = mistakes_of(queued_document(racks, {"name": "a"}, pools=(RESERVED, *growing)))

    assert found == []


def test_a_queue_of_kueue_may_have_a_name_that_is_volcanos_own() -> None:
    assert mistakes_of(queued_document({"name": "default"})) == []


BLOCK = pool_document(
    **RESERVED | {"name": "block", "purchase": CAPACITY_BLOCK, "zones": ["us-west-2a"]}
)
WARNED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "reserved nodes of no queue": (
        queued_document({"name": "a", "prefer": ["burst"]}),
        [
            "pools[reserved].name: no queue has this pool, so only services run on its nodes, "
            "which are paid for also when unused; name it in prefer of a queue"
        ],
    ),
    "a window in a queue that bursts": (
        queued_document({"name": "a", "prefer": ["block", "burst"]}, pools=(BLOCK, BURST)),
        [
            "scheduling.queues[a].prefer: Kueue admits jobs to pool block outside its window "
            "too, and retries them for hours; give the pool a queue of its own with topology: "
            "true, which waits for the nodes"
        ],
    ),
    "a window in a queue that waits for nodes": (
        queued_document({"name": "a", "prefer": ["block"], "topology": True}, pools=(BLOCK,)),
        [],
    ),
    "guaranteed Spot": (
        queued_document({"name": "a", "guarantee": {"spot": 1}}),
        [
            "scheduling.queues[a].guarantee.spot: Spot is guaranteed against other queues "
            "only: EC2 may have none; guarantee nodes that are reserved"
        ],
    ),
}


@for_each(WARNED)
def test_nodes_that_no_job_gets_are_warned_of(document: dict[str, Any], lines: list[str]) -> None:
    cluster = loads_own(as_json(document))

    assert sentences_of(document) == []
    about = ("queues[", "no queue has")
    told = config.warnings(cluster)
    assert [line for line in told if any(word in line for word in about)] == lines
