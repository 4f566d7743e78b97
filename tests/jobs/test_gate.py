"""A job with `preflight` is sent once its nodes have passed, and bad nodes are cordoned."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.jobs import job_cluster, make_job, prepared
from tests.support.pools import ODCR, POOL
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import Object, StubApiServer
from ultrascale.catalog.fabric import DEVICE_LINE
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale.fabric.agent import VERDICT
from ultrascale.jobs import gate

NODES = "/api/v1/nodes"
GPUS = POOL | {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}
CLUSTER = job_cluster(GPUS)
PASSED: dict[str, Any] = {
    "nodes": 2,
    "pods": 2,
    "rounds": 1,
    "bad": {},
    "undecided": {},
    "paths": [],
    "slowest": 440.5,
}


class Volcano:
    """Runs checks to their ends; each prints the next of the verdicts that it was given."""

    def __init__(self, stub: StubApiServer, logs: Sequence[Sequence[str]]) -> None:
        self.stub = stub
        self.logs = iter(logs)
        self.phase = "Completed"
        self.made: list[Object] = []
        stub.on_create = self.created

    def created(self, path: str, found: Object) -> None:
        if not path.startswith(given.VOLCANO_JOBS):
            return
        self.made.append(found)
        name = found["metadata"]["name"]
        if name == "tune":
            return
        (task,) = found["spec"]["tasks"]
        lines = next(self.logs)
        for index in range(task["replicas"]):
            pod = f"{given.PODS}/{name}-worker-{index}"
            state = {"status": {"phase": "Succeeded"}}
            fields = given.pod(f"{name}-worker-{index}", name, index=index, task="worker", **state)
            owners = [{"kind": "Job", "name": name, "uid": found["metadata"]["uid"]}]
            fields["metadata"]["ownerReferences"] = owners
            self.stub.put(pod, fields)
            line = lines[index] if len(lines) > index else ""
            self.stub.write(pod, f"2026-11-21T12:00:00.000000000Z {line}", ends=True)
        self.stub.update(path, status={"state": {"phase": self.phase}, "succeeded": 2})

    @property
    def names(self) -> list[str]:
        return [found["metadata"]["name"] for found in self.made]


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.put(f"{given.QUEUES}/default", {"kind": "Queue", "status": {"state": "Open"}})
    for index in range(4):
        labels = {
            "ultrascale.dev/pool": "train",
            "topology.k8s.aws/network-node-layer-3": f"nn-{index % 2}",
        }
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": f"node-{index}", "labels": labels, "annotations": {"kept": "yes"}}
        server.put(
            f"{NODES}/node-{index}",
            {"kind": "Node", "metadata": metadata, "spec": {}, "status": ready},
        )
    with serve(server):
        yield server


def connected(stub: StubApiServer, folder: Path) -> Cluster:
    return Cluster.connected(kubeconfig(folder, stub.url))


def fabric(**changes: Any) -> list[str]:
    return [VERDICT + json.dumps(PASSED | changes)]


def devices(**failed: int) -> list[str]:
    return [
        DEVICE_LINE + json.dumps({"node": node, "status": failed.get(node.replace("-", "_"), 0)})
        for node in ("node-0", "node-1")
    ]


def test_a_job_is_sent_after_its_checks_which_leave_nothing(
    stub: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(stub, [devices(), fabric(paths=[["node-0", "node-3"]])])
    job = prepared(CLUSTER, make_job(preflight=["fabric", "device"]))

    notes = gate.send(connected(stub, tmp_path), job)

    assert volcano.names == ["tune-device", "tune-fabric", "tune"]
    assert f"{given.VOLCANO_JOBS}/tune" in stub.paths()
    assert not [path for path in stub.paths() if "tune-" in path]
    assert notes[:2] == (
        "device: 2 nodes checked passed.",
        "fabric: 2 nodes checked in 1 rounds, 440.5 GB/s or more passed.",
    )
    assert "between node-0 and node-3 is slow" in notes[2]


def test_pods_of_a_fabric_check_know_which_nodes_are_near_each_other(
    stub: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(stub, [fabric()])

    gate.send(connected(stub, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    (container,) = volcano.made[0]["spec"]["tasks"][0]["template"]["spec"]["containers"]
    (groups,) = [each["value"] for each in container["env"] if each["name"] == "FABRIC_GROUPS"]
    assert json.loads(groups) == {
        "node-0": "0000",
        "node-1": "0001",
        "node-2": "0000",
        "node-3": "0001",
    }


def test_a_bad_node_is_cordoned_and_the_others_are_checked_again(
    stub: StubApiServer, tmp_path: Path
) -> None:
    slow = {"node-1": "9.5 GB/s, below 353.7"}
    volcano = Volcano(stub, [fabric(bad=slow), fabric()])

    notes = gate.send(connected(stub, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]
    node: Any = stub.find(f"{NODES}/node-1")
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"] == {
        "kept": "yes",
        gate.CORDONED: "fabric: 9.5 GB/s, below 353.7",
    }
    assert notes[0] == "node-1 is cordoned: fabric: 9.5 GB/s, below 353.7."


def test_a_node_whose_devices_fail_is_named_before_anything_is_measured(
    stub: StubApiServer, tmp_path: Path
) -> None:
    volcano = Volcano(stub, [devices(node_1=226)] * 3)
    job = prepared(CLUSTER, make_job(preflight=["device", "fabric"]))

    with pytest.raises(ClusterError, match="nodes failed in each of 3 tries") as failed:
        gate.send(connected(stub, tmp_path), job)

    assert "node-1 is cordoned: device: exit status 226" in str(failed.value)
    assert volcano.names == ["tune-device"] * 3
    assert f"{given.VOLCANO_JOBS}/tune" not in stub.paths()


def test_of_two_nodes_that_fail_together_none_is_cordoned(
    stub: StubApiServer, tmp_path: Path
) -> None:
    why = "9.5 GB/s, below 353.7"
    Volcano(stub, [fabric(undecided={"node-0": why, "node-1": why})])
    job = prepared(CLUSTER, make_job(preflight="fabric"))

    with pytest.raises(ClusterError, match=r"no sound node was there .* node-0 \(9.5 GB/s"):
        gate.send(connected(stub, tmp_path), job)

    assert not any(
        stub.objects[f"{NODES}/node-{index}"]["spec"].get("unschedulable") for index in range(4)
    )


FAILURES: dict[str, tuple[list[list[str]], str, str]] = {
    "no verdict": ([["Traceback"]], "Completed", "ended without a verdict"),
    "missing pods": ([fabric(nodes=1)], "Completed", "only 1 of the 2 pods .* came together"),
    "a check that fails": ([[]], "Failed", "check tune-fabric failed"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_check_that_says_nothing_is_no_pass(
    case: str, stub: StubApiServer, tmp_path: Path
) -> None:
    logs, phase, told = FAILURES[case]
    volcano = Volcano(stub, logs)
    volcano.phase = phase
    job = prepared(CLUSTER, make_job(preflight="fabric"))

    with pytest.raises(ClusterError, match=told):
        gate.send(connected(stub, tmp_path), job)

    # It stays, so that its log can be read.
    assert f"{given.VOLCANO_JOBS}/tune-fabric" in stub.paths()
    assert f"{given.VOLCANO_JOBS}/tune" not in stub.paths()


def test_a_check_that_an_earlier_try_left_behind_is_replaced(
    stub: StubApiServer, tmp_path: Path
) -> None:
    job = prepared(CLUSTER, make_job(preflight="fabric"))
    volcano = Volcano(stub, [["Traceback"], fabric()])
    with pytest.raises(ClusterError):
        gate.send(connected(stub, tmp_path), job)

    gate.send(connected(stub, tmp_path), job)

    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]


def test_a_job_that_would_be_refused_costs_no_check(stub: StubApiServer, tmp_path: Path) -> None:
    volcano = Volcano(stub, [])
    stub.remove(f"{given.QUEUES}/default")

    with pytest.raises(ClusterError, match="default"):
        gate.send(connected(stub, tmp_path), prepared(CLUSTER, make_job(preflight="fabric")))

    assert volcano.names == []
