"""Our JobSet beside upstream's own examples: each field that differs has a reason."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.jobs import KUEUE, job_cluster, make_job, objects, prepared

EXAMPLES = [*yaml.safe_load_all((ROOT / "tests" / "data" / "jobset_examples.yaml").read_text())]
ROLE = "spec.replicatedJobs[]"
JOB = f"{ROLE}.template.spec"
RULE = "spec.failurePolicy.rules[]"

# Of a field that upstream has and we write otherwise, or not at all.
OTHERWISE = {
    "metadata.name": "the user's",
    f"{ROLE}.name": "the user's",
    f"{JOB}.completions": "the user's",
    f"{JOB}.parallelism": "the user's",
    "spec.ttlSecondsAfterFinished": "the user's",
    "spec.failurePolicy.maxRestarts": "the user's",
    "spec.network.subdomain": "JobSet's default is the name of the job, by which pods meet",
    f"{RULE}.targetReplicatedJobs[]": "a rule without it is for every role",
    f"{RULE}.action": "RestartJobSet is what happens where no rule fits",
    f"{JOB}.podFailurePolicy.rules[].onPodConditions": "an empty list says nothing",
    f"{JOB}.podFailurePolicy.rules[].onExitCodes.containerName": "a pod has one program",
    f"{JOB}.podFailurePolicy.rules[].onExitCodes.values[]": "the exit code of our own programs",
    f"{JOB}.template.spec.containers[].env[].name": "torchrun's options name the first pod",
    f"{JOB}.template.spec.containers[].env[].value": "torchrun's options name the first pod",
}
# Of a field that we write and no example has.
OURS = {
    "metadata.namespace": "that of the user's jobs",
    "metadata.labels": "Kueue's queue, and the label by which a job's objects are found",
    "spec.failurePolicy.restartStrategy": "the next pods find no node while the old ones hold it",
    f"{RULE}.name": "conditions and events tell a rule by it",
    f"{RULE}.onJobFailureMessagePatterns[]": "tells a lost node from a fault of the program",
    f"{JOB}.completionMode": "the webhook's default, written out",
    f"{JOB}.podReplacementPolicy": "a pod on a node that is gone is not followed by a second one",
    f"{JOB}.podFailurePolicy.rules[].onPodConditions[].status": "Kubernetes' default, written out",
}


def fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its path, without the indexes of lists."""
    if isinstance(value, dict) and value and not path.endswith("labels"):
        for key, item in cast(dict[str, Any], value).items():
            yield from fields(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for item in cast(list[Any], value):
            yield from fields(item, f"{path}[]")
    else:
        yield path, value


@pytest.fixture(scope="module")
def ours() -> dict[str, set[Any]]:
    cluster = job_cluster(scheduling=KUEUE)
    (jobset,) = objects(prepared(cluster, make_job(queue="research")), "JobSet")
    found: dict[str, set[Any]] = {}
    for path, value in fields(jobset):
        found.setdefault(path, set()).add(str(value))
    return found


def test_what_upstream_writes_we_write_or_say_why_not(ours: dict[str, set[Any]]) -> None:
    said: set[str] = set()
    for example in EXAMPLES:
        for path, value in fields(example):
            if str(value) not in ours.get(path, ()):
                said.add(path)

    assert said == set(OTHERWISE)


def test_what_no_example_has_is_ours_for_a_reason(ours: dict[str, set[Any]]) -> None:
    theirs = {path for example in EXAMPLES for path, _ in fields(example)}
    pod = f"{JOB}.template."

    added = {path for path in ours if path not in theirs and not path.startswith(pod)}

    assert added == set(OURS)
