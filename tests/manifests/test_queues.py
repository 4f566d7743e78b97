"""The queues of the cluster file, as Volcano takes them."""

from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.crd_schemas import CRD_FOLDERS, CrdSet
from ultrascale.parts.volcano.model import QueuePlan
from ultrascale_k8s.volcano import queue_objects
from ultrascale_k8s.volcano.chart import crds

QUEUES = (
    QueuePlan(name="research", weight=3),
    QueuePlan(
        name="production",
        weight=65535,
        reclaimable=False,
        capability={"aws.amazon.com/neuron": "2048", "cpu": "96"},
    ),
)
UPSTREAM_FOLDER = CRD_FOLDERS / "volcano-v1.15.1"


@pytest.fixture(scope="session")
def queues() -> list[dict[str, Any]]:
    return applied(document for plan in QUEUES for document in queue_objects(plan))


def test_queues_share_by_weight_and_are_capped_by_resource(queues: list[dict[str, Any]]) -> None:
    ours = CrdSet.from_documents(crds())

    assert [queue["metadata"] for queue in queues] == [{"name": q.name} for q in QUEUES]
    assert [queue["spec"] for queue in queues] == [
        {"weight": 3, "reclaimable": True},
        # It keeps what it has.
        {"weight": 65535, "reclaimable": False, "capability": QUEUES[1].capability},
    ]
    assert [ours.validate(queue) for queue in queues] == [[], []]


def test_queues_are_valid_under_the_crd_of_upstream(queues: list[dict[str, Any]]) -> None:
    if not UPSTREAM_FOLDER.is_dir():
        pytest.skip(f"the CRDs of Volcano are not in {UPSTREAM_FOLDER}")
    upstream = CrdSet.from_folder(UPSTREAM_FOLDER)

    assert [upstream.validate(queue) for queue in queues] == [[], []]


def test_queue_without_a_weight_in_range_is_one_the_crd_refuses() -> None:
    ours = CrdSet.from_documents(crds())
    (queue,) = queue_objects(QueuePlan(name="research", weight=65536))

    assert ours.validate(queue) == ["$.spec.weight: 65536 is greater than the maximum of 65535"]
