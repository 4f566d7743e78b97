"""Jobs with a recipe: what they start, and what is refused before any node is paid for."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.cases import for_each
from tests.support.jobs import container, job_cluster, prepared, refusals, sentences
from tests.support.pools import pool_document
from ultrascale import catalog, config
from ultrascale.parts.recipes.chosen import chosen_of, on_type, step_of
from ultrascale.parts.recipes.table import RECIPES, Recipe
from ultrascale.plan.jobs.devices import device_of_type

TENSOR = "--parallelism.tensor_parallel_degree"
PIPELINE = "--parallelism.pipeline_parallel_degree"
CONTEXT = "--parallelism.context_parallel_degree"
EXPERT = "--parallelism.expert_parallel_degree"
SHARD = "--parallelism.data_parallel_shard_degree"
TYPES = {
    "p4d.24xlarge": "NVIDIA A100",
    "p5.48xlarge": "NVIDIA H100",
    "p5en.48xlarge": "NVIDIA H200",
    "p6-b200.48xlarge": "NVIDIA B200",
    "p6-b300.48xlarge": "NVIDIA B300",
    "trn2.48xlarge": "AWS Trainium2",
}
DATA = {"claim": "datasets", "mount_path": "/data", "existing": True}
NEURON_IMAGE = "docker.io/example/torchneuron:1"


def cluster(instance_type: str = "p5.48xlarge") -> dict[str, Any]:
    pool = pool_document(name="train", instance_types=[instance_type], nodes={"min": 64, "max": 64})
    images = {"repositories": ["trainer"], "builds": {"trainer": "nvidia"}}
    return job_cluster(pool, images=images)


def recipe_job(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": "tune", "pool": "train", "recipe": name, "volumes": [DATA], **changes}


def arguments(into: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    _, _, _, _, *words = container(prepared(into, job))["command"]
    return words


def test_three_keys_start_torchtitan_on_the_recipes_nodes() -> None:
    manifests = prepared(cluster(), recipe_job("llama3-8b"))
    command = container(manifests)["command"]

    assert "-m \\\n  ultrascale_training.titan" in command[2]
    assert "--nnodes=8" in command[2]
    assert 'python3 -m ultrascale_training.titan.arguments "$@" || exit 2' in command[2]
    assert {"--recipe=llama3-8b", f"{SHARD}=64", "--training.global_batch_size=512"} <= {*command}
    assert "/research/trainer:" in container(manifests)["image"]


@pytest.mark.parametrize(
    "words", [(f"{TENSOR}=4",), (TENSOR, "4"), (f"{TENSOR.replace('_', '-')}=4",)], ids=str
)
def test_options_of_the_job_win_however_they_are_spelled(words: tuple[str, ...]) -> None:
    found = arguments(cluster(), recipe_job("llama3-8b", args=[*words]))

    assert f"{SHARD}=16" in found
    assert [word for word in found if word.startswith(TENSOR)] == [
        word for word in words if word.startswith(TENSOR)
    ]
    assert (*found[-len(words) :],) == words


def test_tokens_are_read_from_the_first_volume_and_weights_where_the_job_says() -> None:
    first = arguments(cluster(), recipe_job("llama3-8b"))
    going_on = arguments(cluster(), recipe_job("llama3-8b", args=["--load=/data/mine"]))

    assert "--data=/data/tokens/llama3" in first
    assert not any(word.startswith("--load") for word in first)
    assert [word for word in going_on if word.startswith("--load")] == ["--load=/data/mine"]


def test_recomputation_is_what_the_memory_was_calculated_with() -> None:
    full = recipe_job("llama3-8b", args=["--activation-checkpoint", "full"])
    assert "--activation-checkpoint=selective" in arguments(cluster(), recipe_job("llama3-8b"))
    assert "--activation-checkpoint=selective" not in arguments(cluster(), full)
    eager = full | {"args": [*full["args"], "--compile.no_enable"]}
    assert "14 of 76 GiB" in " ".join(prepared(cluster(), full).notes)
    assert "16 of 76 GiB" in " ".join(prepared(cluster(), eager).notes)
    # TorchTitan refuses CUDA graphs beside pipelines and experts.
    graphs = "--training.disable_cuda_graphs"
    assert graphs in arguments(cluster(), recipe_job("qwen3-30b-a3b"))
    assert graphs not in arguments(cluster(), recipe_job("qwen3-32b"))


def test_the_user_reads_devices_memory_and_checkpoint_before_the_job_is_sent() -> None:
    notes = " ".join(prepared(cluster(), recipe_job("llama3-70b")).notes)

    assert "256 devices = shard 32 x tensor 8" in notes
    assert "4,194,304 tokens a step" in notes
    assert "45 of 76 GiB of each device; checkpoints of 847 GB" in notes


def test_recipes_are_as_fast_as_the_runs_that_they_follow() -> None:
    """Without compilation and Float8, 16 to 50 % of the time are paid in vain."""
    made = {"--compile.enable", "--matmul=float8"}
    assert made <= {*arguments(cluster(), recipe_job("llama3-70b"))}
    assert made & {*arguments(cluster("p4de.24xlarge"), recipe_job("llama3-8b"))} == {
        "--compile.enable"
    }
    plain = recipe_job("llama3-70b", args=["--compile.no_enable", "--matmul=bf16"])
    assert not made & {*arguments(cluster(), plain)}
    mixture = recipe_job("qwen3-30b-a3b", args=["--matmul=float8"])
    assert [*arguments(cluster(), mixture)].count("--matmul=float8") == 1
    wrong = recipe_job("llama3-8b", args=["--matmul=float8"])
    assert refusals(cluster("p4de.24xlarge"), wrong) == ["args[0]: recipe_suits_its_nodes"]


@pytest.mark.parametrize(
    ("job", "known"),
    [
        (recipe_job("llama3-70b"), True),
        (recipe_job("llama3-405b", nodes=64), True),
        (recipe_job("llama3-70b", args=["--matmul=bf16"]), False),
        (recipe_job("qwen3-32b"), False),
        (recipe_job("qwen3-30b-a3b"), False),
    ],
)
def test_a_time_that_nobody_has_measured_is_said_to_be_unknown(
    job: dict[str, Any], known: bool
) -> None:
    notes = " ".join(prepared(cluster(), job).notes)
    assert ("in a time that no source states" in notes) != known
    assert ("llama3_h100_202412_torchtitan.md)" in notes) == known


def test_a_recipe_of_trainium_runs_in_the_users_image_by_torchtitan_neuron() -> None:
    # Its options are not judged by the parser of another release.
    job = recipe_job("llama3-8b", args=["--optimizer.lr=1e-5", "--config=mine"])
    manifests = prepared(cluster("trn2.48xlarge"), job | {"image": NEURON_IMAGE})
    command = container(manifests)["command"]
    assert "-m \\\n  torchtitan.train" in command[2]
    assert {"--module=torchtitan_neuron.models.llama3", f"{SHARD}=128"} <= {*command}
    assert any("TorchTitan Neuron" in note for note in manifests.notes)
    assert refusals(cluster(), job)


def test_torchtitan_neuron_saves_into_the_output_of_its_job() -> None:
    job = recipe_job("llama3-8b", image=NEURON_IMAGE, durable=True, args=["--config=mine"])
    folder = {"args": [*job["args"], "--dump-folder=/data/mine"]}
    own = arguments(cluster("trn2.48xlarge"), job | folder)
    found = arguments(cluster("trn2.48xlarge"), job)
    assert {"--checkpoint.enable", "--dump_folder=/data/output/tune"} <= {*found}
    assert not [word for word in own if word.startswith("--dump_f")]


def test_torchtitan_neuron_that_could_save_nowhere_is_refused() -> None:
    into = cluster("trn2.48xlarge") | {"storage": {"buckets": ["checkpoints"]}}
    job = recipe_job("llama3-8b", image=NEURON_IMAGE, volumes=[], args=["--config=mine"])
    kept = job | {"durable": True}
    (wrong,) = refusals(into, kept)
    assert wrong == "recipe: recipe_suits_its_nodes"
    assert not refusals(into, kept | {"durable": False})


def test_a_job_that_goes_on_with_fewer_nodes_leaves_the_shards_to_torchtitan() -> None:
    manifests = prepared(cluster(), recipe_job("llama3-8b", nodes=2, min_nodes=1))

    assert f"{SHARD}=-1" in container(manifests)["command"]
    assert "41 of 76 GiB of each device" in " ".join(manifests.notes)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nodes that the batch does not divide among": (
        recipe_job("llama3-8b", nodes=3),
        "recipe: 512 sequences a step, which 24 groups of 1 cannot share, got 'llama3-8b'; "
        "add --training.global_batch_size=528 to args, or nodes: 2",
    ),
    "degrees that do not make up the devices": (
        recipe_job("llama3-8b", args=[f"{CONTEXT}=3"]),
        "nodes: 64 devices, which replicate x context x tensor x pipeline = 1 x 3 x 1 x 1 = 3 does "
        "not make up; change a degree of parallelism in args, or nodes",
    ),
    "shards that do not make up the devices": (
        recipe_job("llama3-8b", args=[f"{SHARD}=8"]),
        "nodes: 64 devices, which replicate x context x tensor x pipeline x shard = "
        "1 x 1 x 1 x 1 x 8 = 8 does not make up; change a degree of parallelism in args, or nodes",
    ),
    "heads that the devices cannot share": (
        recipe_job("llama3-8b", args=[f"{TENSOR}=16"]),
        f"args[0]: key and value heads of Llama 3.1 8B, 8, that 16 devices cannot share, got "
        f"'{TENSOR}=16'; write 1, 2, 4, 8",
    ),
    "more stages than passes": (
        recipe_job("llama3-8b", args=[f"{PIPELINE}=2"]),
        "recipe: a batch of 1 is 1 of the 2 passes that keep 2 stages at work, got 'llama3-8b'; "
        "add --training.local_batch_size=2 to args",
    ),
    "passes that do not make up a batch": (
        recipe_job(
            "llama3-405b", args=["--parallelism.pipeline_parallel_microbatch_size", "3"], nodes=64
        ),
        "args[0]: passes of 3 sequences, which do not make up the 32 of a batch, got "
        "'--parallelism.pipeline_parallel_microbatch_size'; write 1, 2, 4, 8, 16, 32",
    ),
    "an option that TorchTitan has not": (
        recipe_job("llama3-8b", args=["--parallelism.tensor_paralel_degree=2"]),
        "args[0]: not an option of TorchTitan 0.3.0 or of the program that starts it, got "
        "'--parallelism.tensor_paralel_degree=2'; did you mean "
        "--parallelism.tensor_parallel_degree?",
    ),
    "a section that TorchTitan has not": (
        recipe_job("llama3-8b", args=["--optimiser.lr=1e-4"]),
        "args[0]: not an option of TorchTitan 0.3.0 or of the program that starts it, got "
        "'--optimiser.lr=1e-4'; did you mean --optimizer.param_groups.0.optimizer_kwargs.lr?",
    ),
    "a flag that our program has not": (
        recipe_job("llama3-8b", args=["--memory-evry=32"]),
        "args[0]: not an option of TorchTitan 0.3.0 or of the program that starts it, got "
        "'--memory-evry=32'; did you mean --memory-every?",
    ),
    "a recipe beside that of the job": (
        recipe_job("llama3-8b", args=["--recipe=llama3-70b"]),
        "args[0]: --recipe names a second recipe, beside the key recipe, got "
        "'--recipe=llama3-70b'; write it in the key instead",
    ),
    "fewer nodes that the batch does not divide among": (
        recipe_job("llama3-8b", min_nodes=6),
        "min_nodes: degrees and 512 sequences a step do not suit 6, 7 nodes, got 6; leave it out, "
        "or add --training.global_batch_size=1344 to args",
    ),
    "fewer nodes that hold too little": (
        recipe_job(
            "llama3-8b",
            nodes=2,
            min_nodes=1,
            args=[
                "--training.local_batch_size=4",
                "--training.global_batch_size=64",
                "--compile.no_enable",
            ],
        ),
        "recipe: takes 115.1 of 76.0 usable GiB on an NVIDIA H100 with min_nodes: 1 "
        "(states 15, gathered 6, activations 74, logits 5, reserved 15), got 'llama3-8b'; add "
        "--training.local_batch_size=2 to args or add --activation-checkpoint=full to args",
    ),
    "a fixed number of shards of a changing world": (
        recipe_job("llama3-8b", min_nodes=4, args=[f"{SHARD}=64"]),
        f"args[0]: min_nodes changes this number, and args fix it, got '{SHARD}=64'; leave it out",
    ),
    "experts of a model without": (
        recipe_job("llama3-8b", args=[f"{EXPERT}=8"]),
        f"args[0]: Llama 3.1 8B has no experts, got '{EXPERT}=8'; leave it out",
    ),
    "experts that the devices cannot share": (
        recipe_job("qwen3-30b-a3b", args=[f"{EXPERT}=3"]),
        f"args[0]: 128 experts, which 3 devices cannot share, got '{EXPERT}=3'; "
        "write 1, 2, 4, 8, 16, 32, 64, 128",
    ),
    "a sequence longer than the model's": (
        recipe_job("qwen3-32b", args=["--training.seq_len=65536"]),
        "args[0]: more tokens than the 40,960 of a sequence of Qwen3-32B, got "
        "'--training.seq_len=65536'; write less",
    ),
    "a sequence that context parallelism cannot divide": (
        recipe_job("llama3-8b", args=[f"{CONTEXT}=8", "--training.seq_len=8200"]),
        "args[1]: tokens that 16 parts of tensor and context cannot share, got "
        "'--training.seq_len=8200'; write a multiple of 16",
    ),
    "a degree that is no number": (
        recipe_job("llama3-8b", args=[TENSOR, "four"]),
        f"args[0]: not a value of {TENSOR}, got '{TENSOR}'; write a whole number from 1 on",
    ),
    "a recomputation that there is not": (
        recipe_job("llama3-8b", args=["--activation-checkpoint=half"]),
        "args[0]: not a value of --activation-checkpoint, got '--activation-checkpoint=half'; "
        "use none, selective, full",
    ),
    "a recipe without data": (
        recipe_job("llama3-8b", volumes=[]),
        "recipe: a recipe without data: the job mounts no volume, and args have no --data, got "
        "'llama3-8b'; add a volume, or --data=FOLDER to args",
    ),
    "a model that no device holds": (
        recipe_job("llama3-70b", nodes=4, args=["--compile.no_enable"]),
        "recipe: takes 84.4 of 76.0 usable GiB on an NVIDIA H100 (states 33, gathered 2, "
        "activations 36, logits 2, reserved 11), got 'llama3-70b'; add "
        "--training.local_batch_size=8 to args or add "
        "--parallelism.context_parallel_degree=2 to args",
    ),
}


@pytest.mark.parametrize(("job", "wrong"), REFUSED.values(), ids=REFUSED)
def test_what_torchtitan_would_refuse_on_paid_nodes_is_refused_before(
    job: dict[str, Any], wrong: str
) -> None:
    assert f"job: {wrong}" in sentences(cluster(), job)


@pytest.mark.parametrize(
    ("instance_type", "wrong"),
    [
        (
            "g6e.48xlarge",
            "recipe: a recipe for NVIDIA A100, NVIDIA H100, NVIDIA H200, NVIDIA B200, NVIDIA B300, "
            "AWS Trainium2, and nodes of train have NVIDIA L40S, got 'llama3-8b'; choose another "
            "pool, or write a script of your own",
        ),
        (
            "trn2.48xlarge",
            "recipe: no configuration of TorchTitan Neuron that a source names for this model, got "
            "'llama3-8b'; add --config=NAME of your image to args",
        ),
        ("trn2.48xlarge", "image: missing; add REPOSITORY:TAG, or --image"),
    ],
)
def test_a_recipe_is_refused_on_nodes_that_it_has_no_division_for(
    instance_type: str, wrong: str
) -> None:
    assert f"job: {wrong}" in sentences(cluster(instance_type), recipe_job("llama3-8b"))


def test_one_mistake_of_a_recipe_is_one_line_and_its_advice_helps() -> None:
    (wrong,) = refusals(cluster(), recipe_job("llama3-8b", script="mine.py"))
    assert wrong == "script: recipe_is_the_program"
    for words in ("--training.local_batch_size=8", f"{CONTEXT}=2"):
        assert not refusals(cluster(), recipe_job("llama3-70b", nodes=4, args=[words]))


@for_each(
    {
        f"{recipe.name}-{name}": (recipe, name)
        for recipe in RECIPES.values()
        for name, device in TYPES.items()
        if device in recipe.layouts
    }
)
def test_every_recipe_as_it_stands_fits_the_nodes_that_it_is_for(recipe: Recipe, name: str) -> None:
    planned = on_type(recipe, catalog.lookup(name))
    assert planned is not None
    assert planned.memory.fits
    part = planned.division
    assert planned.global_batch % (part.shard * part.replicate * part.local_batch) == 0


@pytest.mark.parametrize(
    ("name", "instance_type", "measured"),
    [
        ("llama3-8b", "p5.48xlarge", 8_380),
        ("llama3-70b", "p5.48xlarge", 829),
        ("llama3-405b", "p5.48xlarge", 100),
        ("llama3-8b", "p4de.24xlarge", 2_973),
        ("llama3-70b", "p4de.24xlarge", 331),
    ],
)
def test_a_step_takes_as_long_as_published_throughput_says(
    name: str, instance_type: str, measured: float
) -> None:
    """Its benchmarks have those of 128 to 512 H100, compiled and in Float8.

    Its docs/performance.md at 4d88a8a has those of 64 A100.
    """
    planned = on_type(RECIPES[name], catalog.lookup(instance_type))

    assert planned is not None
    each = planned.tokens_per_step / step_of(planned)[0] / planned.devices
    assert each == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_a_layout_computes_nothing_again_that_its_device_has_room_for(recipe: Recipe) -> None:
    """Full recomputation costs a third more operations: only where less does not fit, or where a
    published run has it.
    """
    for instance_type, device in TYPES.items():
        layout = recipe.layouts.get(device)
        if layout is None or "AWS" in device or layout.source or layout.speed is not None:
            continue
        one = device_of_type(catalog.lookup(instance_type))
        chosen = chosen_of(recipe, one, config.TrainingJob(nodes=recipe.nodes))
        assert not isinstance(chosen, str), (device, chosen)
        # The formula is within an eighth of what was measured.
        assert chosen.memory.total <= 0.9 * chosen.memory.device, device
        if layout.recomputation != "full":
            continue
        least = 1 if layout.pipeline == 1 else layout.pipeline
        less = replace(chosen.division, recomputation="selective", local_batch=least)
        memory = replace(chosen, division=less).memory
        assert memory.total > 0.9 * memory.device, device
