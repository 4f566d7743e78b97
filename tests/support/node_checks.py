"""A cluster whose nodes are checked: Volcano runs the checks, which print verdicts."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, StubApiServer
from ultrascale.parts.fabric.agent import VERDICT
from ultrascale.parts.fabric.facts import DEVICE_LINE

NODES = "/api/v1/nodes"
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
        if not name.endswith(("-fabric", "-device")):
            return
        (task,) = found["spec"]["tasks"]
        lines = next(self.logs)
        for index in range(task["replicas"]):
            pod = f"{given.PODS}/{name}-worker-{index}"
            line = lines[index] if len(lines) > index else ""
            ended = {"exitCode": 0, "message": line if line.startswith(DEVICE_LINE) else ""}
            containers = [{"name": "worker", "state": {"terminated": ended}}]
            state = {
                "spec": {"nodeName": f"node-{index}"},
                "status": {"phase": "Succeeded", "containerStatuses": containers},
            }
            fields = given.pod(f"{name}-worker-{index}", name, index=index, task="worker", **state)
            owners = [{"kind": "Job", "name": name, "uid": found["metadata"]["uid"]}]
            fields["metadata"]["ownerReferences"] = owners
            self.stub.put(pod, fields)
            self.stub.write(pod, f"2026-11-21T12:00:00.000000000Z {line}", ends=True)
        ended = {"succeeded": 2} if self.phase == "Completed" else {"running": task["replicas"]}
        self.stub.update(path, status={"state": {"phase": self.phase}, **ended})

    @property
    def names(self) -> list[str]:
        return [found["metadata"]["name"] for found in self.made]


@pytest.fixture
def checked() -> Iterator[StubApiServer]:
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


def fabric(**changes: Any) -> list[str]:
    return [VERDICT + json.dumps(PASSED | changes)]


def devices(**failed: int) -> list[str]:
    return [
        DEVICE_LINE
        + json.dumps({"node": node, "status": failed.get(node.replace("-", "_"), 0)})
        + "\nMemory: Fail"
        for node in ("node-0", "node-1")
    ]
