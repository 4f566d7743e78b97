"""Each family of recipes trains: sharded in each way, killed, resumed, with another world size."""

import signal
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
import worlds
from toys import arguments, events, losses, starts

# docs/recipes.md states it.
RESHARDED_TOLERANCE = 1e-5


def after_a_save(output: Path) -> Callable[[], bool]:
    """Return a condition: some step of the run is done that its newest checkpoint lacks."""

    def reached() -> bool:
        saved = [each["step"] for each in events(output, "checkpoint")]
        return bool(saved) and max(losses(output), default=0) > max(saved)

    return reached


def twice(output: Path) -> dict[int, set[float]]:
    """Return the losses of each step that was computed more than once."""
    steps = sorted((each["step"], each["loss"]) for each in events(output, "step"))
    groups = {step: [loss for _, loss in each] for step, each in groupby(steps, lambda one: one[0])}
    return {step: set(found) for step, found in groups.items() if len(found) > 1}


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
        pytest.param(
            "llama3-toy", {"parallelism__pipeline_parallel_degree": 2}, id="pipeline parallel"
        ),
    ],
)
def test_a_killed_run_of_two_processes_goes_on_from_its_last_checkpoint(
    recipe: str, options: dict[str, object], data: Path, tmp_path: Path
) -> None:
    given = arguments(recipe, data, tmp_path, steps=40, checkpoint__interval=4, **options)
    first = worlds.start(2, given, tmp_path)
    first.wait_until(after_a_save(tmp_path))
    first.signal(signal.SIGKILL, ranks=[1])
    assert first.wait() == [1, -signal.SIGKILL]

    second = worlds.run(2, [*given, "--steps-this-run=4"], tmp_path, attempt="1")

    assert "failed at=" in second.text()
    resumed = starts(tmp_path)[1]
    assert resumed >= 4
    again = twice(tmp_path)
    assert again, "no step was computed twice"
    assert all(len(found) == 1 for found in again.values()), again
    found = losses(tmp_path)
    assert [*found] == [*range(1, resumed + 5)]
    assert found[resumed + 4] < found[1]


def test_a_run_that_is_told_to_stop_loses_no_step_and_goes_on_alike(
    data: Path, tmp_path: Path
) -> None:
    whole = arguments("llama3-toy", data, tmp_path / "whole", steps=5)
    worlds.run(2, whole, tmp_path / "whole")
    parts = arguments("llama3-toy", data, tmp_path / "parts", steps=5)
    first = worlds.start(2, parts, tmp_path / "parts")
    first.wait_for("starts at step 0")
    first.signal(signal.SIGTERM, ranks=[1])
    assert first.wait() == [75, 75]
    worlds.run(2, parts, tmp_path / "parts", attempt="1")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert twice(tmp_path / "parts") == {}


def test_four_two_and_three_processes_go_on_with_one_another(data: Path, tmp_path: Path) -> None:
    options: dict[str, object] = {
        "training__local_batch_size": 1,
        "training__global_batch_size": 12,
        "training__seq_len": 32,
        "checkpoint__interval": 2,
    }
    steps = 9
    whole, output = tmp_path / "whole", tmp_path / "parts"
    worlds.run(4, arguments("llama3-toy", data, whole, steps=steps, **options), whole)
    parts = arguments("llama3-toy", data, output, steps=steps, **options)

    killed = worlds.start(4, parts, output)
    killed.wait_until(after_a_save(output))
    killed.signal(signal.SIGKILL)
    killed.wait()
    told = worlds.start(2, parts, output, attempt="two")
    told.wait_for("starts at step")
    told.signal(signal.SIGTERM, ranks=[0])
    assert told.wait() == [75, 75]
    worlds.run(3, parts, output, attempt="three")

    assert [each["world"] for each in events(output, "start")] == [4, 2, 3]
    expected, found = losses(whole), losses(output)
    assert found.keys() == expected.keys() == set(range(1, steps + 1))
    furthest = max(abs(found[step] - expected[step]) for step in expected)
    print(f"furthest loss from that of 4 processes: {furthest:.2g}")
    # Weights are drawn by rank on a CPU, so both runs begin with 4. What differs is the order of
    # sums in single precision; other samples are off by a hundredth and more.
    assert furthest < RESHARDED_TOLERANCE


def test_validation_beside_the_training_changes_nothing(data: Path, tmp_path: Path) -> None:
    plain = arguments("llama3-toy", data, tmp_path / "plain", steps=3)
    worlds.run(2, plain, tmp_path / "plain")
    options: dict[str, object] = {"validator__freq": 2, "validator__steps": 2}
    validated = arguments("llama3-toy", data, tmp_path / "validated", steps=3, **options)
    worlds.run(2, [*validated, f"--validation-data={data}"], tmp_path / "validated")
    found = events(tmp_path / "validated", "validation")
    assert [each["step"] for each in found] == [1, 2]
    assert losses(tmp_path / "validated") == losses(tmp_path / "plain")


def test_a_node_that_reads_slowly_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_RANK", "1")
    given = arguments("llama3-toy", data, tmp_path, steps=35, training__seq_len=32)
    found = worlds.run(2, given, tmp_path)
    told = [line for line in found.text().splitlines() if line.startswith("straggler step=")]
    assert len(told) == 1
    assert " rank=1 seconds=" in told[0]


def test_a_compiled_run_learns_what_another_does(data: Path, tmp_path: Path) -> None:
    """Recipes compile by default."""
    found: list[dict[int, float]] = []
    for name, more in (("eager", []), ("compiled", ["--compile.enable"])):
        output = tmp_path / name
        given = arguments("llama3-toy", data, output, steps=3)
        worlds.run(1, [*given, *more], output)
        found.append(losses(output))

    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_float8_without_its_library_ends_the_run_in_a_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image of before lacks it, and each restart would be paid for."""
    monkeypatch.setattr("ultrascale_training.titan.configuration.find_spec", lambda _: None)
    given = arguments("llama3-toy", data, tmp_path, steps=3)
    ended = worlds.fail(1, [*given, "--matmul=float8"], tmp_path)

    assert ended.statuses == [2]
    assert "--matmul: float8 needs torchao" in ended.text()
