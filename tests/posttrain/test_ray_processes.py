"""A head, a worker and an entry point of a rendered job run in a real Ray, on one machine.

The commands are those that KubeRay 1.7.0 makes of the rendered job, as its code writes them:
https://github.com/ray-project/kuberay/tree/v1.7.0/ray-operator/controllers/ray/common
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import Kind
from ultrascale.jobs import prepare
from ultrascale.jobs.workloads import read_workload

ROOT = Path(__file__).parents[2]
RAY_JOB = Kind("ray.io/v1", "RayJob", "rayjobs")
DASHBOARD = "http://127.0.0.1:8265"
TOKEN = secrets.token_hex(16)
# Two actors of all GPUs each find the two pods; the words would change in a careless shell.
PROGRAM = """
import sys, ray
ray.init()
@ray.remote(num_gpus=8)
class Actor:
    def node(self): return ray.get_runtime_context().get_node_id()
nodes = ray.get([actor.node.remote() for actor in [Actor.remote(), Actor.remote()]])
print("nodes", len(set(nodes)), sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""
WORDS = ["a b; $HOME", '{"x": 1}', "it's"]
Thing = dict[str, Any]


def rendered(status: int) -> Thing:
    roles = {"workers": {"pool": "reserved", "nodes": 1}}
    changes = {"command": ["python3", "-c", PROGRAM], "args": [str(status), *WORDS], "roles": roles}
    *_, job = prepare(ROOT / "clusters" / "ray.yaml", "align", changes=changes).objects
    return json.loads(json.dumps(job))


def expanded(text: str) -> str:
    """Return a word of a container as Kubernetes starts it."""
    return text.replace("$$", "$")


def environment(pod: Thing) -> dict[str, str]:
    """Return the variables of a pod with those that KubeRay adds, in an empty home."""
    (container,) = pod["spec"]["containers"]
    own = {each["name"]: expanded(each["value"]) for each in container["env"] if "value" in each}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ray = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_ADDRESS": "127.0.0.1:6379"}
    return {"PATH": path, "HOME": "/tmp", **own, **ray}


def start_command(pod: Thing, *options: str, agent: int, metrics: int) -> str:
    """Return `generateRayStartCommand` of a pod, with ports that pods of one host can share."""
    (container,) = pod["spec"]["containers"]
    resources = container["resources"]
    parameters = {
        "block": None,
        "dashboard-agent-listen-port": agent,
        "memory": int(amount(resources["limits"]["memory"])),
        "metrics-export-port": metrics,
        "num-cpus": ceil(amount(resources["requests"]["cpu"])),
        "num-gpus": resources["limits"]["nvidia.com/gpu"],
    }
    words = [
        f"--{key}" if value is None else f"--{key}={value}" for key, value in parameters.items()
    ]
    files = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}"
    return f"{files}; ray start {' '.join([*options, *words])}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Thing]:
    """Start a head and a worker, and yield the head's template."""
    folder = tmp_path_factory.mktemp("ray")
    spec = rendered(0)["spec"]["rayClusterSpec"]
    head, worker = (each["template"] for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"]))
    of_head = start_command(head, "--head", "--dashboard-host=0.0.0.0", agent=52365, metrics=8080)
    of_worker = start_command(worker, "--address=127.0.0.1:6379", agent=52366, metrics=8081)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, command, pod in (("head", of_head, head), ("worker", of_worker, worker)):
            log = (folder / name).open("wb")
            shell = ["/bin/bash", "-c", "--", command]
            started.append(
                subprocess.Popen(
                    shell, env=environment(pod), stdout=log, stderr=log, process_group=0
                )
            )
            wait_for("/api/version" if name == "head" else "/nodes?view=summary", name)
        yield head
    finally:
        for process in started:
            os.killpg(process.pid, 15)
        for process in started:
            process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def ask(path: str, token: str = TOKEN) -> Any:
    request = urllib.request.Request(
        f"{DASHBOARD}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def wait_for(path: str, name: str) -> None:
    for _ in range(180):
        try:
            found = ask(path)
        except (OSError, ValueError):
            found = None
        if found and (name == "head" or len(found["data"]["summary"]) == 2):
            return
        time.sleep(1)
    raise AssertionError(f"{name} did not come up")


def submitted(job: Thing, head: Thing, name: str) -> subprocess.CompletedProcess[str]:
    """Run the container that sends the entry point, as `BuildJobSubmitCommand` writes it."""
    entry = job["spec"]["entrypoint"].strip()
    words = ["ray", "job", "submit", "--address", DASHBOARD, "--submission-id", name, "--", entry]
    shell = ["/bin/bash", "-ce", "--", expanded(" ".join([*words, ";"]))]
    env = environment(head) | {"PYTHONUNBUFFERED": "1"}
    return subprocess.run(shell, env=env, capture_output=True, text=True, timeout=240, check=False)


def test_the_entry_point_gets_all_pods_and_its_words_as_they_were_written(cluster: Thing) -> None:
    done = submitted(rendered(0), cluster, "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"nodes 2 {['0', *WORDS]}" in done.stdout


def test_a_failure_reaches_the_status_with_its_last_lines(cluster: Thing) -> None:
    job = rendered(3)
    done = submitted(job, cluster, "bad")
    # Ray's own status hides that of the program, so Kubernetes cannot tell a mistake.
    assert done.returncode == 1
    (info,) = (each for each in ask("/api/jobs/") if each["submission_id"] == "bad")
    assert info["status"] == "FAILED"
    # As the operator copies it: rayjob_controller.go
    status = {"jobStatus": info["status"], "jobDeploymentStatus": "Failed", "reason": "AppFailed"}
    state = read_workload(RAY_JOB, job | {"status": status | {"message": info["message"]}})
    assert state.result == "failed"
    assert "exit code 3" in state.reason
    assert "nodes 2" in state.reason


@pytest.mark.parametrize("token", ["", "0" * 32])
def test_nobody_without_the_token_runs_code(cluster: Thing, token: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask("/api/jobs/", token)
    assert refused.value.code in (401, 403)
