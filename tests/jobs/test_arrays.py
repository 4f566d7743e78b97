"""Arrays: the same pod many times, on every engine."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_manifests import INDEXED_JOBS, PODS
from tests.support.job_rules import findings
from tests.support.jobs import (
    BATCH,
    KUEUE,
    VOLCANO,
    job_cluster,
    objects,
    prepared,
    refusals,
    sentences,
)
from tests.support.pools import SPOT, pool_document
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.cli.job_views import job_document, print_job
from ultrascale.cluster_api.objects import INDEXED_JOB
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs import logs
from ultrascale.jobs.status import job_status
from ultrascale.jobs.workloads import read_workload

SWEEP: dict[str, Any] = BATCH | {"array": {"size": 100, "parallelism": 8, "max_failed": 5}}
GPUS = pool_document(instance_types=["g6e.12xlarge"])
CLUSTERS: dict[str, dict[str, Any]] = {
    "kueue": job_cluster(GPUS, scheduling=KUEUE),
    "none": job_cluster(GPUS, scheduling=None),
    "volcano": job_cluster(GPUS),
    "spot on volcano": job_cluster(
        GPUS
        | {"purchase": SPOT, "role": "burst"}
        | {"instance_types": ["g6e.12xlarge", "g6e.24xlarge", "g6.12xlarge"]}
    ),
}


def spec_of(cluster: dict[str, Any], **changes: Any) -> Any:
    (job,) = objects(prepared(cluster, SWEEP, **changes), "Job")
    assert job["apiVersion"] == "batch/v1"
    return job["spec"]


@pytest.mark.parametrize("engine", CLUSTERS)
def test_an_array_keeps_its_parallelism_its_retries_and_its_failures_on_every_engine(
    engine: str,
) -> None:
    manifests = prepared(CLUSTERS[engine], SWEEP)
    spec = spec_of(CLUSTERS[engine])

    assert (spec["completions"], spec["parallelism"]) == (100, 8)
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (3, 5)
    assert spec["completionMode"] == "Indexed"
    # A node that EC2 takes costs an index none of its retries.
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert findings(manifests) == []


def test_volcano_places_the_pods_of_an_array_from_the_jobs_queue_one_by_one() -> None:
    queues = VOLCANO | {"queues": [{"name": "research"}]}
    template = spec_of(job_cluster(GPUS, scheduling=queues))["template"]
    annotations = template["metadata"]["annotations"]
    assert template["spec"]["schedulerName"] == "volcano"
    assert annotations["scheduling.volcano.sh/queue-name"] == "research"
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"
    # Kubernetes' own scheduler places one where no engine is.
    spec = spec_of(CLUSTERS["none"], array={"size": 6, "parallelism": None}, resources={"gpu": 1})
    (container,) = spec["template"]["spec"]["containers"]
    assert "schedulerName" not in spec["template"]["spec"]
    # Without parallelism it runs all of its pods at once, and they may share a node.
    assert (spec["completions"], spec["parallelism"], spec["maxFailedIndexes"]) == (6, 6, 5)
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_an_array_in_which_more_pods_may_fail_than_there_are_is_refused() -> None:
    assert refusals(CLUSTERS["none"], SWEEP, array={"size": 4}) == [
        "array.max_failed: array_can_end"
    ]


# --- how far it is ------------------------------------------------------------------------------


def sent(cluster: dict[str, Any], *conditions: tuple[str, str], **status: Any) -> Any:
    """Return an array as the API server has it."""
    (job,) = objects(prepared(cluster, SWEEP), "Job")
    holding = [{"type": kind, "status": "True", "reason": why} for kind, why in conditions]
    return {**job, "status": {**status, "conditions": holding}}


def test_the_status_of_an_array_says_how_many_indexes_are_done_and_which_failed() -> None:
    found = sent(
        CLUSTERS["none"], active=8, ready=6, completedIndexes="0-2,4,9-10", failedIndexes="3,5-6"
    )

    state = read_workload(INDEXED_JOB, found)

    assert str(state.array) == "6 completed, 3 failed, 6 running, 85 left of 100"
    assert (state.phase, state.up, state.array and state.array.failed_indexes) == (
        "Running",
        True,
        "3,5-6",
    )


ENDS = {
    "all are done": ([("Complete", "CompletionsReached")], "Completed", "succeeded"),
    "as many failed as may": ([("Failed", "FailedIndexes")], "Completed", "succeeded"),
    "more failed": ([("Failed", "MaxFailedIndexesExceeded")], "Failed", "failed"),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_array_succeeds_with_as_many_failed_indexes_as_may_fail(end: str) -> None:
    conditions, phase, result = ENDS[end]
    state = read_workload(INDEXED_JOB, sent(CLUSTERS["none"], *conditions))
    assert (state.phase, state.result) == (phase, result)
    # It is up with its first pod, as none waits for another.
    first = read_workload(INDEXED_JOB, sent(CLUSTERS["volcano"], active=8, ready=1))
    assert (first.least, first.up) == (1, True)


def put_pod(stub: StubApiServer, index: int, phase: str) -> str:
    """Give an array the pod of an index, and return its path."""
    labels = {
        "ultrascale.dev/job": "convert",
        "batch.kubernetes.io/job-name": "convert",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    path = f"{PODS}/convert-{index}"
    metadata = {"name": f"convert-{index}", "labels": labels}
    stub.put(path, {"metadata": metadata, "spec": {}, "status": {"phase": phase}})
    return path


def test_the_log_of_an_index_ends_with_it_while_the_others_go_on(tmp_path: Path) -> None:
    stub = StubApiServer()
    stub.put(f"{INDEXED_JOBS}/convert", sent(CLUSTERS["none"], active=8, ready=8))
    stub.write(put_pod(stub, 7, "Succeeded"), "2026-11-21T12:00:00Z done", ends=True)

    with serve(stub):
        cluster = Cluster.connected(kubeconfig(tmp_path, stub.url))
        lines = [*logs.lines(cluster, "training", "convert", logs.Choice(index=7), follow=True)]

    assert lines == ["done"]


def test_status_shows_an_array_with_its_queue_and_the_pods_that_are_not_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub = StubApiServer()
    array = sent(CLUSTERS["volcano"], active=2, ready=1, completedIndexes="0-6", failedIndexes="7")
    stub.put(f"{INDEXED_JOBS}/convert", array)
    for index, phase in ((0, "Succeeded"), (7, "Failed"), (9, "Pending")):
        put_pod(stub, index, phase)

    with serve(stub):
        status = job_status(
            Cluster.connected(kubeconfig(tmp_path, stub.url)), "training", "convert"
        )
    print_job(status)

    shown = " ".join(capsys.readouterr().out.split())
    assert status.queue == "default"
    assert status.indexes == (0, 7, 9)
    assert "7 completed, 1 failed, 1 running, 91 left of 100" in shown
    assert "at most 5 may fail; failed: 7" in shown
    assert "7 convert-7 failed" in shown
    assert "convert-0" not in shown
    document: Any = job_document(status)
    assert (document["array"]["completed"], document["array"]["left"]) == (7, 91)


def test_an_array_of_more_pods_at_once_than_its_queue_of_kueue_ever_has_is_refused() -> None:
    whole_nodes = SWEEP | {"array": {"size": 100}}

    (line,) = sentences(CLUSTERS["kueue"], whole_nodes)

    assert line.startswith("job: array.parallelism: 400 nvidia.com/gpu at once, more than queue ")
    assert line.endswith("got 100; write at most 16: the other pods wait until these end")
    assert spec_of(CLUSTERS["kueue"], array={"parallelism": 4})["parallelism"] == 4
