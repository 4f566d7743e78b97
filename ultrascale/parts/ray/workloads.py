"""RayJobs in the cluster: their state, and their pods.

Source: https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/apis/ray/v1/rayjob_types.go
"""

from collections.abc import Iterator

from ultrascale.cluster_api.objects import Kind, Object
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.jobs.workloads import Task, Workload, WorkloadState, held_back_by_queue
from ultrascale.parts.ray import facts


def _read(manifest: Object) -> WorkloadState:
    """Return the state of a RayJob: that of its entry point, and of the pods before it runs."""
    status = mapping(manifest, "status")
    stage = text(status, "jobDeploymentStatus")
    # The operator starts nothing of an object that it finds wrong.
    failed = stage in ("Failed", "ValidationFailed") or (
        stage == "Complete" and text(status, "jobStatus") in ("FAILED", "STOPPED")
    )
    ended = failed or stage == "Complete"
    waits = stage.startswith("Suspend") or (not stage and look_up(manifest, "spec", "suspend"))
    phases = {"Complete": "Completed", "Initializing": "Pending", "": "Pending"}
    wanted = sum(task.pods for task in _tasks(manifest))
    reasons = [text(status, key) for key in ("reason", "message")]
    failures = number(status, "failed")
    if failures and not ended:
        reasons.append(f"started anew at {text(status, 'startTime')}")
    return WorkloadState(
        phase="Failed" if failed else "Suspended" if waits else phases.get(stage, stage),
        result="failed" if failed else "succeeded" if ended else None,
        up=(ended and not failed) or stage == "Running",
        wanted=wanted,
        least=wanted,
        # The last failure counts too, after which nothing starts anew.
        retries=max(failures - failed, 0),
        most_retries=number(manifest, "spec", "backoffLimit"),
        reason=held_back_by_queue(manifest) if waits else ": ".join(filter(None, reasons)),
    )


def _tasks(manifest: Object) -> Iterator[Task]:
    cluster = mapping(manifest, "spec", "rayClusterSpec")
    head = mapping(cluster, "headGroupSpec", "template", "spec")
    yield Task(name=facts.HEAD_GROUP, role=facts.HEAD, pods=1, template=head)
    for group in objects(cluster, "workerGroupSpecs"):
        yield Task(
            name=text(group, "groupName"),
            pods=number(group, "replicas", default=1),
            template=mapping(group, "template", "spec"),
        )


WORKLOADS = (
    Workload(
        kind=Kind(facts.API_VERSION, "RayJob", "rayjobs"),
        read=_read,
        missing="KubeRay's operator is not installed; deploy the cluster file's stacks with the "
        "job in its jobs, or with scheduling.ray: true",
        name_label=facts.NAME_LABEL,
        task_label=facts.GROUP_LABEL,
        index_label=facts.INDEX_LABEL,
        program_container=facts.SUBMITTER,
        tasks=_tasks,
    ),
)
