"""`ultrascale models`: a person who has weights in a bucket learns where they can be served."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.account import connects
from tests.support.command_line import Answer, Ultrascale
from tests.support.fake_aws import FakeAws, Refusal, Told
from tests.support.jobs import job_cluster
from tests.support.pools import as_text, pool_document
from ultrascale.jobs import prepare

GB = 10**9
LLAMA = {
    "torch_dtype": "bfloat16",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32_768,
}
POOLS = [
    pool_document(
        name=name, instance_types=[kind], provisioner="karpenter", zones=None, nodes={"max": nodes}
    )
    for name, kind, nodes in (("gpu", "g6e.12xlarge", 4), ("small", "g6.xlarge", 1))
]
MODELS = {"name": "models", "claim": {"namespace": "serving", "name": "m", "mount_path": "/models"}}
SERVED = {
    "kind": "service",
    "pool": "gpu",
    "namespace": "serving",
    "image": "docker.io/vllm/vllm-openai:v0.33.0",
    "port": 8000,
}


def weights(folder: str, gigabytes: int, files: int = 2) -> dict[str, int]:
    return {
        f"{folder}/model-{number}-of-{files}.safetensors": gigabytes * GB // files
        for number in range(1, files + 1)
    }


def index(*names: str) -> dict[str, Any]:
    return {"weight_map": {f"layer.{number}": name for number, name in enumerate(names)}}


DOCUMENTS: Mapping[str, Any] = {
    "llama/config.json": LLAMA,
    "llama/evaluation.json": {"time": 1, "results": {"gsm8k.exact_match": 0.7123}},
    "mistral/config.json": LLAMA | {"num_hidden_layers": 32},
    "mistral/model.safetensors.index.json": index("model-1-of-1.safetensors"),
    "part/config.json": LLAMA,
    "part/model.safetensors.index.json": index("a.safetensors", "b.safetensors"),
    "old/config.json": {"model_type": "t5"},
    "broken/config.json": None,
    "adapter/config.json": LLAMA,
    "slip/config.json": LLAMA | {"hidden_size": 8},
    "hollow/config.json": LLAMA,
    "tiny/config.json": LLAMA | {"num_hidden_layers": 16},
    "long/config.json": LLAMA | {"max_position_embeddings": 1_048_576},
    "a, --trust-remote-code/config.json": LLAMA,
    "endless/config.json": LLAMA | {"max_position_embeddings": 10**30},
}
SIZES: Mapping[str, int] = {
    **weights("llama", 140),
    "llama/original/consolidated.00.pth": 140 * GB,
    "llama/evaluation.json": 60,
    **weights("mistral", 24, files=1),
    # The same weights again, in the vendor's own format.
    "mistral/consolidated.safetensors": 24 * GB,
    "part/a.safetensors": 70 * GB,
    **weights("old", 3, files=1),
    **weights("broken", 3, files=1),
    "adapter/adapter_model.json": 1,
    **weights("slip", 3, files=1),
    **weights("hollow", 0, files=1),
    **weights("long", 140),
    **weights("tiny", 3),
    **weights("endless", 3, files=1),
    **weights("a, --trust-remote-code", 3, files=1),
    "logs/run.txt": 12,
    **dict.fromkeys(DOCUMENTS, 100),
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """Answer as an account does whose bucket holds `SIZES`."""

    def listed(asked: Mapping[str, Any]) -> dict[str, Any]:
        keys = sorted(key for key in SIZES if key.startswith(asked["Prefix"]))
        return {"Contents": [{"Key": key, "Size": SIZES[key]} for key in keys]}

    def read(asked: Mapping[str, Any]) -> dict[str, Any]:
        document = DOCUMENTS[asked["Key"]]
        text = "{" if document is None else json.dumps(document)
        return {"Body": io.BytesIO(text.encode())}

    output = {"Description": "Bucket models", "OutputKey": "Name", "OutputValue": "made-by-s3"}
    stack = {"StackName": "s", "StackStatus": "CREATE_COMPLETE", "CreationTime": 0}
    answers: dict[str, Told] = {
        "s3:ListBucket": listed,
        "s3:GetObject": read,
        "cloudformation:DescribeStacks": {"Stacks": [stack | {"Outputs": [output]}]},
    }
    return connects(monkeypatch, answers)


Models = Callable[..., Answer]


@pytest.fixture
def models(tmp_path: Path, ultrascale: Ultrascale, aws: FakeAws) -> Models:
    """Run the command on a cluster file with one bucket of models."""
    file = tmp_path / "cluster.yaml"
    document = job_cluster(*POOLS, storage={"buckets": [MODELS, "datasets"]}, jobs={"chat": SERVED})
    file.write_text(as_text(document))
    return lambda *words: ultrascale("models", file, *words)


def test_the_bucket_of_the_services_is_looked_at(models: Models, aws: FakeAws) -> None:
    answer = models()

    assert answer.returncode == 0, answer.stderr
    assert {each["Bucket"] for each in aws.parameters("s3:ListBucket")} == {"made-by-s3"}
    assert "gpu (g6e.12xlarge): 4 x NVIDIA L40S: 32.6 GiB of weights each, 2.3 sequences of " in (
        answer.stdout
    )
    assert "small (g6.xlarge): too large: " in answer.stdout
    (row,) = (line.split() for line in answer.stdout.splitlines() if "/models/llama " in line)
    assert row == ["/models/llama", "140.0", "2", "bfloat16", "327.7", "KB", "32,768"]
    assert "evaluated: gsm8k.exact_match 0.7123" in answer.stdout


def test_what_is_printed_to_paste_makes_a_service_that_fits(models: Models, tmp_path: Path) -> None:
    told = models("models/llama/").stdout.partition("to paste into a service:\n")[2]
    job = SERVED | yaml.safe_load(told)
    assert job["args"] == [
        *("--model=/models/llama", "--tensor-parallel-size=4", "--max-model-len=32768"),
        "--safetensors-load-strategy=prefetch",
    ]
    notes = prepare(tmp_path / "cluster.yaml", {"name": "chat", **job}).notes
    assert any("4 devices (NVIDIA L40S): 32.6 GiB of weights" in note for note in notes)


def test_a_folders_name_stays_one_word_of_what_is_pasted(models: Models) -> None:
    """Whoever may write to the bucket chose it."""
    told = models("models/a, ").stdout.partition("paste into a service:\n")[2]
    assert yaml.safe_load(told)["args"][:2] == [
        "--model=/models/a, --trust-remote-code",
        "--max-model-len=32768",
    ]


def test_the_pool_that_costs_least_is_the_one_to_paste(models: Models) -> None:
    """The first of the file may be the dearest of those that hold the model."""
    told = models("models/tiny").stdout
    assert "gpu (g6e.12xlarge): 1 x NVIDIA L40S: " in told
    assert "; the whole node for 10.49 USD an hour On-Demand in us-east-1" in told
    assert "; the whole node for 0.80 USD an hour On-Demand in us-east-1" in told
    assert yaml.safe_load(told.partition("paste into a service:\n")[2])["pool"] == "small"


def test_longer_sequences_take_more_nodes(models: Models) -> None:
    (long,), (short,) = (
        json.loads(models("models/long", *words, "--json").stdout)
        for words in (("--context", "1000000"), ("--context", "8192"))
    )
    assert [fit["nodes"] for fit in long["fits"]] == [3, 0]
    assert [fit["nodes"] for fit in short["fits"]] == [1, 0]
    assert short["fits"][0]["memory"]["fit"] == "fits"


def test_sequences_are_no_longer_than_the_model_was_made_for(models: Models) -> None:
    """`submit` refuses the same length, as vLLM does."""
    told = models("models/llama", "--context", "65536").stdout
    assert "judged with 32,768 tokens, the model's own maximum: --context is larger" in told
    assert "--max-model-len=32768" in told
    assert "65,536" not in told
    assert "its own maximum" not in models("models/llama", "--context", "32768").stdout


def test_weights_count_once_and_as_they_are_served(models: Models) -> None:
    rows = {row["path"]: row for row in json.loads(models("--json").stdout)}
    assert rows["/models/mistral"]["weights_bytes"] == 24 * GB
    assert rows["/models/llama"]["weights_bytes"] == 140 * GB
    assert rows["/models/llama"]["model"]["weights_gb"] == 140


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("part", "1 of 2 files are missing: b.safetensors, …"),
        ("old", "its config.json has no num_hidden_layers"),
        ("broken", "config.json is no JSON"),
        ("slip", "no model has such figures: head_width"),
        ("hollow", "no model has such figures: weights_gb"),
        ("adapter", "no weights that vLLM reads, as *.safetensors, lie beside it"),
    ],
)
def test_what_cannot_be_served_is_listed_with_the_reason(
    models: Models, folder: str, problem: str
) -> None:
    assert f"/models/{folder}\n  {problem}\n" in models(f"models/{folder}").stdout


def test_a_context_without_an_end_is_none(models: Models) -> None:
    (row,) = json.loads(models("models/endless", "--json").stdout)
    assert (row["problem"], row["figures"]["longest_context"]) == ("", None)
    assert row["fits"][0]["nodes"] == 1


def test_a_bucket_of_somebody_else_is_named_by_s3s_own_name(models: Models, aws: FakeAws) -> None:
    answer = models("s3://corp-models/llama")
    assert "--model=s3://corp-models/llama" in answer.stdout
    assert "--safetensors-load-strategy" not in answer.stdout
    (asked,) = aws.parameters("s3:ListBucket")
    assert (asked["Bucket"], asked["Prefix"]) == ("corp-models", "llama")


@pytest.mark.parametrize(
    ("action", "refusal", "status", "says"),
    [
        (
            "cloudformation:DescribeStacks",
            Refusal("ValidationError", "does not exist"),
            64,
            "BUCKET: models of the file does not exist yet",
        ),
        ("s3:ListBucket", Refusal("AccessDenied", status=403), 1, "s3:ListBucket"),
    ],
)
def test_a_bucket_that_is_not_made_and_a_right_that_is_missing_are_told(
    models: Models, aws: FakeAws, action: str, refusal: Refusal, status: int, says: str
) -> None:
    aws.answers = {**aws.answers, action: refusal}
    answer = models()
    assert (answer.returncode, says in answer.stderr) == (status, True)


def test_a_prefix_without_models_ends_with_a_status_of_its_own(models: Models) -> None:
    answer = models("models/logs")
    assert (answer.returncode, answer.stdout) == (3, "")
    assert "no folder with a config.json and weights in models/logs" in answer.stderr
