"""Arrays: the same pod many times, on every engine."""

from typing import Any

import pytest

from tests.support.job_rules import findings
from tests.support.jobs import (
    BATCH,
    KUEUE,
    VOLCANO,
    job_cluster,
    objects,
    pod_spec,
    prepared,
    refusals,
)
from tests.support.pools import SPOT, pool_document

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

    spec = spec_of(job_cluster(GPUS, scheduling=queues))

    annotations = spec["template"]["metadata"]["annotations"]
    assert spec["template"]["spec"]["schedulerName"] == "volcano"
    assert annotations["scheduling.volcano.sh/queue-name"] == "research"
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_kubernetes_own_scheduler_places_an_array_where_no_engine_is() -> None:
    assert "schedulerName" not in pod_spec(prepared(CLUSTERS["none"], SWEEP))


def test_an_array_without_parallelism_runs_all_of_its_pods_at_once() -> None:
    spec = spec_of(CLUSTERS["none"], array={"size": 6, "parallelism": None})

    assert (spec["completions"], spec["parallelism"], spec["maxFailedIndexes"]) == (6, 6, 5)


def test_pods_of_an_array_may_share_a_node() -> None:
    (container,) = pod_spec(prepared(CLUSTERS["none"], SWEEP, resources={"gpu": 1}))["containers"]

    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_an_array_in_which_more_pods_may_fail_than_there_are_is_refused() -> None:
    assert refusals(CLUSTERS["none"], SWEEP, array={"size": 4}) == [
        "job: array.max_failed: more than the 4 pods of the array, got 5; write at most 4"
    ]
