"""Each family of recipes trains: sharded in each way, stopped, resumed, with another world size."""

import signal
from pathlib import Path

import pytest
import worlds

RESHARDED_TOLERANCE = 1e-4
_TOY = (
    "--activation-checkpoint=none",
    "--training.local_batch_size=2",
    "--metrics.log_freq=1",
    "--lr-scheduler.warmup-steps=1",
    "--seed=3",
)


def _arguments(
    recipe: str, data: Path, output: Path, *, steps: int, **options: object
) -> list[str]:
    given = {"training.steps": steps, "training.seq_len": 64, "checkpoint.interval": 100} | {
        name.replace("__", "."): value for name, value in options.items()
    }
    titan = [f"--{name}={value}" for name, value in given.items()]
    return [f"--recipe={recipe}", f"--data={data}", f"--output-dir={output}", *_TOY, *titan]


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        pytest.param("llama3-toy", {}, id="sharded data parallel"),
        pytest.param(
            "llama3-toy", {"parallelism__tensor_parallel_degree": 2}, id="tensor parallel"
        ),
        pytest.param(
            "qwen3-toy",
            {"parallelism__context_parallel_degree": 2, "training__seq_len": 256},
            id="context parallel",
        ),
        pytest.param(
            "qwen3-moe-toy", {"parallelism__expert_parallel_degree": 2}, id="expert parallel"
        ),
        pytest.param("llama3-toy-lora", {}, id="adapters"),
    ],
)
def test_a_recipe_learns_in_two_processes(
    recipe: str, options: dict[str, object], data: Path, tmp_path: Path
) -> None:
    worlds.run(2, _arguments(recipe, data, tmp_path, steps=3, **options), tmp_path)
    losses = worlds.losses(tmp_path)
    assert losses.keys() == {1, 2, 3}
    assert losses[3] < losses[1]


def test_a_run_that_is_told_to_stop_loses_no_step_and_goes_on_alike(
    data: Path, tmp_path: Path
) -> None:
    whole = _arguments("llama3-toy", data, tmp_path / "whole", steps=5)
    worlds.run(2, whole, tmp_path / "whole")
    parts = _arguments("llama3-toy", data, tmp_path / "parts", steps=5)
    first = worlds.start(2, parts, tmp_path / "parts")
    first.wait_for("starts at step 0")
    first.signal(signal.SIGTERM, ranks=[1])
    assert first.wait() == [75, 75]
    (tmp_path / "parts").joinpath("log-0-0").rename(tmp_path / "first")
    worlds.run(2, parts, tmp_path / "parts", attempt="1")
    assert worlds.losses(tmp_path / "parts") == worlds.losses(tmp_path / "whole")


def test_four_two_and_three_processes_go_on_with_one_another(data: Path, tmp_path: Path) -> None:
    options: dict[str, object] = {
        "training__local_batch_size": 1,
        "training__global_batch_size": 12,
        "training__seq_len": 32,
    }
    whole = _arguments("llama3-toy", data, tmp_path / "whole", steps=6, **options)
    worlds.run(4, whole, tmp_path / "whole")
    parts = _arguments("llama3-toy", data, tmp_path / "parts", steps=6, **options)
    for world in (4, 2, 3):
        arguments = [*parts, "--steps-this-run=2"]
        worlds.run(world, arguments, tmp_path / "parts", attempt=str(world))
    expected, found = worlds.losses(tmp_path / "whole"), worlds.losses(tmp_path / "parts")
    assert found.keys() == expected.keys() == set(range(1, 7))
    furthest = max(abs(found[step] - expected[step]) for step in expected)
    print(f"furthest loss from that of 4 processes: {furthest:.2g}")
    # Weights are drawn by rank on a CPU, so both runs begin with 4. What differs is the order of
    # sums in single precision; other samples are off by a hundredth and more.
    assert furthest < RESHARDED_TOLERANCE


def test_a_killed_run_goes_on_from_its_last_checkpoint(data: Path, tmp_path: Path) -> None:
    arguments = _arguments("qwen3-toy", data, tmp_path, steps=5, checkpoint__interval=1)
    first = worlds.start(2, arguments, tmp_path)
    first.wait_for("progress step=3/5")
    first.signal(signal.SIGKILL, ranks=[1])
    assert first.wait() == [1, -signal.SIGKILL]
    second = worlds.run(2, arguments, tmp_path, attempt="1")
    assert "failed at=" in second.text()
    events = worlds.events(tmp_path)
    resumed = [event["step"] for event in events if event["event"] == "start"][1]
    # The save of the step before is complete when the next one begins.
    assert resumed >= 1
    steps = [event["step"] for event in events if event["event"] == "step"]
    assert steps == [1, 2, 3, *range(resumed + 1, 6)] or steps == [
        *range(1, 5),
        *range(resumed + 1, 6),
    ]
    losses = {(e["step"], e["loss"]) for e in events if e["event"] == "step"}
    assert len(losses) == 5, "a step that was computed again has another loss"


def test_a_node_that_reads_slowly_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_RANK", "1")
    arguments = _arguments("llama3-toy", data, tmp_path, steps=35, training__seq_len=32)
    found = worlds.run(2, arguments, tmp_path)
    told = [line for line in found.text().splitlines() if line.startswith("straggler step=")]
    assert len(told) == 1
    assert " rank=1 seconds=0.0" in told[0]


def test_adapters_are_evaluated_and_exported_with_the_weights_that_they_adapt(
    data: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    train = _arguments("llama3-toy", data, whole, steps=2)
    worlds.run(2, [*train, f"--export={tmp_path / 'hf'}"], whole)
    assert list((tmp_path / "hf").glob("*.safetensors"))
    loss = _evaluated("llama3-toy-evaluate", data, tmp_path / "hf", tmp_path / "first")
    adapted = tmp_path / "adapted"
    tune = _arguments("llama3-toy-lora", data, adapted, steps=3)
    merged = tmp_path / "merged"
    worlds.run(2, [*tune, f"--load={tmp_path / 'hf'}", f"--export={merged}"], adapted)
    assert worlds.losses(adapted)[1] == pytest.approx(loss, abs=0.5)
    assert _evaluated("llama3-toy-evaluate", data, merged, tmp_path / "second") < loss


def _evaluated(recipe: str, data: Path, weights: Path, output: Path) -> float:
    arguments = _arguments(recipe, data, output, steps=1)
    worlds.run(2, [*arguments, f"--load={weights}"], output)
    (event,) = [each for each in worlds.events(output) if each["event"] == "validation"]
    return event["loss"]


def test_validation_beside_the_training_changes_nothing(data: Path, tmp_path: Path) -> None:
    plain = _arguments("llama3-toy", data, tmp_path / "plain", steps=3)
    worlds.run(2, plain, tmp_path / "plain")
    validated = _arguments(
        "llama3-toy",
        data,
        tmp_path / "validated",
        steps=3,
        validator__freq=2,
        validator__steps=2,
    )
    worlds.run(2, [*validated, f"--validation-data={data}"], tmp_path / "validated")
    events = worlds.events(tmp_path / "validated")
    assert [each["step"] for each in events if each["event"] == "validation"] == [1, 2]
    assert worlds.losses(tmp_path / "validated") == worlds.losses(tmp_path / "plain")
