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
from tests.support.pools import ODCR, POOL
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.jobs.submission import send
from ultrascale.parts.fabric import gate

GPUS = POOL | {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}
CLUSTER = job_cluster(GPUS)


def connected(stub: StubApiServer, folder: Path) -> Cluster:
    return Cluster.connected(kubeconfig(folder, stub.url))


def test_a_job_is_sent_after_its_checks_which_leave_nothing(
    checked: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(checked, [devices(), fabric(paths=[["node-0", "node-3"]])])
    job = prepared(CLUSTER, make_job(preflight=["fabric", "device"]))

    notes = send(connected(checked, tmp_path), job)

    assert volcano.names == ["tune-device", "tune-fabric", "tune"]
    assert f"{given.VOLCANO_JOBS}/tune" in checked.paths()
    assert not [path for path in checked.paths() if "tune-" in path]
    assert notes[:2] == (
        "device: 2 nodes checked passed.",
        "fabric: 2 nodes checked in 1 round, 440.5 GB/s or more passed.",
    )
    assert "between node-0 and node-3 is slow" in notes[2]


def test_pods_of_a_fabric_check_know_which_nodes_are_near_each_other(
    checked: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(checked, [fabric()])

    send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    (container,) = volcano.made[0]["spec"]["tasks"][0]["template"]["spec"]["containers"]
    (groups,) = [each["value"] for each in container["env"] if each["name"] == "FABRIC_GROUPS"]
    assert json.loads(groups) == {
        "node-0": "0000",
        "node-1": "0001",
        "node-2": "0000",
        "node-3": "0001",
    }


def test_the_network_of_a_large_pool_is_known_as_a_whole(
    checked: StubApiServer, tmp_path: Path
) -> None:
    for index in range(4, 150):
        node = deepcopy(checked.objects[f"{NODES}/node-{index % 4}"])
        node["metadata"]["name"] = f"node-{index}"
        checked.put(f"{NODES}/node-{index}", node)
    (check,) = prepared(CLUSTER, make_job(preflight="fabric")).checks

    told = gate.with_neighbours(connected(checked, tmp_path), check.job)

    (pods,) = pod_templates(told)
    env = pods["spec"]["containers"][0]["env"]
    (groups,) = [each["value"] for each in env if each["name"] == "FABRIC_GROUPS"]
    assert len(json.loads(groups)) == 150


def test_a_bad_node_is_cordoned_and_the_others_are_checked_again(
    checked: StubApiServer, tmp_path: Path
) -> None:
    slow = {"node-1": "9.5 GB/s, below 353.7"}
    volcano = Volcano(checked, [fabric(bad=slow), fabric()])

    notes = send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]
    node: Any = checked.find(f"{NODES}/node-1")
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"] == {
        "kept": "yes",
        gate.CORDONED: "fabric: 9.5 GB/s, below 353.7",
    }
    # The check that passed is gone; what it replaced had stayed for its logs.
    assert not [path for path in checked.paths() if "tune-fabric" in path]
    assert notes[0] == "node-1 is cordoned: fabric: 9.5 GB/s, below 353.7."


def test_who_may_not_cordon_is_told_the_node_and_the_job_is_not_sent(
    checked: StubApiServer, tmp_path: Path
) -> None:
    slow = {"node-1": "9.5 GB/s, below 349.6"}
    volcano = Volcano(checked, [fabric(bad=slow)])
    checked.refuse("PATCH", NODES, Refusal(403, "nodes is forbidden", "Forbidden"))

    with pytest.raises(ClusterError, match=r"node-1 failed: fabric: 9\.5 GB/s") as failed:
        send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert "you may not cordon nodes (patch nodes)" in str(failed.value)
    assert "`kubectl cordon node-1`" in str(failed.value)
    # It stays for its logs.
    assert f"{given.VOLCANO_JOBS}/tune-fabric" in checked.paths()
    assert volcano.names == ["tune-fabric"]


def test_an_interrupted_check_is_taken_away(
    checked: StubApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volcano = Volcano(checked, [fabric()])

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert volcano.names == ["tune-fabric"]
    assert not [path for path in checked.paths() if "tune-fabric" in path]


def test_a_check_that_does_not_end_is_taken_away(
    checked: StubApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would read its verdict, and its nodes would be held for nothing."""
    volcano = Volcano(checked, [fabric()])
    volcano.phase = "Running"
    job = prepared(CLUSTER, make_job(preflight="fabric"))
    (check,) = job.checks
    monkeypatch.setattr(gate, "_END_SECONDS", 1 - check.seconds)

    with pytest.raises(ClusterError):
        send(connected(checked, tmp_path), job)

    assert not [path for path in checked.paths() if "tune-fabric" in path]


def test_all_pods_of_a_check_know_a_secret_that_is_new_each_time(
    checked: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(checked, [fabric(), fabric()])
    job = prepared(CLUSTER, make_job(preflight="fabric"))
    gate.run_check(connected(checked, tmp_path), job.checks[0], lambda _: None)
    gate.run_check(connected(checked, tmp_path), job.checks[0], lambda _: None)

    tokens = [
        each["value"]
        for made in volcano.made
        for container in made["spec"]["tasks"][0]["template"]["spec"]["containers"]
        for each in container["env"]
        if each["name"] == "FABRIC_TOKEN"
    ]
    assert len(set(tokens)) == 2
    assert all(len(token) == 32 for token in tokens)


def test_a_node_whose_devices_fail_is_named_before_anything_is_measured(
    checked: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(checked, [devices(node_1=226)] * 3)
    job = prepared(CLUSTER, make_job(preflight=["device", "fabric"]))

    with pytest.raises(ClusterError, match="nodes failed in each of 3 tries") as failed:
        send(connected(checked, tmp_path), job)

    assert "node-1 is cordoned: device: exit status 226: Memory: Fail" in str(failed.value)
    assert volcano.names == ["tune-device"] * 3
    assert f"{given.VOLCANO_JOBS}/tune" not in checked.paths()


NO_DIAGNOSES = {
    "all nodes fail": ({"node_0": 226, "node_1": 226}, "node-0 .* node-1"),
    "an image without the program": ({"node_1": 127}, "node-1 .exit status 127"),
}


@pytest.mark.parametrize("case", NO_DIAGNOSES)
def test_an_image_or_a_driver_that_cannot_diagnose_costs_no_node(
    case: str, checked: StubApiServer, tmp_path: Path
) -> None:
    """Each of three tries would cordon as many nodes as the job has."""
    failed, told = NO_DIAGNOSES[case]
    volcano = Volcano(checked, [devices(**failed)])

    with pytest.raises(ClusterError, match=told) as error:
        send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="device")))

    assert "scheduling.preflight.device_image" in str(error.value)
    assert volcano.names == ["tune-device"]
    assert all(checked.objects[f"{NODES}/node-{index}"]["spec"] == {} for index in range(4))


def test_a_verdict_on_a_node_where_no_pod_of_the_check_is_cordons_nothing(
    checked: StubApiServer, tmp_path: Path
) -> None:
    Volcano(checked, [fabric(bad={"node-3": "9.5 GB/s, below 349.6"})])

    with pytest.raises(ClusterError, match=r"node-3 .*no pod of the check is on it"):
        send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert checked.objects[f"{NODES}/node-3"]["spec"] == {}


def test_a_job_of_the_users_that_has_the_name_of_a_check_is_not_deleted(
    checked: StubApiServer, tmp_path: Path
) -> None:
    cluster = connected(checked, tmp_path)
    own = prepared(CLUSTER, make_job(name="tune-fabric"))
    send(cluster, own)
    checked.update(f"{given.VOLCANO_JOBS}/tune-fabric", status={"state": {"phase": "Completed"}})

    with pytest.raises(ClusterError, match="tune-fabric is there, is no check"):
        send(cluster, prepared(CLUSTER, make_job(preflight="fabric")))

    assert f"{given.VOLCANO_JOBS}/tune-fabric" in checked.paths()


def test_of_two_nodes_that_fail_together_none_is_cordoned(
    checked: StubApiServer, tmp_path: Path
) -> None:
    why = "9.5 GB/s, below 353.7"
    Volcano(checked, [fabric(undecided={"node-0": why, "node-1": why})])
    job = prepared(CLUSTER, make_job(preflight="fabric"))

    with pytest.raises(
        ClusterError, match=r"could tell which of these nodes is bad: node-0 \(9.5 GB/s"
    ):
        send(connected(checked, tmp_path), job)

    assert not any(
        checked.objects[f"{NODES}/node-{index}"]["spec"].get("unschedulable") for index in range(4)
    )


FAILURES: dict[str, tuple[list[list[str]], str, str]] = {
    "no verdict": ([["Traceback"]], "Completed", "ended without a whole verdict"),
    "a log that was rotated": (
        [['fabric-verdict {"nodes": 2, "po']],
        "Completed",
        "ended without a whole verdict",
    ),
    "no diagnosis": ([["", ""]], "Completed", "of 2 of 2 nodes ended without a verdict"),
    "missing pods": ([fabric(nodes=1)], "Completed", "only 1 of the 2 pods .* came together"),
    "a check that fails": ([[]], "Failed", "check tune-fabric failed"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_check_that_says_nothing_is_no_pass(
    case: str, checked: StubApiServer, tmp_path: Path
) -> None:
    logs, phase, told = FAILURES[case]
    volcano = Volcano(checked, logs)
    volcano.phase = phase
    check = "device" if case == "no diagnosis" else "fabric"
    job = prepared(CLUSTER, make_job(preflight=check))

    with pytest.raises(ClusterError, match=told):
        send(connected(checked, tmp_path), job)

    # It stays, so that its log can be read.
    assert f"{given.VOLCANO_JOBS}/tune-{check}" in checked.paths()
    assert f"{given.VOLCANO_JOBS}/tune" not in checked.paths()


def test_a_check_that_an_earlier_try_left_behind_is_replaced(
    checked: StubApiServer, tmp_path: Path
) -> None:
    job = prepared(CLUSTER, make_job(preflight="fabric"))
    volcano = Volcano(checked, [["Traceback"], fabric()])
    with pytest.raises(ClusterError):
        send(connected(checked, tmp_path), job)

    send(connected(checked, tmp_path), job)

    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]


def test_a_job_that_would_be_refused_costs_no_check(checked: StubApiServer, tmp_path: Path) -> None:
    volcano = Volcano(checked, [])
    checked.remove(f"{given.QUEUES}/default")

    with pytest.raises(ClusterError, match="default"):
        send(connected(checked, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert volcano.names == []
