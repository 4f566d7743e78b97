"""Weights go to Hugging Face's files and come back."""

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


def first_loss(data: Path, output: Path, weights: Path) -> float:
    """Return the loss of the first step of a run that begins with some weights."""
    begun = [*arguments("llama3-toy", data, output, steps=1), f"--load={weights}"]
    worlds.run(1, begun, output)
    return losses(output)[1]


def test_a_checkpoint_and_its_export_are_the_same_model(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    where, checkpoint = trained.parent / "hf", trained / "checkpoints" / "step-00000002"

    saved = first_loss(data, tmp_path / "a", checkpoint)
    exported = first_loss(data, tmp_path / "b", where)

    # Exported weights are in BF16. Those of another step are off by a tenth.
    assert exported == pytest.approx(saved, abs=5e-3)
    assert saved < losses(trained)[1] - 0.05
    (file,) = where.glob("*.safetensors")
    index = json.loads((where / "model.safetensors.index.json").read_text())
    with safe_open(file, "pt") as tensors:
        assert {*index["weight_map"]} == {*tensors.keys()}
        assert "model.layers.0.self_attn.q_proj.weight" in tensors.keys()  # noqa: SIM118


def test_a_checkpoint_of_a_run_that_goes_on_is_exported_without_a_step(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    where, again = trained.parent / "hf", tmp_path / "again"
    for weights, folder in (("run/checkpoints/step-00000002", again), ("hf", tmp_path / "b")):
        output = tmp_path / folder.name / "run"
        given = [
            *arguments("llama3-toy", data, output, steps=100),
            *(f"--load={trained.parent / weights}", f"--export={folder}", "--steps-this-run=0"),
        ]
        worlds.run(1, given, output)
        assert not events(output, "step")
        (file,) = folder.glob("*.safetensors")
        assert file.read_bytes() == next(where.glob("*.safetensors")).read_bytes()
    assert (tmp_path / "b" / "config.json").read_text() == '{"of": "the model"}'


@pytest.mark.parametrize(
    ("recipe", "load", "told"),
    [
        ("qwen3-toy", "run/checkpoints/step-00000002", "is of llama3-toy"),
        ("qwen3-toy", "hf", "are not those of qwen3-toy"),
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
