"""`torchx run`, `status`, `list`, `log` and `cancel` do what our own commands do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.runner import Runner
from torchx.schedulers import get_scheduler_factories
from torchx.schedulers.api import Stream
from torchx.specs import AppState

from tests.support import job_manifests as given
from tests.support import torchx_apps as apps
from tests.support.stub_api_http import ARN, kubeconfig, serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale_torchx.errors import AppError

HANDLE = "ultrascale://torchx/training:tune"
JOB = f"{given.VOLCANO_JOBS}/tune"


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as server:
        given.furnish(server)
        server.put(f"{given.QUEUES}/test", {"kind": "Queue", "status": {"state": "Open"}})
        yield server


@pytest.fixture
def access(stub: StubApiServer, tmp_path: Path) -> Path:
    return kubeconfig(tmp_path, stub.url)


@pytest.fixture
def runner(tmp_path: Path, access: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A runner whose .torchxconfig says how the cluster is reached."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    stated = f"[ultrascale]\ncluster = {apps.CLUSTER}\nkubeconfig = {access}\n"
    (tmp_path / ".torchxconfig").write_text(stated)
    monkeypatch.setenv("TORCHXCONFIG", str(tmp_path / ".torchxconfig"))
    return Runner("torchx", get_scheduler_factories())


def launch(runner: Runner, access: Path, **options: str) -> str:
    stated = {"cluster": str(apps.CLUSTER), "queue": "test", "kubeconfig": str(access)}
    return runner.run(apps.make_app(), "ultrascale", {**stated, **options})


def phase(stub: StubApiServer, phase: str) -> None:
    running = 2 if phase == "Running" else 0
    stub.update(JOB, status={"state": {"phase": phase}, "minAvailable": 2, "running": running})


def test_a_run_sends_exactly_what_its_dry_run_printed(
    runner: Runner, access: Path, stub: StubApiServer
) -> None:
    options = {"cluster": str(apps.CLUSTER), "queue": "test"}
    planned = cast("Any", runner.dryrun(apps.make_app(), "ultrascale", options))

    assert launch(runner, access) == HANDLE

    sent = [each.body for each in stub.asked("POST") if not each.dry_run]
    assert sent == [*planned.request.manifests.objects]


def test_a_run_that_the_cluster_cannot_hold_sends_nothing(
    runner: Runner, access: Path, stub: StubApiServer
) -> None:
    stub.remove(f"{given.CLAIMS}/fsx-claim")
    before = stub.paths()

    with pytest.raises(AppError, match="fsx-claim"):
        launch(runner, access)
    assert stub.paths() == before


def test_a_second_run_does_not_start_a_second_job(
    runner: Runner, access: Path, stub: StubApiServer
) -> None:
    launch(runner, access)

    with pytest.raises(AppError, match="tune"):
        launch(runner, access)
    assert [each.path for each in stub.asked("POST") if not each.dry_run] == [given.VOLCANO_JOBS]


def test_a_run_against_another_cluster_than_the_files_is_refused(
    runner: Runner, stub: StubApiServer, tmp_path: Path
) -> None:
    other = ARN.replace("trainium-bert", "production")
    access = kubeconfig(tmp_path, stub.url, cluster=other)

    with pytest.raises(AppError, match="current context is production in us-west-2"):
        launch(runner, access)
    assert stub.asked("POST") == []


def test_a_job_is_asked_after_where_it_was_sent(
    access: Path, stub: StubApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHXCONFIG", "")
    runner = Runner("torchx", get_scheduler_factories())

    handle = launch(runner, access)

    status = runner.status(handle)
    assert status is not None
    assert status.state == AppState.PENDING


STATES = {
    "Pending": AppState.PENDING,
    "Running": AppState.RUNNING,
    "Restarting": AppState.PENDING,
    "Completed": AppState.SUCCEEDED,
    "Failed": AppState.FAILED,
    "Aborted": AppState.CANCELLED,
}


@pytest.mark.parametrize(("volcano", "state"), STATES.items())
def test_a_job_is_as_far_as_volcano_says(
    runner: Runner, access: Path, stub: StubApiServer, volcano: str, state: AppState
) -> None:
    launch(runner, access)
    phase(stub, volcano)

    status = runner.status(HANDLE)
    assert status is not None
    assert status.state == state
    assert [(each.app_id, each.state) for each in runner.list("ultrascale")] == [
        ("training:tune", state)
    ]


def pods(stub: StubApiServer) -> None:
    for index in range(2):
        name = f"tune-trainer-{index}"
        running = given.running(f"node-{index}")
        running["spec"]["containers"] = [{"name": "trainer"}]
        pod = given.pod(name, "tune", index=index, task="trainer", **running)
        stub.put(f"{given.PODS}/{name}", pod)
        stub.write(f"{given.PODS}/{name}", f"2026-11-21T12:00:0{index}Z loss {index}", ends=True)


def test_each_pod_is_a_replica_on_its_node(
    runner: Runner, access: Path, stub: StubApiServer
) -> None:
    launch(runner, access)
    pods(stub)

    status = runner.status(HANDLE)
    assert status is not None
    (role,) = status.roles
    assert role.role == "trainer"
    assert [(each.id, each.hostname, each.state) for each in role.replicas] == [
        (0, "node-0", AppState.RUNNING),
        (1, "node-1", AppState.RUNNING),
    ]


def test_the_log_of_each_pod_is_read(runner: Runner, access: Path, stub: StubApiServer) -> None:
    launch(runner, access)
    pods(stub)

    assert [*runner.log_lines(HANDLE, "trainer", 1)] == ["loss 1\n"]
    assert [*runner.log_lines(HANDLE, "trainer", 0, regex="nothing")] == []


def test_standard_error_alone_is_not_to_be_had(runner: Runner, access: Path) -> None:
    launch(runner, access)

    with pytest.raises(ValueError, match="Kubernetes keeps one log of both streams"):
        runner.log_lines(HANDLE, "trainer", 0, streams=Stream.STDERR)


def test_a_cancelled_job_is_gone_and_its_claim_is_not(
    runner: Runner, access: Path, stub: StubApiServer
) -> None:
    launch(runner, access)

    runner.cancel(HANDLE)

    assert stub.find(JOB) is None
    assert stub.find(f"{given.CLAIMS}/fsx-claim") is not None
    assert runner.status(HANDLE) is None


def test_a_job_that_nobody_sent_is_none(runner: Runner) -> None:
    assert runner.status("ultrascale://torchx/training:other") is None
    assert runner.status("ultrascale://torchx/other") is None


def test_an_unreachable_cluster_is_no_missing_job(runner: Runner, stub: StubApiServer) -> None:
    stub.refuse("GET", "/jobs$", Refusal(403, "jobs.batch.volcano.sh is forbidden"))

    with pytest.raises(AppError, match="forbidden"):
        runner.status(HANDLE)
