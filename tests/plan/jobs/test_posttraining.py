"""Jobs of post-training: what they start, and what is refused before any node is paid for."""

import ast
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.existing_vpc import MIRROR
from tests.support.jobs import container, job_cluster, objects, prepared, refusals
from tests.support.pools import pool_document

DATA = {"claim": "data", "mount_path": "/data", "existing": True}
BASE = ("--model_name_or_path=/data/base", "--dataset_name=/data/rows")
REWARD = "--reward_funcs=rewards.exact"
RULE, ROLES = "posttraining_suits_its_nodes", "roles_train_and_generate"


def cluster(instance_type: str = "p5en.48xlarge", **changes: Any) -> dict[str, Any]:
    pool = pool_document(name="train", instance_types=[instance_type], nodes={"min": 8, "max": 8})
    images = {"repositories": ["tuner"], "builds": {"tuner": "posttrain"}}
    kueue = {"queueing": "kueue", "queues": [{"name": "a", "guarantee": {"train": 8}}]}
    return job_cluster(pool, images=images, scheduling=kueue, **changes)


def method(recipe: str, args: Sequence[str] = BASE, **changes: Any) -> dict[str, Any]:
    nodes = {} if "roles" in changes else {"nodes": 1}
    return {
        **{"name": "tune", "recipe": recipe, "args": [*args], "model": "Qwen3-8B"},
        **{"volumes": [DATA], "queue": "a", **nodes, **changes},
    }


def roles(trainer: Sequence[str] = (), rollout: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    return {
        "trainer": {"pool": "train", "nodes": 2, "args": [*BASE, REWARD, *trainer]},
        "rollout": {"pool": "train", "nodes": 1, "args": [*rollout]},
        **more,
    }


@pytest.mark.parametrize(
    ("recipe", "first"),
    [
        ("sft", ["sft", "--fsdp"]),
        ("sft-lora", ["sft", "--use_peft", "--fsdp"]),
        ("dpo", ["dpo", "--fsdp"]),
        ("distill", ["distillation", "--fsdp"]),
        ("grpo", ["grpo", "--use_vllm=True", "--vllm_mode=colocate", "--fsdp"]),
    ],
)
def test_a_method_starts_trls_script_under_the_launcher_that_knows_its_end(
    recipe: str, first: Sequence[str]
) -> None:
    more = {"grpo": [REWARD], "distill": ["--teacher_model_name_or_path=/data/teacher"]}
    job = method(recipe, [*BASE, *more.get(recipe, [])])
    sent = container(prepared(cluster(), job))

    assert "ultrascale_training.launch" in sent["command"][2]
    assert "-m \\\n  ultrascale_training.posttrain" in sent["command"][2]
    assert sent["command"][4:] == [*first, *job["args"]]
    assert "/research/tuner:" in sent["image"]


def test_grpo_of_two_roles_has_trainer_and_server_find_each_other() -> None:
    job = method("grpo", [], roles=roles())
    (jobset,) = objects(prepared(cluster(), job), "JobSet")
    trainer, rollout = (
        part["template"]["spec"]["template"]["spec"]["containers"][0]
        for part in jobset["spec"]["replicatedJobs"]
    )

    assert {"--vllm_mode=server", "--vllm_server_port=8000"} <= {*trainer["command"]}
    assert {each["name"]: each.get("value") for each in trainer["env"]}["ROLLOUT_HOSTS"]
    assert rollout["command"] == [
        *("python3", "-m", "trl.scripts.vllm_serve", "--port=8000", "--model=/data/base"),
        "--tensor_parallel_size=8",
    ]
    # The job ends with the trainer: a server never ends by itself.
    assert jobset["spec"]["successPolicy"]["targetReplicatedJobs"] == ["trainer"]


def test_an_evaluation_runs_the_harness_on_a_folder() -> None:
    args = ["--model=/data/chat/sft", "--tasks=gsm8k", "--include_path=/data/tasks"]
    sent = container(prepared(cluster(), method("evaluate", args)))

    words = ["python3", "-m", "ultrascale_training.evaluate", "--engine=vllm", *args]
    assert sent["command"][-7:] == words


@pytest.mark.parametrize(
    ("recipe", "args", "stated"),
    [
        ("sft", BASE, True),
        ("grpo", [*BASE, REWARD], False),
        ("evaluate", ["--model=/data/chat", "--tasks=gsm8k"], False),
    ],
)
def test_vllm_gets_no_allocator_that_its_pool_of_memory_refuses(
    recipe: str, args: Sequence[str], stated: bool
) -> None:
    env = {item["name"] for item in container(prepared(cluster(), method(recipe, args)))["env"]}

    assert ("PYTORCH_CUDA_ALLOC_CONF" in env) is stated


WRONG: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "grpo without a reward": (method("grpo"), "args", RULE),
    "distill without a teacher": (method("distill"), "args", RULE),
    "no model": (method("sft", BASE[1:]), "args", RULE),
    "an option of another script": (method("sft", [*BASE, REWARD]), "args[2]", RULE),
    "a misspelled option": (method("dpo", [*BASE, "--learning_rat=1"]), "args[2]", RULE),
    "no number": (method("sft", [*BASE, "--max_steps=many"]), "args[2]", RULE),
    "answers that do not divide": (
        method("grpo", [*BASE, REWARD, "--num_generations=7"]),
        "args[3]",
        RULE,
    ),
    "one GPU for 32 billion": (
        method("sft", model="Qwen3-32B", processes_per_node=1, resources={"gpu": 1}),
        "recipe",
        RULE,
    ),
    "nodes that come and go": (method("sft", nodes=2, min_nodes=1), "min_nodes", RULE),
    "no rollout": (
        method("grpo", [], roles={"trainer": roles()["trainer"]}),
        "roles",
        ROLES,
    ),
    "GPUs that do not divide": (
        method("grpo", [], roles=roles(rollout=["--tensor_parallel_size=3"])),
        "roles.rollout.args[0]",
        RULE,
    ),
    "an output on no claim": (
        method("sft", [*BASE, "--output_dir=/out"], durable=True),
        "args[2]",
        "output_outlives_its_pods",
    ),
    "a model that nobody knows": (
        method("sft", model="Qwen3-9B"),
        "model",
        "model_is_of_post_training",
    ),
    "an evaluation of nothing": (method("evaluate", ["--tasks=gsm8k"]), "args", RULE),
    "an evaluation on two nodes": (
        method("evaluate", ["--model=/data/chat", "--tasks=gsm8k"], nodes=2),
        "nodes",
        RULE,
    ),
    "roles of SFT": (method("sft", [], roles=roles()), "recipe", "recipe_is_the_program"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_refused_before_nodes_are_paid(name: str) -> None:
    job, key, code = WRONG[name]

    assert f"{key}: {code}" in refusals(cluster(), job)


def test_a_rollout_without_gpus_is_refused() -> None:
    plain = pool_document(name="plain", instance_types=["m7i.8xlarge"], zones=None)
    given = cluster()
    given |= {"pools": [*given["pools"], plain], "scheduling": {"gang_scheduler": "volcano"}}
    parts = roles() | {"rollout": {"pool": "plain", "nodes": 1}}

    job = method("grpo", [], roles=parts, queue=None)

    assert refusals(given, job) == [f"recipe: {RULE}"]


TRN1, TRN2 = "trn1.32xlarge", "trn2.48xlarge"
NEURON = "docker.io/example/optimum-neuron:0.4.5"


@pytest.mark.parametrize(
    ("kind", "changes", "key"),
    [
        *((TRN2, {"recipe": name}, "recipe") for name in ("dpo", "distill", "grpo", "evaluate")),
        ("inf2.48xlarge", {}, "recipe"),
        (TRN2, {"args": [*BASE, "--fsdp_version=2"]}, "args[2]"),
        (TRN2, {"args": [*BASE, "--accept-new-data"]}, "args[2]"),
        (TRN2, {"args": BASE[:1]}, "args"),
        (TRN1, {"args": [*BASE, "--tensor_parallel_size=3"]}, "args[2]"),
        (TRN1, {"args": [*BASE, "--pipeline_parallel_size=8"]}, "args"),
        (TRN2, {"args": [*BASE, "--tensor_parallel_size=64"]}, "args[2]"),
        (TRN2, {"model": "Qwen3-30B-A3B"}, "recipe"),
    ],
)
def test_what_no_library_trains_on_trainium_is_refused(
    kind: str, changes: Mapping[str, Any], key: str
) -> None:
    job = method(**{"recipe": "sft", "image": NEURON, **changes})

    assert f"{key}: {RULE}" in refusals(cluster(kind), job)


DOUBLES = {
    "torch": "bfloat16, float32 = 'bfloat16', 'float32'",
    "datasets": "load_dataset = lambda name: {'train': [name]}",
    "transformers": "class AutoTokenizer: from_pretrained = str.upper",
    "trl": """
from types import SimpleNamespace as Bag
ModelConfig = ScriptArguments = object
def get_peft_config(given): return given.use_peft
class TrlParser:
    def __init__(self, kinds): pass
    def parse_args_and_config(self, words):
        stated = dict(word[2:].partition("=")[::2] for word in words)
        bag = Bag(**stated, trn_config="layout", attn_implementation=None)
        bag.use_peft, bag.dataset_train_split = "use_peft" in stated, "train"
        return bag, bag, bag
""",
    "optimum/neuron/__init__": """
import os
NeuronSFTConfig = object
class NeuronSFTTrainer:
    def __init__(self, **given):
        print([os.environ["HF_HUB_OFFLINE"], os.environ["NEURON_CC_FLAGS"].split("=")[-1]])
        print([given["args"].output_dir, given["args"].tensor_parallel_size])
        print([given[key] for key in ("train_dataset", "processing_class", "peft_config")])
    def train(self): print(["trains"])
    def save_model(self): print(["saves"])
""",
    "optimum/neuron/models/training": """
class NeuronModelForCausalLM:
    def from_pretrained(*given, **more): print([*given, *more.values()])
""",
}


@pytest.mark.parametrize(("kind", "cores", "tensor"), [(TRN1, 32, 8), (TRN2, 64, 4)])
def test_sft_on_trainium_hands_model_rows_and_options_to_optimum_neurons_trainer(
    kind: str, cores: int, tensor: int, tmp_path: Path
) -> None:
    job = method("sft-lora", [*BASE, "--output_dir=/data/chat"], image=NEURON)
    plan = prepared(cluster(kind), job)
    words = container(plan)["command"]
    start = shlex.split(words[2][words[2].index("exec ") :].replace("\\\n", ""))
    for name, text in DOUBLES.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    program = start[start.index("-c") + 1].replace("$$", "$")
    env = {"PYTHONPATH": str(tmp_path), "ULTRASCALE_OUTPUT": "/data/chat"}
    run = subprocess.run(
        [sys.executable, "-c", program, *words[4:]], env=env, capture_output=True, check=True
    )

    assert {"torchrun", f"--nproc-per-node={cores}", "--no-python"} <= {*start}
    assert ast.parse(program, feature_version=(3, 10)), "the image of AWS has Python 3.10"
    assert [ast.literal_eval(line) for line in run.stdout.decode().splitlines()] == [
        ["/data/base", "layout", "bfloat16", "flash_attention_2"],
        ["1", "/data/chat/neuron-cache"],
        ["/data/chat", str(tensor)],
        [["/data/rows"], "/DATA/BASE", True],
        ["trains"],
        ["saves"],
    ]
    assert any("not run by us" in note for note in plan.notes)


def test_a_closed_network_reports_nowhere() -> None:
    job = method("sft", [*BASE, "--report_to=wandb", "--push_to_hub"])
    open_one = cluster()
    network = {**open_one["network"], "egress": "none"}
    images = {**open_one["images"], "mirror": MIRROR.replace("us-east-1", "us-west-2")}
    closed = {**open_one, "network": network, "images": images}

    assert [f"args[{at}]: {RULE}" for at in (2, 3)] == refusals(closed, job)


def test_an_output_in_a_bucket_is_refused_as_trl_writes_to_folders() -> None:
    job = method("sft", durable=True, volumes=[], output="s3://bucket/run")

    assert f"recipe: {RULE}" in refusals(cluster(), job)


def test_memory_is_said_of_a_named_model_alone() -> None:
    known = prepared(cluster(), method("sft")).notes
    unknown = prepared(cluster(), method("sft", model=None)).notes

    assert any("of 134 GiB of each device" in note for note in known)
    assert any("its memory is checked where" in note for note in unknown)
