"""Lines that our training programs print, by the code that writes them and the code that reads."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import StubApiServer
from ultrascale.catalog import training_operator
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.status import job_status
from ultrascale.jobs.training_report import TrainingReport, report_of
from ultrascale_training.errors import VoteLost
from ultrascale_training.failures import FailureLog
from ultrascale_training.progress import Progress


def reported(stub: StubApiServer, folder: Path, lines: Sequence[str]) -> TrainingReport:
    """Return what `status` makes of a job whose first pod has written ``lines``."""
    stub.put(f"{given.VOLCANO_JOBS}/bert", given.volcano_job(pods=1))
    stub.put(f"{given.PODS}/bert-worker-0", given.pod("bert-worker-0", **given.running()))
    stamped = (f"2026-11-23T12:00:00.000000000Z {line}" for line in lines)
    stub.write(f"{given.PODS}/bert-worker-0", *stamped, ends=True)
    cluster = Cluster.connected(kubeconfig(folder, stub.url))
    return report_of(cluster, job_status(cluster, "training", "bert"))


def fails(error: Exception, output: Path, monkeypatch: pytest.MonkeyPatch, **place: object) -> None:
    """Keep an error as a worker of that place does."""
    for name, value in place.items():
        monkeypatch.setenv(name, str(value))
    FailureLog(str(output), message=output / "no-such-file").keep(error)


def test_status_shows_what_the_program_prints_of_its_progress(
    stub: StubApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(None, step=100, steps=1000, flops_per_token=1e9, peak_flops=1e12)
    progress.step(120, loss=2.31, learning_rate=3e-4, tokens=8192)
    found = reported(stub, tmp_path, capsys.readouterr().out.splitlines()).progress
    of_step = (found["step"], found["loss"], found["learning_rate"])
    assert of_step == ("120/1000", "2.3100", "0.0003")
    assert float(found["tokens_per_second"]) > 0
    assert {"step_seconds", "mfu"} <= found.keys()


def test_hyperpods_operator_knows_the_line_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(None, step=0, steps=9)
    progress.step(1, loss=float("nan"), learning_rate=0.0, tokens=1)

    assert re.match(training_operator.PROGRESS_PATTERN, capsys.readouterr().out)


def test_status_shows_what_ended_workers_whose_pods_are_gone(
    stub: StubApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "output"
    place = {"ULTRASCALE_NODE": "ip-10-0-0-7", "ULTRASCALE_POD": "bert-worker-3"}
    fails(RuntimeError('no "such"\nfile\\n'), output, monkeypatch, RANK=24, **place)
    lost = VoteLost("worker 32 on node ip-10-0-0-9 has gone", rank=32, node="ip-10-0-0-9")
    fails(lost, output, monkeypatch, RANK=25)
    monkeypatch.setenv("RANK", "0")
    FailureLog(str(output)).tell_earlier()

    gone, failed = reported(stub, tmp_path, capsys.readouterr().out.splitlines()).failures

    assert (gone["node"], gone["rank"]) == ("ip-10-0-0-9", "32")
    assert gone["error"] == "worker 32 on node ip-10-0-0-9 has gone"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", failed["at"])
    assert (failed["node"], failed["pod"], failed["rank"]) == ("ip-10-0-0-7", "bert-worker-3", "24")
    assert failed["error"] == r'RuntimeError: no "such" file\n'
