"""`ultrascale.submit`: jobs from notebooks and backends."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ultrascale
from tests.support import job_manifests as given
from tests.support.folders import ROOT
from tests.support.jobs import make_job
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.errors import ClusterError

CLUSTER = ROOT / "clusters" / "trainium-bert.yaml"
JOB = f"{given.VOLCANO_JOBS}/bert"
TEMPLATE: dict[str, Any] = make_job(
    name="bert", pool="trn1", image="bert-pretrain:v1", env={"A": "1"}
)


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    given.furnish(server)
    server.put(f"{given.QUEUES}/test", {"kind": "Queue", "status": {"state": "Open"}})
    with serve(server):
        yield server


def run(stub: StubApiServer, *, phase: str = "Running") -> None:
    """Let a job's pods run, and the job be in ``phase``."""
    for index in range(2):
        name = f"bert-worker-{index}"
        fields = given.pod(name, index=index, task="worker", **given.running())
        stub.put(f"{given.PODS}/{name}", fields)
    stub.update(JOB, status={"state": {"phase": phase}, "running": 2})


def test_a_job_is_submitted_waited_for_and_cancelled(stub: StubApiServer, tmp_path: Path) -> None:
    job = ultrascale.submit(
        CLUSTER, TEMPLATE, env={"B": "2"}, kubeconfig=kubeconfig(tmp_path, stub.url)
    )
    run(stub)

    progress = job.wait(timeout_seconds=20)

    assert (job.name, job.namespace) == ("bert", "training")
    assert progress.pods["running"] == 2
    assert job.status().counts["running"] == 2
    assert "Job bert" in job.cancel()
    assert stub.find(JOB) is None
    with pytest.raises(ClusterError, match="no job bert"):
        job.status()


def test_variables_are_added_to_those_of_the_job() -> None:
    changes = {"env": {"C": "3"}}
    job = ultrascale.submit(
        CLUSTER, TEMPLATE, env={"B": "2"}, changes=changes, dry_run=True, account="111122223333"
    )
    found: Any = next(each for each in job.objects if each["kind"] == "Job")
    (container,) = found["spec"]["tasks"][0]["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (env["A"], env["B"], env["C"]) == ("1", "2", "3")
    with pytest.raises(ClusterError, match="was not submitted"):
        job.status()


def test_a_job_that_fails_is_an_error_to_who_waits_for_its_end(
    stub: StubApiServer, tmp_path: Path
) -> None:
    job = ultrascale.submit(CLUSTER, TEMPLATE, kubeconfig=kubeconfig(tmp_path, stub.url))
    run(stub, phase="Failed")

    with pytest.raises(ClusterError, match=r"job bert failed.* `ultrascale logs bert -n training`"):
        job.wait(until_ended=True, timeout_seconds=20)


_OURS = {"pool": "trn1", "image": "bert-pretrain:v1"}
SERVICE = {"name": "chat", "kind": "service", "allow_from": ["training"], **_OURS}
BATCH = {"name": "data", "kind": "batch", "command": ["true"], **_OURS}


@pytest.mark.parametrize("gang", [True, False])
@pytest.mark.parametrize("template", [TEMPLATE, SERVICE, BATCH])
def test_whatever_is_rendered_can_be_sent_and_cancelled(
    stub: StubApiServer, tmp_path: Path, template: dict[str, Any], gang: bool
) -> None:
    file = tmp_path / "cluster.yaml"
    document = yaml.safe_load(CLUSTER.read_text())
    if not gang:
        document["scheduling"] = {"queueing": "none"}
    file.write_text(yaml.safe_dump(document))
    before = stub.paths()

    job = ultrascale.submit(file, template, kubeconfig=kubeconfig(tmp_path, stub.url))

    assert len(stub.paths() - before) == len(job.objects)
    job.cancel()
    assert stub.paths() == before


def test_who_only_plans_does_not_load_what_talks_to_clusters() -> None:
    program = (
        "import sys, ultrascale, ultrascale.cli\n"
        "heavy = {'kubernetes', 'urllib3', 'ultrascale.cluster_api.server'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert callable(ultrascale.submit)\n"
        "assert 'kubernetes' not in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
