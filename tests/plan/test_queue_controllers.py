"""Kueue's controller on system nodes: its deployment waits until it runs."""

from typing import Any

from tests.support.pools import SYSTEM_POOL, make_document, pool_document
from tests.support.queued_pools import BURST, KARPENTER, queued_document, sentences_of

SMALL = SYSTEM_POOL | {"instance_types": ["m7i.xlarge"]}
LARGE = SYSTEM_POOL | {"instance_types": ["m7i.2xlarge"]}
FLEET = pool_document(**BURST | {"nodes": {"max": 2_000}})


def wrong_sizes(*pools: dict[str, Any]) -> list[str]:
    found = sentences_of(queued_document(pools=()) | {"pools": [*pools]})
    return [line for line in found if "too small for Kueue" in line]


def test_a_system_node_that_cannot_hold_the_controller_is_refused() -> None:
    assert wrong_sizes(SMALL, FLEET) == [
        "pools[system].instance_types: nodes too small for Kueue, which takes 4 vCPUs and 4Gi in a "
        "cluster of 2,004 nodes, got [m7i.xlarge]; use larger types"
    ]


def test_one_system_pool_that_holds_it_is_enough() -> None:
    assert wrong_sizes(LARGE, FLEET) == []
    assert wrong_sizes(SMALL, LARGE | {"name": "larger", "role": "system"}, FLEET) == []
    assert wrong_sizes(SMALL, BURST) == []


def test_system_nodes_that_cannot_hold_all_controllers_together_are_refused() -> None:
    """Helm waits for all of them, and the deployment rolls back where one has no place."""
    one = SYSTEM_POOL | {"instance_types": ["m7i.large"], "nodes": {"min": 1, "max": 1}}
    found = sentences_of(queued_document(pools=()) | {"pools": [one, BURST]})

    assert [line for line in found if "Kueue" in line] == [
        "pools[system].nodes: too few for the controllers of Kueue, JobSet and Karpenter, which "
        "take 5 vCPUs and 8 GiB together, got {min: 1, max: 1}; add nodes, or use larger types"
    ]
    assert wrong_sizes(one | {"nodes": {"min": 1, "max": 3}}, BURST) == []


def test_controllers_of_services_count_too() -> None:
    one = SYSTEM_POOL | {"instance_types": ["m7i.large"], "nodes": {"min": 1, "max": 1}}
    document = make_document(
        pools=[one, BURST],
        karpenter=KARPENTER,
        serving={"controllers": ["keda", "leader-worker-set"]},
    )

    (line,) = (line for line in sentences_of(document) if "KEDA" in line)
    assert line.startswith(
        "pools[system].nodes: too few for the controllers of KEDA, LeaderWorkerSet and Karpenter"
    )
