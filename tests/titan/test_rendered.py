"""Options that a job with a recipe is sent with, held against TorchTitan's own checks."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace
from torchtitan.components.quantization import float8
from torchtitan.distributed import ParallelDims

from ultrascale import catalog, config
from ultrascale.parts.recipes.chosen import Chosen, chosen_of
from ultrascale.parts.recipes.options import CONTEXT, EXPERT, LOCAL_BATCH, PIPELINE, TENSOR
from ultrascale.parts.recipes.plan import arguments_of
from ultrascale.parts.recipes.rules import mistakes_in
from ultrascale.parts.recipes.table import RECIPES
from ultrascale.plan.jobs.devices import device_of_type
from ultrascale_training.errors import TrainingError
from ultrascale_training.titan import arguments
from ultrascale_training.titan.configuration import configuration

TYPES = {
    "p4d.24xlarge": "NVIDIA A100",
    "p5.48xlarge": "NVIDIA H100",
    "p5en.48xlarge": "NVIDIA H200",
    "p6-b300.48xlarge": "NVIDIA B300",
}


@pytest.fixture(autouse=True)
def float8_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TorchTitan configure layers in Float8, which this machine would not multiply."""
    monkeypatch.setattr(float8, "has_cuda_capability", lambda *_: True)


def chosen(name: str, instance_type: str, nodes: int, args: Sequence[str] = ()) -> Chosen | str:
    job = config.TrainingJob(nodes=nodes, args=tuple(args))
    return chosen_of(RECIPES[name], device_of_type(catalog.lookup(instance_type)), job)


def refused_by_torchtitan(found: Chosen, args: Sequence[str], data: Path) -> str | None:
    """Return why TorchTitan refuses what a job is sent with; None where it takes it."""
    words = [*arguments_of(found, args, {"--data": str(data)}), *args, "--output-dir=/tmp/out"]
    titan = configuration(arguments.parse(words))
    batch, parallelism = titan.training, titan.parallelism
    try:
        dims = ParallelDims.from_config(parallelism, found.devices)
        assert titan.model_spec is not None
        titan.model_spec.model.update_from_config(config=titan)
        titan.__post_init__()
    except (AssertionError, ValueError, NotImplementedError) as error:
        return str(error)
    together = batch.local_batch_size * dims.dp_replicate * dims.dp_shard
    if batch.global_batch_size % together:
        return "the batch"
    if batch.seq_len % dims.seq_len_divisor:
        return "the sequence"
    if (dims.dp_shard * dims.cp * dims.tp) % dims.ep:
        return "the experts"
    return None


@pytest.mark.parametrize(
    ("name", "instance_type"),
    [
        (name, instance_type)
        for name, recipe in RECIPES.items()
        for instance_type, device in TYPES.items()
        if device in recipe.layouts
    ],
)
def test_torchtitan_takes_every_recipe_as_it_stands(
    name: str, instance_type: str, data: Path
) -> None:
    found = chosen(name, instance_type, RECIPES[name].nodes)

    assert isinstance(found, Chosen)
    assert refused_by_torchtitan(found, (), data) is None


def test_torchtitan_takes_a_job_on_all_nodes_that_it_may_go_on_with(data: Path) -> None:
    recipe, device = RECIPES["llama3-8b"], device_of_type(catalog.lookup("p5.48xlarge"))
    args = ("--training.global_batch_size=1344",)
    job = config.TrainingJob(nodes=8, min_nodes=6, args=args)
    found = chosen_of(recipe, device, job)

    assert isinstance(found, Chosen)
    assert not [*mistakes_in(found, job)]
    for nodes in (6, 7, 8):
        # A job on fewer nodes has the same arguments.
        fewer = replace(found, nodes=nodes, least_nodes=0)
        assert refused_by_torchtitan(fewer, args, data) is None


def test_an_option_that_torchtitan_has_not_is_a_mistake_that_no_restart_cures(
    data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--recipe=llama3-8b", f"--data={data}", "--output-dir=/tmp/out", "--optimizer.lrr=1"]

    with pytest.raises(TrainingError, match=r"--optimizer\.lrr=1"):
        configuration(arguments.parse(words))
    assert not capfd.readouterr().err


@pytest.mark.parametrize("name", ["llama3-8b", "qwen3-30b-a3b"])
def test_what_torchtitan_refuses_is_refused_before_it_is_sent(name: str, data: Path) -> None:
    taken = 0
    for tensor, pipeline, context, expert in product((1, 3, 8, 16), (1, 4), (1, 2, 8), (1, 3, 8)):
        degrees = {TENSOR: tensor, PIPELINE: pipeline, CONTEXT: context, EXPERT: expert}
        args = [f"--{option}={degree}" for option, degree in degrees.items()]
        args.append(f"--{LOCAL_BATCH}={max(4, pipeline)}")
        found = chosen(name, "p5.48xlarge", 16, args)
        if isinstance(found, str):
            continue  # Degrees that do not make up the devices.
        job = config.TrainingJob(nodes=16, args=tuple(args))
        if [*mistakes_in(found, job)]:
            continue
        taken += 1
        assert refused_by_torchtitan(found, args, data) is None, args

    assert taken >= 5


def test_an_option_that_torchtitan_does_not_know_is_a_mistake_of_the_user(data: Path) -> None:
    given = ["--recipe=llama3-8b", f"--data={data}", "--output-dir=/tmp/out"]

    with pytest.raises(TrainingError, match=r"(?s)TorchTitan refuses an option.*--training\.stepz"):
        configuration(arguments.parse([*given, "--training.stepz=3"]))
