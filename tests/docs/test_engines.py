"""The table of engines in docs/queues.md: each cell is what a job of that engine meets."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.jobs import BATCH, VOLCANO, job_cluster, make_job, sentences
from tests.support.pools import (
    GOVERNED_POOL,
    NEURON_POOL,
    SYSTEM_POOL,
    governed_document,
    pool_document,
)
from tests.support.queued_pools import kueue_of

PAGE = ROOT / "docs" / "queues.md"
TAKEN, REFUSED, NOT_THERE = "yes", "no: ", "no such pools"

FIXED = NEURON_POOL | {"name": "train", "nodes": {"static": 8}}
GROWING = pool_document(name="growing")
QUEUES: list[dict[str, Any]] = [
    {"name": "plain", "prefer": ["train", "growing"]},
    {"name": "placed", "prefer": ["train"], "topology": True, "guarantee": {"train": 2}},
]

GOVERNED = {"pool": "hp", "team": "research"}

ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Volcano": (job_cluster(FIXED, GROWING, scheduling=VOLCANO | {"topology_aware": True}), {}),
    "Kueue": (
        job_cluster(FIXED, GROWING, scheduling={"queueing": "kueue", "queues": QUEUES}),
        {"queue": "plain"},
    ),
    "HyperPod": (governed_document(), GOVERNED),
    "HyperPod, its training operator": (
        governed_document(
            pools=[SYSTEM_POOL, GOVERNED_POOL | {"deep_health_checks": True}],
            hyperpod=governed_document()["hyperpod"] | {"training_operator": True},
        ),
        GOVERNED,
    ),
    "none": (job_cluster(FIXED, GROWING, scheduling=None), {}),
}
"""A cluster file of each engine, and what its jobs say beside the feature."""

ROLES = {
    "trainer": {"nodes": 2, "script": "train.py"},
    "rollout": {"nodes": 1, "command": ["python3", "rollout.py"]},
}
ANNOTATED = {"metadata": {"annotations": {"example.com/owner": "ana"}}}
FEATURES: dict[str, dict[str, Any]] = {
    "training of one node": make_job(nodes=1),
    "training of several nodes, on a fixed pool": make_job(),
    "training of several nodes, on a pool that grows": make_job(pool="growing"),
    "`min_nodes`": make_job(min_nodes=1),
    "`roles`": make_job(nodes=None, script=None, roles=ROLES),
    "`array`": BATCH | {"array": {"size": 8, "parallelism": 2}},
    "`topology`": make_job(topology="required"),
    "`secrets`": make_job(secrets={"HF_TOKEN": "hub"}),
    "`deadline_hours`": make_job(deadline_hours=4),
    "`scratch`": make_job(scratch="/scratch"),
    "`annotations`": make_job(annotations={"example.com/owner": "ana"}),
    "`init`": make_job(init=["python3", "prepare.py"]),
    "`patch`": make_job(patch={"Job": ANNOTATED}),
}
# Queues that place by topology are of their own, and kinds of objects are the engines'.
OWN: dict[tuple[str, str], dict[str, Any]] = {
    ("`topology`", "Kueue"): {"queue": "placed"},
    ("`patch`", "Kueue"): {"patch": {"JobSet": ANNOTATED}},
    ("`patch`", "HyperPod"): {"patch": {"PyTorchJob": ANNOTATED}},
    ("`patch`", "HyperPod, its training operator"): {"patch": {"HyperPodPyTorchJob": ANNOTATED}},
}


def cells() -> Iterator[tuple[str, str, str]]:
    """Yield feature, engine and what the page says of the two."""
    table = PAGE.read_text().split("<!-- engines -->\n")[1].split("<!-- end -->")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    head, _, *rows = lines
    for feature, *found in rows:
        for engine, said in zip(head[1:], found, strict=True):
            yield feature, engine, said


def test_the_page_has_each_feature_and_each_engine() -> None:
    assert {feature for feature, _, _ in cells()} == {*FEATURES}
    assert {engine for _, engine, _ in cells()} == {*ENGINES}


@pytest.mark.parametrize(
    ("feature", "engine", "said"), [cell for cell in cells() if cell[2] != NOT_THERE]
)
def test_a_job_is_taken_or_refused_as_the_page_says(feature: str, engine: str, said: str) -> None:
    cluster, placed = ENGINES[engine]
    job = FEATURES[feature] | placed | OWN.get((feature, engine), {})

    found = sentences(cluster, job)

    if said == TAKEN:
        assert found == []
    else:
        assert said.startswith(REFUSED)
        (line,) = found
        assert said.removeprefix(REFUSED) in line


def test_the_page_tells_the_wait_that_the_plan_sets() -> None:
    ready = kueue_of().readiness
    text = PAGE.read_text()
    assert f"- {ready.timeout_seconds // 60} minutes after its admission" in text
    assert (ready.backoff_base_seconds, ready.backoff_max_seconds) == (60, 3600)
    assert "tried again after one minute, then two, four, up to an hour" in text
    assert ready.backoff_limit == 10
    assert "After ten tries Kueue gives it up" in text
