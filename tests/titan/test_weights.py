"""Weights go to Hugging Face's files and come back, adapters with the weights that they adapt."""

import json
from pathlib import Path

import pytest
import worlds
from safetensors import safe_open
from toys import arguments, events, losses


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of a run of two steps, beside ``hf`` with its weights."""
    folder = tmp_path_factory.mktemp("trained")
    train = arguments("llama3-toy", data, folder / "run", steps=2)
    worlds.run(2, [*train, f"--export={folder / 'hf'}"], folder / "run")
    (folder / "hf" / "config.json").write_text('{"of": "the model"}')
    return folder / "run"


def evaluated(recipe: str, data: Path, output: Path, *given: str) -> tuple[int, float]:
    worlds.run(1, [*arguments(recipe, data, output, steps=1), *given], output, attempt="e")
    (event,) = events(output, "validation")
    return event["step"], event["loss"]


def test_a_checkpoint_and_its_export_are_the_same_model(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    where, again = trained.parent / "hf", tmp_path / "again"
    checkpoint = trained / "checkpoints" / "step-00000002"
    saved = evaluated(
        "llama3-toy-evaluate", data, tmp_path / "a", f"--load={checkpoint}", f"--export={again}"
    )
    newest = evaluated("llama3-toy-evaluate", data, trained)
    exported = evaluated("llama3-toy-evaluate", data, tmp_path / "b", f"--load={where}")

    assert saved == newest
    assert (saved[0], exported[0]) == (2, 0)
    # Exported weights are in BF16. Those of another step are off by a tenth.
    assert exported[1] == pytest.approx(saved[1], abs=5e-3)
    (file,) = again.glob("*.safetensors")
    assert file.read_bytes() == next(where.glob("*.safetensors")).read_bytes()
    index = json.loads((again / "model.safetensors.index.json").read_text())
    with safe_open(file, "pt") as tensors:
        assert {*index["weight_map"]} == {*tensors.keys()}
        assert "model.layers.0.self_attn.q_proj.weight" in tensors.keys()  # noqa: SIM118
    assert {path.name for path in again.iterdir()} == {file.name, "model.safetensors.index.json"}


def test_adapters_are_saved_evaluated_and_exported_with_the_weights_that_they_adapt(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    where, merged = trained.parent / "hf", tmp_path / "merged"
    adapted = tmp_path / "adapted"
    tune = arguments("llama3-toy-lora", data, adapted, steps=3)
    worlds.run(2, [*tune, f"--load={where}", f"--export={merged}"], adapted)

    base = evaluated("llama3-toy-evaluate", data, tmp_path / "base", f"--load={where}")[1]
    _, with_adapters = evaluated("llama3-toy-lora-evaluate", data, adapted)
    _, with_merged = evaluated(
        "llama3-toy-evaluate", data, tmp_path / "merged-run", f"--load={merged}"
    )
    assert losses(adapted)[1] == pytest.approx(base, abs=0.5)
    assert with_adapters < base
    # The adapters have learned a thousandth.
    assert with_merged == pytest.approx(with_adapters, abs=1e-4)
    assert (merged / "config.json").read_text() == '{"of": "the model"}'


@pytest.mark.parametrize(
    ("recipe", "load", "told"),
    [
        ("qwen3-toy-evaluate", "run/checkpoints/step-00000002", "is of llama3-toy"),
        ("qwen3-toy-evaluate", "hf", "are not those of qwen3-toy"),
        ("llama3-toy", "nowhere", "neither weights of Hugging Face"),
    ],
)
def test_weights_of_another_model_are_one_line_and_no_restart(
    trained: Path, recipe: str, load: str, told: str, data: Path, tmp_path: Path
) -> None:
    given = [*arguments(recipe, data, tmp_path, steps=1), f"--load={trained.parent / load}"]
    ended = worlds.fail(1, given, tmp_path)

    assert ended.statuses == [2]
    (line,) = [line for line in ended.text().splitlines() if line.startswith("--load: ")]
    assert told in line
