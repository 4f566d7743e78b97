"""Output of training jobs: where it is written, and jobs that would lose it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.config_jobs import LUSTRE
from tests.support.folders import ROOT
from tests.support.jobs import (
    IMAGE,
    VOLCANO,
    container,
    job_cluster,
    large_cluster,
    pod_spec,
    prepared,
    refusals,
)
from ultrascale.jobs.checked_file import check_file

BUCKET: dict[str, Any] = {"buckets": ["datasets", "checkpoints"]}
MOUNTED_BUCKET: dict[str, Any] = {
    "buckets": [
        {
            "name": "models",
            "claim": {"namespace": "training", "name": "models", "mount_path": "/models"},
        }
    ]
}
JOB: dict[str, Any] = {
    "name": "tune",
    "pool": "train",
    "nodes": 2,
    "image": IMAGE,
    "script": "train.py",
    "durable": True,
}
OURS: dict[str, Any] = JOB | {"script": "ultrascale_bert.pretrain"}


def variables(storage: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    sent = prepared(job_cluster(storage=storage), job)
    return {each["name"]: each.get("value") for each in container(sent)["env"]}


@pytest.mark.parametrize(
    ("storage", "job", "place"),
    [
        pytest.param(LUSTRE, JOB, "/data/output/tune", id="the file system"),
        pytest.param(LUSTRE | BUCKET, JOB, "/data/output/tune", id="not the slower bucket"),
        pytest.param(BUCKET, JOB, "s3://$(ULTRASCALE_BUCKET)/training/tune", id="the bucket"),
        pytest.param(
            MOUNTED_BUCKET | BUCKET | {"buckets": [*MOUNTED_BUCKET["buckets"], "checkpoints"]},
            JOB,
            "s3://$(ULTRASCALE_BUCKET)/training/tune",
            id="no bucket that is mounted, into which torch can write no checkpoint",
        ),
        pytest.param(MOUNTED_BUCKET, JOB, "/models/output/tune", id="a mounted bucket at last"),
        pytest.param(LUSTRE, JOB | {"output": "/data/a/b"}, "/data/a/b", id="where the job says"),
        pytest.param(
            LUSTRE | BUCKET,
            JOB | {"output": "s3://checkpoints/seven"},
            "s3://$(ULTRASCALE_BUCKET)/seven",
            id="a prefix of the bucket",
        ),
        pytest.param(
            LUSTRE,
            JOB | {"output": "s3://other-bucket/x", "service_account": "mine"},
            "s3://other-bucket/x",
            id="a bucket of the user's",
        ),
        pytest.param(
            LUSTRE,
            OURS | {"args": ["--data-dir=/data/d", "--output-dir", "/data/run"]},
            "/data/run",
            id="an argument of our program",
        ),
        pytest.param(
            LUSTRE,
            JOB | {"script": "ultrascale_training.pretrain", "args": ["--output-dir=/data/run"]},
            "/data/run",
            id="an argument of our program by its former name",
        ),
        pytest.param(
            {},
            JOB | {"volumes": [{"claim": "mine", "mount_path": "/mine", "existing": True}]},
            "/mine/output/tune",
            id="a claim of the user's",
        ),
    ],
)
def test_a_program_is_told_where_its_output_stays(
    storage: dict[str, Any], job: dict[str, Any], place: str
) -> None:
    assert variables(storage, job)["ULTRASCALE_OUTPUT"] == place


@pytest.mark.parametrize(
    ("storage", "job", "line"),
    [
        pytest.param({}, JOB, "job: durable: no place", id="nothing to write to"),
        pytest.param(
            LUSTRE,
            JOB | {"volumes": [{"claim": "data", "mount_path": "/data", "read_only": True}]},
            "job: durable: no place",
            id="only to read",
        ),
        pytest.param(
            LUSTRE,
            OURS | {"args": ["--data-dir=/data/d", "--output-dir=/tmp/run"]},
            "job: args[1]: on no volume",
            id="an argument beside the volume",
        ),
        pytest.param(
            LUSTRE, JOB | {"output": "/dataset"}, "job: output: on no volume", id="another path"
        ),
        pytest.param(
            BUCKET,
            JOB | {"output": "s3://datasets/x"},
            "job: output: a bucket that pods of jobs have no rights on, got 's3://datasets/x'; "
            "use s3://checkpoints",
            id="a bucket of data",
        ),
        pytest.param(
            LUSTRE,
            JOB | {"output": "s3://other/x"},
            "job: output: a bucket that pods of jobs have no rights on",
            id="a foreign bucket without an account",
        ),
    ],
)
def test_a_job_that_would_lose_what_it_learns_is_refused(
    storage: dict[str, Any], job: dict[str, Any], line: str
) -> None:
    found = refusals(job_cluster(storage=storage), job)

    assert [each[: len(line)] for each in found] == [line]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(JOB | {"durable": False}, id="no place"),
        pytest.param(
            OURS | {"durable": False, "args": ["--data-dir=/d", "--output-dir=/tmp/run"]},
            id="a place in the pod",
        ),
    ],
)
def test_a_job_that_wants_to_keep_nothing_is_sent(job: dict[str, Any]) -> None:
    assert not refusals(job_cluster(), job)


def test_check_warns_of_a_template_without_a_place(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    template = {key: value for key, value in JOB.items() if key not in ("name", "durable")}
    file.write_text(yaml.safe_dump(job_cluster(jobs={"tune": template})))

    [warning] = [each for each in check_file(file).warnings if "durable" in str(each)]

    assert "jobs.tune.durable" in str(warning)
    assert warning.severity == "warning"


def test_pods_find_the_bucket_before_the_variable_that_names_it() -> None:
    """Kubernetes replaces a variable by those of the list that stand before it alone.

    Source: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    sent = prepared(job_cluster(storage=BUCKET), JOB)
    env = [each["name"] for each in container(sent)["env"]]
    by_name = {each["name"]: each for each in container(sent)["env"]}

    assert env.index("ULTRASCALE_BUCKET") < env.index("ULTRASCALE_OUTPUT")
    assert by_name["ULTRASCALE_BUCKET"]["valueFrom"] == {
        "configMapKeyRef": {"name": "ultrascale-bucket-checkpoints", "key": "name"}
    }
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


def test_every_pod_knows_itself_and_its_node() -> None:
    sent = prepared(job_cluster(scheduling=VOLCANO), JOB | {"durable": False})
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container(sent)["env"]
        if "fieldRef" in each.get("valueFrom", {})
    }

    assert fields["ULTRASCALE_NODE"] == "spec.nodeName"
    assert fields["ULTRASCALE_POD"] == "metadata.name"


def test_an_example_writes_where_its_argument_says() -> None:
    sent = prepared(ROOT / "clusters/trainium-bert.yaml", ROOT / "jobs/bert-pretrain.yaml")
    found = {each["name"]: each.get("value") for each in container(sent)["env"]}

    assert found["ULTRASCALE_OUTPUT"] == "/data/output"


def test_the_largest_cluster_keeps_its_checkpoints_in_its_bucket() -> None:
    job = JOB | {"pool": "p5en", "nodes": 100}
    sent = prepared(ROOT / "clusters/ultra-100k.yaml", job)
    found = {each["name"]: each.get("value") for each in container(sent)["env"]}

    assert found["ULTRASCALE_OUTPUT"] == "s3://$(ULTRASCALE_BUCKET)/training/tune"
    assert any("S3 writer" in note for note in sent.notes)


def test_roles_need_one_place_that_of_the_role_whose_success_ends_the_job() -> None:
    roles = {"trainer": {"script": "rl.train"}, "reward": {"command": ["reward"]}}
    job = {"name": "rl", "pool": "train", "image": IMAGE, "roles": roles, "durable": True}

    assert len(refusals(job_cluster(), job)) == 1
    assert not refusals(job_cluster(storage=LUSTRE), job)


@pytest.mark.parametrize(
    ("nodes", "restarts", "budget", "count"),
    [
        pytest.param(2, {}, "3167", 10, id="few nodes earn none"),
        pytest.param(4000, {}, "3167", 10 + 909, id="thousands earn some each day"),
        pytest.param(4000, {"budget": 100_000}, "100000", 10 + 28, id="a better fleet"),
        pytest.param(4000, {"job": 5}, "3167", 5, id="a number of the user's"),
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
