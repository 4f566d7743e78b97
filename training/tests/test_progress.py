"""Progress of a run, as people and `ultrascale status` read it."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
import time
from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from ultrascale.parts.recipes.table import PEAK_TERAFLOPS
from ultrascale_training.objects import LocalObjects
from ultrascale_training.progress import Progress, neuron_peak_of, peak_flops, peak_of

pytestmark = pytest.mark.training


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be changed; in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_one_line_tells_step_loss_speed_share_of_the_peak_and_rate(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    # 4 devices of 1 teraFLOP a second each.
    progress = Progress(None, step=100, steps=1000, flops_per_token=2e9, devices=4, peak_flops=1e12)
    clock[0] += 24.0

    progress.step(120, loss=2.31, learning_rate=3e-4, tokens=24_000)

    assert capsys.readouterr().out == (
        "progress step=120/1000 loss=2.3100 tokens_per_second=1000 step_seconds=1.2 mfu=0.5000 "
        "learning_rate=0.0003\n"
    )


def test_share_of_the_peak_is_left_out_where_the_peak_is_unknown(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(None, step=0, steps=9, flops_per_token=2e9)
    clock[0] += 1.0

    progress.step(1, loss=1.0, learning_rate=1.0, tokens=1)

    assert "mfu" not in capsys.readouterr().out
    assert peak_flops(torch.device("cpu")) is None


def test_a_validation_makes_no_step_look_slow(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(None, step=0, steps=9)
    clock[0] += 1.0
    with progress.aside():
        clock[0] += 60.0
    clock[0] += 1.0

    progress.step(2, loss=1.0, learning_rate=1.0, tokens=8)

    assert "tokens_per_second=4 step_seconds=1 " in capsys.readouterr().out


def test_json_lines_have_the_figures_of_the_line_and_more(
    clock: list[float], tmp_path: Path
) -> None:
    progress = Progress(tmp_path, step=0, steps=9, common={"world": 2})
    clock[0] += 2.0

    progress.step(4, loss=1.5, learning_rate=0.1, tokens=8, gradient_norm=0.25)
    progress.close()

    (line,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    del line["time"]
    assert line == {
        **{"event": "step", "world": 2, "step": 4, "steps": 9, "loss": 1.5},
        **{"tokens_per_second": 4.0, "step_seconds": 0.5, "learning_rate": 0.1},
        "gradient_norm": 0.25,
    }


def test_a_line_that_a_killed_start_has_torn_takes_no_event_with_it(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"event": "start"}\n{"event": "st')

    Progress(tmp_path, step=0, steps=1).event("start", step=4)

    *_, torn, own = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert (torn, json.loads(own)["step"]) == ('{"event": "st', 4)


def test_metrics_of_each_start_outlive_the_pod_in_the_bucket(tmp_path: Path) -> None:
    bucket = LocalObjects(tmp_path / "bucket")
    for step in (1, 2):
        progress = Progress(tmp_path, step=step - 1, steps=9, bucket=bucket)
        progress.step(step, loss=1.5, learning_rate=0.1, tokens=8)
        progress.keep()
        progress.event("done", step=step)
        progress.close()

    lines = [
        (line["event"], line["step"])
        for name in bucket.names("metrics/")
        for line in map(json.loads, (bucket.get(name) or b"").splitlines())
    ]
    assert sorted(lines) == [("done", 1), ("done", 2), ("step", 1), ("step", 2)]
    assert len(bucket.names("tensorboard/events.")) == 2


def test_bucket_that_takes_no_metrics_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("a file")
    progress = Progress(tmp_path, step=0, steps=9, bucket=LocalObjects(tmp_path / "bucket"))
    progress.step(1, loss=1.5, learning_rate=0.1, tokens=8)

    progress.close()

    assert "step" in (tmp_path / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H200", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA B200", 2250),
        ("NVIDIA B300 SXM6 AC", 2250),
        ("NVIDIA GB300", 2500),
        ("NVIDIA GB200", 2500),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
    ],
)
def test_peak_is_found_by_the_name_that_the_driver_gives(name: str, teraflops: int) -> None:
    assert peak_of(name) == teraflops * 1e12


@pytest.mark.parametrize(
    ("instance_type", "cores", "teraflops"),
    [
        ("trn1.32xlarge", None, 95),
        ("trn2.48xlarge", None, 166.75),
        ("trn2u.48xlarge", "1", 83.375),
        ("trn3.48xlarge", None, 167.75),
        ("inf1.xlarge", None, None),
    ],
)
def test_peak_of_a_neuron_device_is_that_of_its_cores(
    instance_type: str, cores: str | None, teraflops: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", cores or "")

    assert neuron_peak_of(instance_type) == (teraflops and teraflops * 1e12)


@pytest.mark.parametrize("name", sorted(PEAK_TERAFLOPS))
def test_plan_and_program_agree_on_the_peak_of_a_device(name: str) -> None:
    """`ultrascale recipes` estimates the time of a step by it, and the program measures the MFU."""
    chip = neuron_peak_of("trn2.48xlarge") or 0
    found = 4 * chip if name == "AWS Trainium2" else peak_of(name)

    assert found == PEAK_TERAFLOPS[name] * 1e12
