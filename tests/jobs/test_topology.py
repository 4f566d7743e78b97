"""Closeness of a job's nodes: layers of the network as Volcano's tiers, and as Kueue reads them."""

from typing import Any

import pytest

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import VOLCANO, job_cluster, make_job, prepared, refusals
from tests.support.pools import NEURON_POOL
from tests.support.queued_pools import RESERVED, queued_document

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
LAYER = "topology.k8s.aws/network-node-layer-"
VOLCANO_FIXED = job_cluster(
    NEURON_POOL | {"nodes": {"static": 32}}, scheduling=VOLCANO | {"topology_aware": True}
)
QUEUES = (
    {"name": "racks", "guarantee": {"reserved": 40}, "prefer": ["reserved"], "topology": True},
    {"name": "others", "prefer": ["reserved"]},
)
KUEUE_FIXED = queued_document(*QUEUES, pools=(RESERVED | {"nodes": {"static": 64}},))
JOB = {"pool": "reserved", "queue": "racks"}

ASKED: dict[str, tuple[Any, int, dict[str, Any], dict[str, str]]] = {
    # topology, nodes, what Volcano is asked, what Kueue is asked
    "by default": (None, 8, {"mode": "soft"}, {PREFERRED: f"{LAYER}3"}),
    "preferred": ("preferred", 17, {"mode": "soft"}, {PREFERRED: f"{LAYER}2"}),
    "required": ("required", 8, {"mode": "hard", "highestTierAllowed": 1}, {REQUIRED: f"{LAYER}3"}),
    "a layer": (
        {"required": "layer-2"},
        8,
        {"mode": "hard", "highestTierAllowed": 2},
        {REQUIRED: f"{LAYER}2"},
    ),
    "the broadest layer": (
        {"required": "layer-1"},
        8,
        {"mode": "hard", "highestTierAllowed": 3},
        {REQUIRED: f"{LAYER}1"},
    ),
    "a layer first": ({"preferred": "layer-2"}, 8, {"mode": "soft"}, {PREFERRED: f"{LAYER}2"}),
    "any": ("any", 8, {}, {}),
}


@pytest.mark.parametrize("case", ASKED)
def test_each_engine_is_asked_for_the_layer_in_its_own_words(case: str) -> None:
    topology, nodes, of_volcano, of_kueue = ASKED[case]
    volcano = prepared(VOLCANO_FIXED, make_job(nodes=nodes, topology=topology))
    kueue = prepared(KUEUE_FIXED, make_job(**JOB, nodes=nodes, topology=topology))
    (template,) = pod_templates(kueue)
    annotations = template["metadata"]["annotations"]
    spec: Any = volcano.objects[-1]["spec"]

    assert spec.get("networkTopology", {}) == of_volcano
    assert {
        key: annotations[key] for key in (REQUIRED, PREFERRED) if key in annotations
    } == of_kueue
    assert findings(volcano) == findings(kueue) == []


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no such layer": (
        VOLCANO_FIXED,
        {"topology": {"required": "layer-4"}},
        "topology.required: closeness_is_given",
    ),
    "no such layer of the pool": (
        KUEUE_FIXED,
        JOB | {"topology": {"preferred": "layer-4"}},
        "topology.preferred: closeness_is_given",
    ),
    "a queue that does not place": (
        KUEUE_FIXED,
        JOB | {"queue": "others", "topology": "required"},
        "topology: closeness_is_given",
    ),
    "no layer": (KUEUE_FIXED, JOB | {"topology": {}}, "topology: topology_names_one_layer"),
    "two layers": (
        KUEUE_FIXED,
        JOB | {"topology": {"required": "layer-1", "preferred": "layer-2"}},
        "topology: topology_names_one_layer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_layer_that_no_group_has_is_refused(case: str) -> None:
    cluster, job, told = REFUSED[case]

    (line,) = refusals(cluster, make_job(**job))

    assert line.startswith(told)


COMMAND = {"command": ["python3", "-m", "rl"]}
ROLES: dict[str, Any] = {"nodes": None, "script": None, "topology": "required"}


def test_roles_are_told_that_each_of_them_waits_for_a_group_of_its_own() -> None:
    """Kueue places each kind of pods by itself, by the layer of the largest of them."""
    roles = {"trainer": {"nodes": 20, "script": "train.py"}, "judge": {"nodes": 2} | COMMAND}

    sent = prepared(KUEUE_FIXED, make_job(**JOB | ROLES, roles=roles))

    layers = {template["metadata"]["annotations"][REQUIRED] for template in pod_templates(sent)}
    assert layers == {f"{LAYER}2"}
    assert [note for note in sent.notes if "group" in note] == [
        "Kueue admits it once each role has room for all of its pods in one group "
        f"({LAYER}2); different roles may get different groups."
    ]


def test_closeness_of_roles_of_one_node_each_is_refused() -> None:
    roles = {"trainer": {"script": "train.py"}, "judge": COMMAND}

    assert refusals(KUEUE_FIXED, make_job(**JOB | ROLES, roles=roles)) == [
        "topology: roles_can_be_close"
    ]
