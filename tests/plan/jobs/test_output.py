"""Output of training jobs: where it is written, and jobs that would lose it."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.config_jobs import LUSTRE
from tests.support.folders import ROOT
from tests.support.jobs import (
    IMAGE,
    VOLCANO,
    container,
    environment,
    job_cluster,
    large_cluster,
    pod_spec,
    prepared,
    refusals,
    sentences,
)
from tests.support.jobs import JOB as SCRIPTED
from tests.support.pools import as_text
from ultrascale.jobs.checked_file import check_file

BUCKET: dict[str, Any] = {"buckets": ["datasets", "checkpoints"]}
_CLAIM = {"namespace": "training", "name": "models", "mount_path": "/models"}
MOUNTED_BUCKET: dict[str, Any] = {"buckets": [{"name": "models", "claim": _CLAIM}]}
JOB: dict[str, Any] = SCRIPTED | {"durable": True}
OURS: dict[str, Any] = JOB | {"script": "ultrascale_bert.pretrain"}


def variables(storage: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    sent = prepared(job_cluster(storage=storage), job)
    return {each["name"]: each.get("value") for each in container(sent)["env"]}


IN_BUCKET = "s3://$(ULTRASCALE_BUCKET)"
BOTH_BUCKETS = {"buckets": [*MOUNTED_BUCKET["buckets"], "checkpoints"]}
THEIRS = {"output": "s3://other-bucket/x", "service_account": "mine"}
ARGUMENT = {"args": ["--data-dir=/data/d", "--output-dir", "/data/run"]}
FORMER = {"script": "ultrascale_training.pretrain", "args": ["--output-dir=/data/run"]}
OWN_CLAIM = {"volumes": [{"claim": "mine", "mount_path": "/mine", "existing": True}]}
PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the file system": (LUSTRE, JOB, "/data/output/tune"),
    "not the slower bucket": (LUSTRE | BUCKET, JOB, "/data/output/tune"),
    "the bucket": (BUCKET, JOB, f"{IN_BUCKET}/training/tune"),
    "no bucket that is mounted, into which torch can write no checkpoint": (
        BOTH_BUCKETS,
        JOB,
        f"{IN_BUCKET}/training/tune",
    ),
    "a mounted bucket at last": (MOUNTED_BUCKET, JOB, "/models/output/tune"),
    "where the job says": (LUSTRE, JOB | {"output": "/data/a/b"}, "/data/a/b"),
    "a prefix of the bucket": (
        LUSTRE | BUCKET,
        JOB | {"output": "s3://checkpoints/seven"},
        f"{IN_BUCKET}/seven",
    ),
    "a bucket of the user's": (LUSTRE, JOB | THEIRS, "s3://other-bucket/x"),
    "an argument of our program": (LUSTRE, OURS | ARGUMENT, "/data/run"),
    "an argument of our program by its former name": (LUSTRE, JOB | FORMER, "/data/run"),
    "a claim of the user's": ({}, JOB | OWN_CLAIM, "/mine/output/tune"),
}


@for_each(PLACES)
def test_a_program_is_told_where_its_output_stays(
    storage: dict[str, Any], job: dict[str, Any], place: str
) -> None:
    assert variables(storage, job)["ULTRASCALE_OUTPUT"] == place


READ_ONLY = {"volumes": [{"claim": "data", "mount_path": "/data", "read_only": True}]}
BESIDE = {"args": ["--data-dir=/data/d", "--output-dir=/tmp/run"]}
NO_RIGHTS = "pods of jobs have no rights on"
LOST: dict[str, tuple[dict[str, Any], dict[str, Any], str, tuple[str, ...]]] = {
    "nothing to write to": ({}, JOB, "durable", ("checkpoints would be lost",)),
    "only to read": (LUSTRE, JOB | READ_ONLY, "durable", ("checkpoints would be lost",)),
    "an argument beside the volume": (LUSTRE, OURS | BESIDE, "args[1]", ("on no writable volume",)),
    "another path": (LUSTRE, JOB | {"output": "/dataset"}, "output", ("on no writable volume",)),
    "a bucket of data": (
        BUCKET,
        JOB | {"output": "s3://datasets/x"},
        "output",
        (NO_RIGHTS, ", got 's3://datasets/x'; use s3://checkpoints"),
    ),
    "a foreign bucket without an account": (
        LUSTRE,
        JOB | {"output": "s3://other/x"},
        "output",
        (NO_RIGHTS,),
    ),
}


@for_each(LOST)
def test_a_job_that_would_lose_what_it_learns_is_refused(
    storage: dict[str, Any], job: dict[str, Any], key: str, words: tuple[str, ...]
) -> None:
    cluster = job_cluster(storage=storage)
    assert refusals(cluster, job) == [f"{key}: output_outlives_its_pods"]
    (line,) = sentences(cluster, job)
    assert all(part in line for part in words), line


def test_a_job_that_wants_to_keep_nothing_is_sent() -> None:
    assert not refusals(job_cluster(), JOB | {"durable": False})
    assert not refusals(job_cluster(), OURS | {"durable": False} | BESIDE)


def test_check_warns_of_a_template_without_a_place(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    template = {key: value for key, value in JOB.items() if key not in ("name", "durable")}
    file.write_text(as_text(job_cluster(jobs={"tune": template})))
    [warning] = [each for each in check_file(file).warnings if "durable" in str(each)]
    assert (warning.key, warning.severity) == ("jobs.tune.durable", "warning")


def test_every_pod_knows_itself_and_its_node() -> None:
    found = environment(prepared(job=JOB | {"durable": False}))
    assert found["ULTRASCALE_NODE"] == "spec.nodeName"
    assert found["ULTRASCALE_POD"] == "metadata.name"


def test_pods_find_the_bucket_before_the_variable_that_names_it() -> None:
    """Kubernetes replaces a variable by those of the list that stand before it alone.

    Source: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    sent = prepared(job_cluster(storage=BUCKET), JOB)
    by_name = {each["name"]: each for each in container(sent)["env"]}
    env = [*by_name]
    assert env.index("ULTRASCALE_BUCKET") < env.index("ULTRASCALE_OUTPUT")
    named = {"name": "ultrascale-bucket-checkpoints", "key": "name"}
    assert by_name["ULTRASCALE_BUCKET"]["valueFrom"] == {"configMapKeyRef": named}
    assert pod_spec(sent)["serviceAccountName"] == "training-output"


@pytest.mark.parametrize(
    ("storage", "folder"),
    [(LUSTRE, "/data/output/tune/flight-recorder"), (BUCKET, "/tmp/flight-recorder")],
)
def test_a_trace_of_a_hang_has_a_folder_before_training_starts(
    storage: dict[str, Any], folder: str
) -> None:
    found = variables(storage, JOB)
    command = container(prepared(job_cluster(storage=storage), JOB))["command"][2]

    assert found["TORCH_FR_DUMP_TEMP_FILE"] == f"{folder}/rank_"
    assert found["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] == f"{folder}/rank_"
    assert command.index(f"mkdir -p {folder}") < command.index("exec torchrun")


@pytest.mark.parametrize(
    ("cluster", "job", "place"),
    [
        ("trainium-bert", ROOT / "jobs/bert-pretrain.yaml", "/data/output"),
        ("ultra-100k", JOB | {"pool": "p5en", "nodes": 100}, f"{IN_BUCKET}/training/tune"),
    ],
)
def test_examples_keep_their_checkpoints(cluster: str, job: Any, place: str) -> None:
    sent = prepared(ROOT / f"clusters/{cluster}.yaml", job)
    found = {each["name"]: each.get("value") for each in container(sent)["env"]}
    assert found["ULTRASCALE_OUTPUT"] == place
    assert any("S3 writer" in note for note in sent.notes) == place.startswith("s3:")


def test_roles_need_one_place_that_of_the_role_whose_success_ends_the_job() -> None:
    roles = {"trainer": {"script": "rl.train"}, "reward": {"command": ["reward"]}}
    job = {"name": "rl", "pool": "train", "image": IMAGE, "roles": roles, "durable": True}

    assert len(refusals(job_cluster(), job)) == 1
    assert not refusals(job_cluster(storage=LUSTRE), job)


@pytest.mark.parametrize(
    ("nodes", "restarts", "budget", "count"),
    [
        # Few nodes earn none, thousands some each day, a better fleet fewer.
        (2, {}, "3167", 10),
        (4000, {}, "3167", 10 + 909),
        (4000, {"budget": 100_000}, "100000", 10 + 28),
        (4000, {"job": 5}, "3167", 5),
    ],
)
def test_restarts_grow_with_what_a_fleet_of_that_size_loses(
    nodes: int, restarts: dict[str, Any], budget: str, count: int
) -> None:
    job = JOB | {"nodes": nodes, "restarts": restarts, "durable": False}
    sent = prepared(large_cluster(scheduling=VOLCANO), job)
    found = {each["name"]: each.get("value") for each in container(sent)["env"]}
    workload: Any = next(each for each in sent.objects if "maxRetry" in str(each))
    assert found["ULTRASCALE_RESTART_BUDGET"] == budget
    assert workload["spec"]["maxRetry"] == count + 1
