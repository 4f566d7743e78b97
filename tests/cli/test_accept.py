"""`ultrascale accept`, as its user has it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.accept_runs import FILE, STACK, apply, write_assembly
from tests.support.account import fake_account
from tests.support.command_line import Ultrascale
from tests.support.stub_api_http import ARN, kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale import guard, plan
from ultrascale.accept import deployed
from ultrascale.accept.model import Check, Run
from ultrascale.account import Account
from ultrascale.findings import Finding

FREE = "kind-llm"
OTHER = {"ultrascale.dev/acceptance": "r8"}
NAMESPACE: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as server:
        for version in ("admissionregistration.k8s.io", "rbac.authorization.k8s.io"):
            server.groups.add(f"/apis/{version}/v1")
        apply(server, "/api/v1/namespaces/training", NAMESPACE)
        yield server


@pytest.fixture(autouse=True)
def synthesized(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is an assembly of one object."""

    def synthesize(_: Path, folder: Path) -> Any:
        write_assembly(folder, [NAMESPACE])
        return guard.read_assembly(folder)

    monkeypatch.setattr(guard, "synthesize", synthesize)


def config(folder: Path, stub: StubApiServer, cluster: str = FREE) -> str:
    row = {"name": "namespaces", "kind": "Namespace", "namespaced": False}
    stub.resources["/api/v1"] = [row]
    return f"--kubeconfig={kubeconfig(folder, stub.url, cluster=cluster)}"


def test_any_api_server_passes_without_aws(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub))
    assert shown.returncode == 0, shown.stderr
    assert "AWS is not asked" in shown.stderr
    assert "1 objects are as the file has them" in shown.stdout


def test_a_difference_is_status_3_also_as_json(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    stub.edit("/api/v1/namespaces/training", "kubectl-edit", metadata={"labels": {"a": "b"}})
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub), "--json")
    document = json.loads(shown.stdout)
    assert (shown.returncode, document["status"], document["counts"]["differs"]) == (3, 3, 1)
    (wrong,) = (each for each in document["outcomes"] if each["finding"]["state"] == "differs")
    assert "labels.a is b by kubectl-edit" in wrong["finding"]["evidence"]


def test_another_cluster_is_refused_before_it_is_asked(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub, ARN))
    assert shown.returncode == 1
    assert "trainium-bert" in shown.stderr
    assert stub.requests == []


@pytest.mark.parametrize("anyway", [False, True])
def test_another_file_than_the_deployed_one_is_told(
    ultrascale: Ultrascale,
    stub: StubApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    anyway: bool,
) -> None:
    def differing(*_: object) -> str:
        return STACK

    def owner(*_: object) -> Account:
        return fake_account()[0]

    monkeypatch.setattr(deployed, "differing_stacks", differing)
    monkeypatch.setattr("ultrascale.cli.ask.owner", owner)
    monkeypatch.setattr("ultrascale.accept.levels._CORE", ())
    options = ["--anyway"] if anyway else []
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub), "--profile=p", *options)
    assert shown.returncode == (0 if anyway else 1), shown.stderr
    assert f"not those of the file: {STACK}" in shown.stderr
    assert ("add --anyway" in shown.stderr) is not anyway


def test_measured_sizes_are_in_the_file_where_that_is_asked_for(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(before := FILE.read_text())
    (type,) = plan.load(FILE).system_pools[0].instance_types
    value = {"millicpu": 7910, "memory_mib": 30000}

    def measure(run: Run) -> Iterator[Finding]:
        row = {"fact": "allocatable", "of": type, "value": value, "seen": "2026-01-01"}
        run.kept.facts.append(row)
        yield Finding(check="c", subject="it", state="pass", evidence="seen")

    check = Check(level="objects", name="c", subject="", title="c", run=measure)

    def checks(*_: object, **__: object) -> list[Check]:
        return [check]

    monkeypatch.setattr("ultrascale.accept.levels.checks", checks)
    ultrascale("accept", str(path), config(tmp_path, stub))
    assert path.read_text() == before
    shown = ultrascale("accept", str(path), config(tmp_path, stub), "--record")
    assert f"recorded {{fact: allocatable, of: {type}" in shown.stderr
    assert path.read_text().startswith(before)
    assert plan.load(path).system_pools[0].recorded.allocatable[type].memory_mib == 30000


def test_a_pool_that_the_file_lacks_is_refused(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub), "--pool=none")
    assert shown.returncode == 1
    assert "--pool" in shown.stderr


def test_levels_with_nodes_need_a_budget_and_send_nothing_without_one(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    words = ["accept", str(FILE), config(tmp_path, stub), "--level=storage", "--pool=reserved"]
    shown = ultrascale(*words)
    assert shown.returncode == 1
    assert "storage: job reserved: 2 of reserved for at most 52 minutes" in shown.stderr
    assert "--budget: missing; the checks cost $" in shown.stderr
    assert ultrascale(*words, "--budget=1").returncode == 1
    # Without a terminal it asks nobody.
    assert "add --yes" in ultrascale(*words, "--budget=1000").stderr
    assert stub.asked("POST") == []


def test_a_run_that_was_killed_is_finished_by_its_id(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    labels = {"ultrascale.dev/job": "accept-r9", "ultrascale.dev/acceptance": "r9"}
    jobs = "/apis/batch/v1/namespaces/training/jobs"
    kept = dict(stub.objects)
    for path in (f"{jobs}/accept-r9", "/api/v1/namespaces/training/configmaps/accept-r9"):
        stub.put(path, {"metadata": {"labels": labels}, "data": {"pool": ""}})
    stub.put(f"{jobs}/other", {"metadata": {"labels": {**labels, **OTHER}}})
    shown = ultrascale("accept", str(FILE), config(tmp_path, stub), "--clean=r9")
    assert shown.returncode == 0, shown.stderr
    assert "nothing is left of run r9" in shown.stdout
    assert stub.objects.keys() - kept.keys() == {f"{jobs}/other"}
