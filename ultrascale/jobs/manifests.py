"""Manifests of a job: its objects, their kinds and their YAML."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from msgspec import field

from ultrascale import yaml_writer
from ultrascale.cluster_api.objects import (
    DISRUPTION_BUDGET,
    HTTP_ROUTE,
    NETWORK_POLICY,
    SCALED_OBJECT,
    SERVICE,
    Kind,
    Object,
)
from ultrascale.core.table import all_parts
from ultrascale.documents import Json, JsonObject, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.patches import notes_of, patched
from ultrascale.jobs.pod_template import (
    deadline,
    labels,
    meeting_service,
    mistake_codes,
    pod_template,
    workload_metadata,
)
from ultrascale.jobs.service import service_objects
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.plan.model import JobPlan, ScratchPlan
from ultrascale.plan.model.jobs import ArrayPlan

# --- Indexed Jobs of Kubernetes: single pods, arrays, and several nodes without a gang scheduler
# Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/


def indexed_objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the Service that gives the pods of several nodes their names, and the Job."""
    if plan.service_port is not None:
        yield meeting_service(plan, plan.service_port, labels(plan))
    spec: dict[str, Json] = {"restartPolicy": "Never"}
    if plan.service_port is not None:
        spec["subdomain"] = plan.name
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": workload_metadata(plan),
        "spec": {
            "completionMode": "Indexed",
            "completions": plan.pods if plan.array is None else plan.array.size,
            "parallelism": plan.pods,
            "backoffLimitPerIndex": plan.restarts,
            "maxFailedIndexes": 0 if plan.array is None else plan.array.max_failed,
            "podFailurePolicy": {"rules": [*_failure_rules(plan)]},
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
            **deadline(plan),
            "template": pod_template(plan, spec=spec),
        },
    }


def _failure_rules(plan: JobPlan) -> Iterator[dict[str, Json]]:
    # The drain or the loss of a node is no fault of the program's.
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    yield {"action": "Ignore", "onPodConditions": [disrupted]}
    role = plan.roles[0]
    if role.mistake_exit_code is not None:
        codes = mistake_codes(role, role.mistake_exit_code)
        yield {"action": "FailJob", "onExitCodes": codes}


# --- Manifests of a job: its objects, their kinds and their YAML ----------------------------------


Manifest = JsonObject


class CheckManifests(Frozen):
    """A check of nodes that has to pass before a job is sent."""

    check: Literal["fabric", "device"]  # Kind of the check
    job: "JobManifests"  # The job of the check
    seconds: int  # Longest time that it holds its nodes, from the start of its pods
    note: str  # Its purpose, longest time and largest cost, as a sentence


class JobManifests(Frozen):
    """The objects of a job, and the resources that they need in the cluster."""

    # Name of the job, and value of the label `names.JOB_LABEL` on each of its objects and pods.
    name: str
    namespace: str  # Their namespace
    # `training` and `batch` end by themselves, a `service` does not, and `dev` once nobody uses it.
    kind: str
    objects: tuple[Manifest, ...]  # The objects, in the order of their sending
    pods: int  # Number of its pods; for an array the pods of the same time
    # Name of the program's container in each of them; empty where roles have containers of their
    # own, each the first of its pod.
    container: str
    claims: tuple[str, ...]  # PersistentVolumeClaims that it mounts
    queue: str | None  # Queue from which a scheduler takes its pods; None without
    local_queue: str | None  # Queue with quotas that it waits in; None without
    priority_class: str | None  # PriorityClass of its pods; None for the cluster's default
    service_account: str | None  # Service account of its pods; None for the namespace's own
    notes: tuple[str, ...]  # Notes for the user, each a sentence
    # Secrets that its pods read, with the keys of each.
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # GB of local NVMe that its nodes need below the volumes of pods; None: any.
    scratch_gb: int | None = None
    launches: bool = False  # Whether nodes are launched because its pods wait for them
    array: ArrayPlan | None = None  # Its pods as an array; None for other jobs
    checks: tuple[CheckManifests, ...] = ()  # Checks of nodes before it is sent, in their order
    check_tries: int = 0  # Runs of the checks, where others can take the place of bad nodes


def render(plan: JobPlan) -> JobManifests:
    """Return the objects of ``plan``, in the order of their sending."""
    claims = dict.fromkeys(mount.claim for role in plan.roles for mount in role.pod.mounts)
    containers = {role.container for role in plan.roles}
    return JobManifests(
        name=plan.name,
        namespace=plan.namespace,
        kind=plan.kind,
        objects=tuple(patched(rendered_objects(plan), plan.patch)),
        pods=plan.pods,
        container=plan.container if len(containers) == 1 else "",
        claims=tuple(claims),
        queue=plan.queue,
        local_queue=plan.local_queue.name if plan.local_queue is not None else None,
        priority_class=plan.pod.priority_class,
        service_account=plan.pod.service_account,
        secrets=_secrets(plan),
        scratch_gb=min((scratch.gb for scratch in _scratch(plan)), default=None),
        notes=(*plan.notes, *notes_of(plan.patch)),
        launches=plan.launches,
        array=plan.array,
        checks=tuple(
            CheckManifests(
                check=step.check, job=render(step.job), seconds=step.seconds, note=step.note
            )
            for step in (plan.gate.steps if plan.gate is not None else ())
        ),
        check_tries=plan.gate.tries if plan.gate is not None else 0,
    )


def _secrets(plan: JobPlan) -> dict[str, tuple[str, ...]]:
    keys: dict[str, dict[str, None]] = {}
    for role in plan.roles:
        for variable, secret in role.pod.secrets.items():
            keys.setdefault(secret, {})[variable] = None
    return {secret: tuple(names) for secret, names in keys.items()}


def _scratch(plan: JobPlan) -> Iterator[ScratchPlan]:
    yield from (role.pod.scratch for role in plan.roles if role.pod.scratch is not None)


def rendered_objects(plan: JobPlan) -> list[dict[str, Json]]:
    """Return the objects of ``plan`` before any patch of the user's."""
    if plan.serving is not None:
        return [*service_objects(plan, plan.serving)]
    for part in all_parts():
        if plan.controller in {controller.name for controller in part.job_controllers}:
            objects: Callable[[JobPlan], Iterable[dict[str, Json]]] = part.module("job").objects
            return [*objects(plan)]
    return [*indexed_objects(plan)]


def as_yaml(objects: Iterable[Manifest]) -> str:
    """Return ``objects`` as one YAML document each."""
    return yaml_writer.dump_all(map(dict, objects))


@cache
def sent_kinds() -> Sequence[Kind]:
    """Return all kinds of a job's objects.

    No other kind is ever sent, so that no object of a cancelled job stays. Claims are not among
    them: they hold data.
    """
    beside = (SERVICE, DISRUPTION_BUDGET, NETWORK_POLICY, HTTP_ROUTE, SCALED_OBJECT)
    return (*workload_kinds(), *beside)


@cache
def _kinds_by_name() -> Mapping[tuple[str, str], Kind]:
    return {(kind.api_version, kind.kind): kind for kind in sent_kinds()}


def kind_of(manifest: Object) -> Kind:
    """Return the kind of an object of a job.

    Raises:
        LookupError: It is none of `sent_kinds`.
    """
    key = (text(manifest, "apiVersion"), text(manifest, "kind"))
    try:
        return _kinds_by_name()[key]
    except KeyError:
        raise LookupError(f"{' '.join(key)}: not a kind of which a job consists") from None
