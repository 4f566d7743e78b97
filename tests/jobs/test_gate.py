"""A job with `preflight` is sent once its nodes have passed, and bad nodes are cordoned."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.job_rules import pod_templates
from tests.support.jobs import job_cluster, make_job, prepared
from tests.support.node_checks import NODES, Volcano, devices, fabric
from tests.support.pools import ODCR, POOL, as_text
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.submission import send
from ultrascale.parts.fabric import gate

GPUS = POOL | {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}
CLUSTER = job_cluster(GPUS)


FABRIC = prepared(CLUSTER, make_job(preflight="fabric"))
SLOW = "9.5 GB/s, below 353.7"
TASKS = f"{given.VOLCANO_JOBS}/tune"


@pytest.fixture
def api(checked: StubApiServer, tmp_path: Path) -> Cluster:
    return Cluster.connected(kubeconfig(tmp_path, checked.url))


def variables_of(made: Any) -> dict[str, str]:
    (container,) = made["spec"]["tasks"][0]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def test_a_job_is_sent_after_its_checks_which_leave_nothing(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [devices(), fabric(paths=[["node-0", "node-3"]])])
    notes = send(api, prepared(CLUSTER, make_job(preflight=["fabric", "device"])))
    assert volcano.names == ["tune-device", "tune-fabric", "tune"]
    assert TASKS in checked.paths()
    assert not [path for path in checked.paths() if "tune-" in path]
    assert notes[:2] == (
        "device: 2 nodes checked passed.",
        "fabric: 2 nodes checked in 1 round, 440.5 GB/s or more passed.",
    )
    assert "between node-0 and node-3 is slow" in notes[2]


def test_pods_of_a_fabric_check_know_which_nodes_are_near_each_other(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [fabric()])
    send(api, FABRIC)
    groups = json.loads(variables_of(volcano.made[0])["FABRIC_GROUPS"])
    assert groups == {f"node-{index}": f"000{index % 2}" for index in range(4)}
    # The network of a large pool is known as a whole.
    for index in range(4, 150):
        node = deepcopy(checked.objects[f"{NODES}/node-{index % 4}"])
        node["metadata"]["name"] = f"node-{index}"
        checked.put(f"{NODES}/node-{index}", node)
    (pods,) = pod_templates(gate.with_neighbours(api, FABRIC.checks[0].job))
    env = pods["spec"]["containers"][0]["env"]
    (many,) = [each["value"] for each in env if each["name"] == "FABRIC_GROUPS"]
    assert len(json.loads(many)) == 150


def test_a_bad_node_is_cordoned_and_the_others_are_checked_again(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [fabric(bad={"node-1": SLOW}), fabric()])
    notes = send(api, FABRIC)
    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]
    node: Any = checked.find(f"{NODES}/node-1")
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"] == {"kept": "yes", gate.CORDONED: f"fabric: {SLOW}"}
    # The check that passed is gone; what it replaced had stayed for its logs.
    assert not [path for path in checked.paths() if "tune-fabric" in path]
    assert notes[0] == f"node-1 is cordoned: fabric: {SLOW}."


def test_who_may_not_cordon_is_told_the_node_and_the_job_is_not_sent(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [fabric(bad={"node-1": SLOW})])
    checked.refuse("PATCH", NODES, Refusal(403, "nodes is forbidden", "Forbidden"))
    with pytest.raises(ClusterError, match=r"node-1 failed: fabric: 9\.5 GB/s") as failed:
        send(api, FABRIC)
    assert "you may not cordon nodes (patch nodes)" in str(failed.value)
    assert "`kubectl cordon node-1`" in str(failed.value)
    # It stays for its logs.
    assert f"{TASKS}-fabric" in checked.paths()
    assert volcano.names == ["tune-fabric"]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        # No pod of the check is on the node; of two that fail together nobody knows which is bad.
        (fabric(bad={"node-3": SLOW}), r"node-3 .*no pod of the check is on it"),
        (
            fabric(undecided={"node-0": SLOW, "node-1": SLOW}),
            r"could tell which of these nodes is bad: node-0 \(9.5 GB/s",
        ),
    ],
)
def test_a_verdict_that_tells_no_bad_node_cordons_nothing(
    checked: StubApiServer, api: Cluster, verdict: list[str], told: str
) -> None:
    Volcano(checked, [verdict])
    with pytest.raises(ClusterError, match=told):
        send(api, FABRIC)
    nodes = [checked.objects[f"{NODES}/node-{index}"] for index in range(4)]
    assert not any(node["spec"].get("unschedulable") for node in nodes)


def test_an_interrupted_check_is_taken_away(
    checked: StubApiServer, api: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    volcano = Volcano(checked, [fabric()])

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        send(api, FABRIC)
    assert volcano.names == ["tune-fabric"]
    assert not [path for path in checked.paths() if "tune-fabric" in path]


def test_a_check_that_does_not_end_is_taken_away(
    checked: StubApiServer, api: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would read its verdict, and its nodes would be held for nothing."""
    volcano = Volcano(checked, [fabric()])
    volcano.phase = "Running"
    monkeypatch.setattr(gate, "_END_SECONDS", 1 - FABRIC.checks[0].seconds)
    with pytest.raises(ClusterError):
        send(api, FABRIC)
    assert not [path for path in checked.paths() if "tune-fabric" in path]


def test_all_pods_of_a_check_know_a_secret_that_is_new_each_time(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [fabric(), fabric()])
    for _ in range(2):
        gate.run_check(api, FABRIC.checks[0], lambda _: None)
    tokens = [variables_of(made)["FABRIC_TOKEN"] for made in volcano.made]
    assert len(set(tokens)) == 2
    assert all(len(token) == 32 for token in tokens)


def test_a_node_whose_devices_fail_is_named_before_anything_is_measured(
    checked: StubApiServer, api: Cluster
) -> None:
    volcano = Volcano(checked, [devices(node_1=226)] * 3)
    with pytest.raises(ClusterError, match="nodes failed in each of 3 tries") as failed:
        send(api, prepared(CLUSTER, make_job(preflight=["device", "fabric"])))
    assert "node-1 is cordoned: device: exit status 226: Memory: Fail" in str(failed.value)
    assert volcano.names == ["tune-device"] * 3
    assert TASKS not in checked.paths()


# All nodes fail, or an image without the program.
NO_DIAGNOSES = [
    ({"node_0": 226, "node_1": 226}, "node-0 .* node-1"),
    ({"node_1": 127}, "node-1 .exit status 127"),
]


@pytest.mark.parametrize(("failed", "told"), NO_DIAGNOSES)
def test_an_image_or_a_driver_that_cannot_diagnose_costs_no_node(
    checked: StubApiServer, api: Cluster, failed: dict[str, int], told: str
) -> None:
    """Each of three tries would cordon as many nodes as the job has."""
    volcano = Volcano(checked, [devices(**failed)])
    with pytest.raises(ClusterError, match=told) as error:
        send(api, prepared(CLUSTER, make_job(preflight="device")))
    assert "scheduling.preflight.device_image" in str(error.value)
    assert volcano.names == ["tune-device"]
    assert all(checked.objects[f"{NODES}/node-{index}"]["spec"] == {} for index in range(4))


def test_a_job_of_the_users_that_has_the_name_of_a_check_is_not_deleted(
    checked: StubApiServer, api: Cluster
) -> None:
    send(api, prepared(CLUSTER, make_job(name="tune-fabric")))
    checked.update(f"{TASKS}-fabric", status={"state": {"phase": "Completed"}})
    with pytest.raises(ClusterError, match="tune-fabric is there, is no check"):
        send(api, FABRIC)
    assert f"{TASKS}-fabric" in checked.paths()


NO_VERDICT = "ended without a whole verdict"
FAILURES: dict[str, tuple[list[list[str]], str, str]] = {
    "no verdict": ([["Traceback"]], "Completed", NO_VERDICT),
    "a log that was rotated": ([['fabric-verdict {"nodes": 2, "po']], "Completed", NO_VERDICT),
    "no diagnosis": ([["", ""]], "Completed", "of 2 of 2 nodes ended without a verdict"),
    "missing pods": ([fabric(nodes=1)], "Completed", "only 1 of the 2 pods .* came together"),
    "a check that fails": ([[]], "Failed", "check tune-fabric failed"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_check_that_says_nothing_is_no_pass(
    case: str, checked: StubApiServer, api: Cluster
) -> None:
    logs, phase, told = FAILURES[case]
    volcano = Volcano(checked, [*logs, fabric()])
    volcano.phase = phase
    check = "device" if case == "no diagnosis" else "fabric"
    job = prepared(CLUSTER, make_job(preflight=check))
    with pytest.raises(ClusterError, match=told):
        send(api, job)
    # It stays, so that its log can be read, until another try replaces it.
    assert f"{TASKS}-{check}" in checked.paths()
    assert TASKS not in checked.paths()
    if case == "no verdict":
        send(api, job)
        assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]


def test_a_job_that_would_be_refused_costs_no_check(checked: StubApiServer, api: Cluster) -> None:
    volcano = Volcano(checked, [])
    checked.remove(f"{given.QUEUES}/default")
    with pytest.raises(ClusterError, match="default"):
        send(api, FABRIC)
    assert volcano.names == []


def test_a_check_of_a_pool_counts_the_nodes_that_are_free(
    checked: StubApiServer, api: Cluster, tmp_path: Path
) -> None:
    """A check of nodes that jobs hold or people drain would wait while all are paid for."""
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(CLUSTER))
    checked.put(f"{given.PODS}/held", given.pod("held", "other", **given.running("node-0")))
    checked.update(f"{NODES}/node-1", spec={"unschedulable": True})

    check = gate.prepare_check(
        file, "train", checks=["fabric"], nodes=None, queue=None, cluster=api
    )

    made: Any = check.objects[0]
    assert made["spec"]["tasks"][0]["replicas"] == 2
