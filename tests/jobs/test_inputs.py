"""Folders that a job of post-training reads: what is no model or no data is seen before it costs.

AWS is a stub that has the objects of one bucket.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plan.jobs.test_posttraining import REWARD, cluster, method
from tests.support.account import connects
from tests.support.fake_aws import FakeAws, Refusal
from tests.support.pools import as_text
from tests.support.verdicts import verdicts
from ultrascale.errors import AccountError, ConfigError
from ultrascale.jobs import prepare

RULE = "inputs_suit_the_job"
CLAIM = {"namespace": "training", "name": "bucket", "mount_path": "/models"}
LINKED = {"namespace": "training", "name": "disk", "mount_path": "/disk"}
LUSTRE = {
    **{"name": "disk", "zone": "us-west-2a", "capacity_gib": 4800},
    **{"throughput_mbps_per_tib": 500, "claim": LINKED},
    "s3": {"bucket": "models", "prefix": "chat", "path": "/", "import": ["new"]},
}
STORAGE = {"buckets": [{"name": "models", "claim": CLAIM}], "lustre": [LUSTRE]}
LLAMA = {
    **{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 12},
    **{"intermediate_size": 14336, "head_dim": 128, "vocab_size": 128_256},
}
CHATS = '{"messages": []}\n{"messages": [{"role": "user"}]}\n'
PAIRS = '{"prompt": "a", "chosen": "b", "rejected": "c"}\n'
OBJECTS: Mapping[str, str] = {
    "chat/base/config.json": json.dumps(LLAMA),
    "chat/base/model.safetensors": "x" * 1000,
    "chat/base/checkpoint-8/optimizer.pt": "",
    "chat/other/config.json": json.dumps({**LLAMA, "vocab_size": 151_936}),
    "chat/other/model.safetensors": "x" * 1000,
    "chat/huge/config.json": json.dumps({**LLAMA, "num_hidden_layers": 900}),
    "chat/huge/model.safetensors": "x" * 1000,
    "chat/part/config.json": json.dumps(LLAMA),
    "chat/part/model.safetensors.index.json": '{"weight_map": {"a": "model-1.safetensors"}}',
    "chat/adapters/adapter_config.json": '{"base_model_name_or_path": "Qwen/Qwen3-8B"}',
    "chat/adapters/adapter_model.safetensors": "x",
    "chats/train.jsonl": CHATS,
    "pairs/train.jsonl": PAIRS * 2,
    "ends/train.jsonl": PAIRS + '{"prompt": "a", "answer": "b"}\n',
    "tables/train.parquet": "PAR1",
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """Answer as an account does whose bucket has `OBJECTS`."""

    def objects(asked: Mapping[str, Any]) -> dict[str, Any]:
        below = {key: len(text) for key, text in OBJECTS.items() if key.startswith(asked["Prefix"])}
        sizes = {key: size for key, size in below.items() if "/" not in key[len(asked["Prefix"]) :]}
        return {"Contents": [{"Key": key, "Size": size} for key, size in sizes.items()]}

    def content(asked: Mapping[str, Any]) -> dict[str, Any]:
        start, end = map(int, asked["Range"].removeprefix("bytes=").split("-"))
        return {"Body": io.BytesIO(OBJECTS[asked["Key"]].encode()[start : end + 1])}

    output = {"Description": "Bucket models", "OutputKey": "Name", "OutputValue": "made-by-s3"}
    stack = {"StackName": "s", "StackStatus": "CREATE_COMPLETE", "CreationTime": 0}
    answers: Mapping[str, Any] = {
        **{"s3:ListBucket": objects, "s3:GetObject": content},
        "cloudformation:DescribeStacks": {"Stacks": [stack | {"Outputs": [output]}]},
    }
    return connects(monkeypatch, answers)


def answer(tmp_path: Path, job: Mapping[str, Any], *types: str) -> tuple[Sequence[str], str]:
    """Return the verdicts on a job that is sent, and its notes on what was not looked at."""
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(cluster(*types, storage=STORAGE)))
    volumes = [
        {"claim": "bucket", "mount_path": "/models"},
        {"claim": "disk", "mount_path": "/disk"},
    ]
    whole = {**job, "durable": False, "volumes": volumes, "model": None}
    sent = {key: value for key, value in whole.items() if value is not None}
    try:
        manifests = prepare(file, sent, looks=True, account="111122223333")
    except ConfigError as error:
        return verdicts(error), str(error)
    return (), "\n".join(note for note in manifests.notes if note.startswith("Not known before"))


def options(model: str = "/models/chat/base", data: str = "/models/chats") -> Sequence[str]:
    return [f"--model_name_or_path={model}", f"--dataset_name={data}"]


TEACHER = "--teacher_model_name_or_path=/models/chat/other"
ROLES = {
    "trainer": {"pool": "train", "nodes": 2, "args": [*options(data="/models/pairs"), REWARD]},
    "rollout": {"pool": "train", "nodes": 1, "args": ["--tensor_parallel_size=8"]},
}


@pytest.mark.parametrize(
    ("job", "key", "says"),
    [
        (method("sft", options("/models/chat")), "args[0]", "has a config.json"),
        (method("sft", options("/models/chat/part")), "args[0]", "1 of 1 files are missing"),
        (method("sft", options("/models/chat/adapters")), "args[0]", "of Qwen/Qwen3-8B; merge"),
        (method("sft", options("/disk/adapters")), "args[0]", "of Qwen/Qwen3-8B; merge"),
        (method("dpo", options()), "args[1]", "needs chosen and rejected"),
        (method("dpo", options(data="/models/ends")), "args[1]", "has prompt, answer"),
        (method("sft", options(data="/models/pairs")), "args[1]", "needs messages, or prompt and"),
        (method("distill", [*options(data="/models/pairs"), TEACHER]), "args[2]", "151,936 tokens"),
        (method("sft", options("/models/chat/huge")), "recipe", "/models/chat/huge takes"),
        (method("grpo", [], roles=ROLES), "roles.rollout.args[0]", "the 12 heads"),
        (
            method("evaluate", ["--model=/models/chat/adapters", "--tasks=gsm8k"]),
            "args[0]",
            "adapters alone",
        ),
    ],
)
def test_what_would_end_a_job_after_its_nodes_came_is_refused_before(
    aws: FakeAws, tmp_path: Path, job: Mapping[str, Any], key: str, says: str
) -> None:
    verdict, text = answer(tmp_path, job)

    assert verdict == [f"{key}: {RULE}"]
    assert says in text
    assert {each["Bucket"] for each in aws.parameters("s3:ListBucket")} == {"made-by-s3"}


@pytest.mark.parametrize(
    ("recipe", "more"),
    [("sft", options()), ("sft", options("/disk/base")), ("dpo", options(data="/models/pairs"))],
)
def test_what_suits_is_sent_without_a_word(
    aws: FakeAws, tmp_path: Path, recipe: str, more: Sequence[str]
) -> None:
    assert answer(tmp_path, method(recipe, more)) == ((), "")
    assert aws.parameters("s3:GetObject")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (options("/opt/base"), "on no volume"),
        (options("/disk/later"), "has a config.json"),
        (options(data="/models/tables"), "no files of JSON lines"),
    ],
)
def test_what_cannot_be_looked_at_is_said_and_not_guessed(
    aws: FakeAws, tmp_path: Path, args: Sequence[str], says: str
) -> None:
    verdict, notes = answer(tmp_path, method("sft", args))

    assert (verdict, says in notes) == ((), True)


def test_memory_of_gpus_is_not_that_of_trainium(aws: FakeAws, tmp_path: Path) -> None:
    job = method("sft", options("/models/chat/huge"), image="docker.io/example/tune:1")

    assert f"recipe: {RULE}" not in answer(tmp_path, job, "trn2.48xlarge")[0]
    assert aws.parameters("s3:GetObject")


@pytest.mark.parametrize("missing", ["right", "account"])
def test_who_may_not_read_the_bucket_still_sends_the_job(
    aws: FakeAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    aws.answers = {**aws.answers, "s3:ListBucket": Refusal("AccessDenied", status=403)}
    if missing == "account":

        def connect(region: str) -> object:
            raise AccountError(f"no credentials for {region}")

        monkeypatch.setattr("ultrascale.account.connect", connect)
    verdict, notes = answer(tmp_path, method("sft", options()))

    assert verdict == ()
    assert "--model_name_or_path=/models/chat/base" in notes
    assert "--dataset_name=/models/chats" in notes


def test_a_folder_of_this_machine_is_read_without_an_account(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/train.jsonl").write_text(PAIRS)
    verdict, _ = answer(tmp_path, method("sft", options("Qwen/Qwen3-8B", f"{tmp_path}/rows")))

    assert verdict == [f"args[1]: {RULE}"]
