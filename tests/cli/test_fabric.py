"""`ultrascale fabric`: nodes of a pool are measured; bad ones are named and cordoned."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import job_manifests as given
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.jobs import job_cluster, make_job
from tests.support.node_checks import NODES, Volcano, devices, fabric
from tests.support.pools import ODCR, POOL, as_text
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import StubApiServer

LOGS = ROOT / "tests" / "data" / "fabric"
GPUS = POOL | {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "cluster.yaml"
    written.write_text(as_text(job_cluster(GPUS, name="trainium-bert")))
    return written


@pytest.fixture
def options(checked: StubApiServer, tmp_path: Path) -> list[Any]:
    return ["--kubeconfig", kubeconfig(tmp_path, checked.url)]


def test_free_nodes_are_measured_and_a_bad_one_is_cordoned(
    checked: StubApiServer, ultrascale: Ultrascale, file: Path, options: list[Any]
) -> None:
    busy = given.pod("other-worker-0", "other", **given.running("node-3"))
    checked.put(f"{given.PODS}/other-worker-0", busy)
    why = "9.5 GB/s, below 353.7"
    volcano = Volcano(checked, [fabric(nodes=3, pods=3, rounds=2, bad={"node-1": why})])

    answer = ultrascale("fabric", file, "train", *options)

    assert answer.returncode == 3, answer.stderr
    assert answer.stdout.splitlines() == [
        "fabric: 3 nodes checked in 2 rounds, 440.5 GB/s or more",
        f"node-1: bad: {why}; cordoned",
    ]
    assert volcano.names == ["check-train-fabric"]
    assert volcano.made[0]["spec"]["minAvailable"] == 3
    assert checked.objects[f"{NODES}/node-1"]["spec"]["unschedulable"] is True


def test_submit_says_rounds_minutes_and_dollars_before_a_check_starts(
    checked: StubApiServer, ultrascale: Ultrascale, file: Path, options: list[Any]
) -> None:
    job = file.parent / "job.yaml"
    job.write_text(yaml.safe_dump(make_job(preflight="fabric")))
    volcano = Volcano(checked, [fabric(bad={"node-1": "no result in time"}), fabric()])

    words = ["--detach", *options]
    answer = ultrascale("submit", file, job, *words)

    assert answer.returncode == 0, answer.stderr
    assert volcano.names == ["tune-fabric", "tune-fabric", "tune"]
    told = [
        "Check of the fabric: nodes in pairs, at most 3 rounds",
        "fabric: checking 2 nodes by job tune-fabric",
        "node-1 is cordoned: fabric: no result in time.",
        "checking again without them, try 2 of 3",
    ]
    places = [answer.stderr.index(line) for line in told]
    assert places == sorted(places)
    assert [answer.stderr.count(line) for line in (told[0], told[2])] == [1, 1]


def test_no_cordon_names_alone(
    checked: StubApiServer, ultrascale: Ultrascale, file: Path, options: list[Any]
) -> None:
    Volcano(checked, [devices(node_1=226)])
    words = ["--check", "device", "--nodes", "2", "--no-cordon", "--json"]
    answer = ultrascale("fabric", file, "train", *words, *options)
    (verdict,) = json.loads(answer.stdout)
    assert (answer.returncode, verdict["check"]) == (3, "device")
    assert list(verdict["bad"]) == ["node-1"]
    assert checked.objects[f"{NODES}/node-1"]["spec"] == {}


def test_a_pool_whose_nodes_are_all_taken_is_said_to_be(
    checked: StubApiServer, ultrascale: Ultrascale, file: Path, options: list[Any]
) -> None:
    for index in range(4):
        checked.update(f"{NODES}/node-{index}", spec={"unschedulable": True})
    answer = ultrascale("fabric", file, "train", *options)
    assert answer.returncode == 1
    assert "pool train has no free nodes: 4 are there" in answer.stderr


JUDGED = {
    "p5": (0, "444.31 GB/s, transport not in the log: passed"),
    "one-gpu-tcp": (3, "2 GB/s, tcp: transport Socket, not EFA"),
    "p4d-efa": (3, "32.71 GB/s, efa: 32.71 GB/s, below 349.6"),
}


@pytest.mark.parametrize("name", JUDGED)
def test_a_log_is_judged_by_the_floor_of_a_pool_without_a_cluster(
    name: str, ultrascale: Ultrascale, file: Path
) -> None:
    status, told = JUDGED[name]
    log = LOGS / f"{name}.log"
    answer = ultrascale("fabric", file, "train", "--log", log)
    assert (answer.returncode, answer.stdout) == (status, f"{log}: {told}\n")


def test_a_pool_larger_than_every_quota_is_checked_beside_the_queues(
    ultrascale: Ultrascale,
) -> None:
    answer = ultrascale("fabric", ROOT / "clusters" / "llm-kueue.yaml", "reserved", "--dry-run")

    job = [*yaml.safe_load_all(answer.stdout)][-1]
    assert (job["kind"], job["spec"]["parallelism"]) == ("Job", 16)
    assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]
    # By it the policies of the queues let Job and pods pass.
    template = job["spec"]["template"]
    for made in (job, template):
        assert made["metadata"]["labels"]["ultrascale.dev/check"] == "fabric"
    assert "at most 45 minutes of 16 nodes, $" in answer.stderr


def test_free_nodes_of_a_pool_that_scales_are_checked_without_a_queueing_engine(
    ultrascale: Ultrascale,
) -> None:
    file = ROOT / "clusters" / "auto-mode.yaml"
    answer = ultrascale("fabric", file, "neuron", "--nodes", "4", "--dry-run")
    assert answer.returncode == 0, answer.stderr
    assert [*yaml.safe_load_all(answer.stdout)][-1]["spec"]["completions"] == 4


WRONG = {
    "no such pool": (("trian",), "no pool 'trian' in the file; did you mean train?"),
    "one node": (("train", "--nodes", "1", "--dry-run"), "use device, or leave it out"),
    "no such log": (("train", "--log", "missing.log"), "missing.log"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_checked_is_answered(
    case: str, ultrascale: Ultrascale, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words, told = WRONG[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, "http://127.0.0.1:1")))
    answer = ultrascale("fabric", file, *words)
    assert answer.returncode != 0
    assert told in answer.stderr
