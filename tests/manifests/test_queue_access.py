"""A role with queues of its own sends jobs to these alone, and leaves those of others alone."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from tests.support import access_cases
from tests.support.admission import Policy
from tests.support.applied import applied
from tests.support.cases import for_each
from tests.support.jobs import BATCH, JOB, SERVICE, having, job_cluster, prepared
from tests.support.kubernetes_schemas import MINORS, validate_core
from tests.support.pools import as_text, loads_own
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import AccessPlan
from ultrascale_k8s.queue_access import queue_access_objects

Thing = dict[str, Any]
ROLE = "arn:aws:iam::111122223333:role/"
QUEUES = [{"name": "research"}, {"name": "ops"}]
ARRAY = BATCH | {"array": {"size": 20, "parallelism": 4}}
GPU = {"limits": {"aws.amazon.com/neuron": 16}}
CPU = {"requests": {"cpu": "8"}}


def cluster(engine: str, *more: Mapping[str, Any]) -> dict[str, Any]:
    bound = {"role": f"{ROLE}Bound", "policy": "edit", "queue": "research"}
    free = {"role": f"{ROLE}Free", "policy": "edit", "namespaces": ["training"]}
    scheduling = {"queueing": engine, "queues": QUEUES, "ray": True}
    with_services = {
        "controllers": ["leader-worker-set", "keda"],
        "front": {"exposure": "cluster"},
    }
    serving = with_services if engine == "kueue" else {}
    return job_cluster(
        kubernetes={"access": [bound, free, *more]}, scheduling=scheduling, serving=serving
    )


@cache
def access(engine: str) -> AccessPlan:
    return assemble(loads_own(as_text(cluster(engine)))).access


@cache
def manifests(engine: str) -> Sequence[Any]:
    plan = access(engine).queues
    assert plan is not None
    return applied(queue_access_objects(plan))


def groups_of(engine: str, role: str) -> Sequence[str]:
    (found,) = (each for each in access(engine).entries if each.role == f"{ROLE}{role}")
    return found.groups


def refused(
    engine: str,
    resource: str,
    thing: Thing | None,
    *,
    group: str = "batch",
    role: str = "Bound",
    old: Thing | None = None,
    namespace: str = "training",
) -> bool:
    messages: list[str] = []
    for each in manifests(engine):
        if each["kind"] != "ValidatingAdmissionPolicy":
            continue
        (rule,) = each["spec"]["matchConstraints"]["resourceRules"]
        if rule["apiGroups"] == [group] and resource in rule["resources"]:
            groups = groups_of(engine, role)
            policy = Policy(each)
            messages += policy.refusals(thing, old=old, groups=groups, namespace=namespace)
    assert all("kubernetes.access" in message for message in messages)
    return bool(messages)


def sent(engine: str, job: Mapping[str, Any], queue: str) -> Thing:
    """Return the workload that `submit` sends for a job."""
    *_, workload = prepared(cluster(engine), dict(job) | {"queue": queue}).objects
    return dict(workload)


def pods(resources: Mapping[str, Any], **metadata: Any) -> Thing:
    spec = {"containers": [{"name": "main", "image": "example", "resources": dict(resources)}]}
    return {"metadata": metadata, "spec": spec}


def of_template(resources: Mapping[str, Any], **metadata: Any) -> Thing:
    return {"metadata": metadata, "spec": {"template": pods(resources)}}


JOBS: dict[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "Volcano Job": ("volcano", "batch.volcano.sh", "jobs", JOB),
    "array under Volcano": ("volcano", "batch", "jobs", ARRAY),
    "JobSet": ("kueue", "jobset.x-k8s.io", "jobsets", JOB),
    "Job under Kueue": ("kueue", "batch", "jobs", BATCH),
    "service": ("kueue", "leaderworkerset.x-k8s.io", "leaderworkersets", SERVICE),
}


@pytest.mark.parametrize("kind", JOBS)
def test_what_submit_sends_to_another_queue_is_refused(kind: str) -> None:
    engine, group, resource, job = JOBS[kind]
    own, other = sent(engine, job, "research"), sent(engine, job, "ops")

    assert not refused(engine, resource, own, group=group)
    assert refused(engine, resource, other, group=group)
    assert refused(engine, resource, other, group=group, old=own), "moved to another queue"
    assert refused(engine, resource, own, group=group, old=other), "taken from another queue"
    assert not refused(engine, resource, None, group=group, old=own)
    assert refused(engine, resource, None, group=group, old=other), "a job of others is deleted"
    assert not refused(engine, resource, other, group=group, role="Free")
    assert not refused(engine, resource, other, group=group, namespace="jobs-b"), "has no rights"


SERVED = SERVICE | {
    "autoscale": {"metric": "cpu", "target": 70, "max": 2},
    "model_names": ["chat"],
}
BESIDE: dict[str, tuple[str, str]] = {
    "ScaledObject": ("keda.sh", "scaledobjects"),
    "HTTPRoute": ("gateway.networking.k8s.io", "httproutes"),
}


def beside(kind: str, queue: str) -> Thing:
    """Return an object that `submit` sends with a service in a queue."""
    job = SERVED | {"queue": queue}
    objects = prepared(having(cluster("kueue"), job), job).objects
    (found,) = (each for each in objects if each["kind"] == kind)
    return dict(found)


@pytest.mark.parametrize("kind", BESIDE)
def test_what_comes_with_a_service_is_in_its_queue(kind: str) -> None:
    """Otherwise somebody scales the services of another queue, or takes their requests."""
    group, resource = BESIDE[kind]
    own, other = beside(kind, "research"), beside(kind, "ops")
    without: Thing = own | {"metadata": {"name": "chat"}}

    assert not refused("kueue", resource, own, group=group)
    assert not refused("kueue", resource, own, group=group, old=own)
    assert not refused("kueue", resource, None, group=group, old=own)
    for closed in (other, without):
        assert refused("kueue", resource, closed, group=group)
        assert refused("kueue", resource, own, group=group, old=closed), "taken over"
        assert refused("kueue", resource, None, group=group, old=closed), "deleted"
        assert not refused("kueue", resource, closed, group=group, role="Free")


def test_a_label_alone_scales_no_deployment() -> None:
    """Its pods on accelerators would pass by the queue."""
    group, resource = BESIDE["ScaledObject"]
    own = beside("ScaledObject", "research")

    # KEDA takes a target without a kind for a Deployment.
    for target in ({"kind": "Deployment", "name": "chat"}, {"name": "chat"}):
        scaled = own | {"spec": own["spec"] | {"scaleTargetRef": target}}
        assert refused("kueue", resource, scaled, group=group)


CHECK = {"labels": {"ultrascale.dev/check": "fabric"}}
JOBSET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "name": "of-ops",
    "uid": "1",
    "controller": True,
}


@for_each(
    {
        f"{what} under {engine}": (engine, *case)
        for engine in ("volcano", "kueue")
        for section in ("bound", "bound-ray")
        for what, case in access_cases.bound(engine, "research", section).items()
    }
)
def test_accelerators_past_the_queues_are_refused_and_all_else_is_free(
    engine: str, thing: Thing, allowed: bool
) -> None:
    group, _, _ = thing["apiVersion"].rpartition("/")
    resource = f"{thing['kind'].lower()}s"

    assert refused(engine, resource, thing, group=group) is not allowed
    assert not refused(engine, resource, thing, group=group, role="Free")


OTHERS: dict[str, tuple[str, str, str, Thing]] = {
    "Job of a JobSet": (
        "kueue",
        "batch",
        "jobs",
        of_template(GPU, ownerReferences=[JOBSET]),
    ),
    "service": ("kueue", "apps", "deployments", of_template(GPU)),
    "service under Volcano": ("volcano", "apps", "statefulsets", of_template(GPU)),
}


@for_each(OTHERS)
def test_what_others_run_on_accelerators_is_left_alone(
    engine: str, group: str, resource: str, thing: Thing
) -> None:
    emptied = thing | {"spec": of_template(CPU)["spec"]}

    assert refused(engine, resource, None, group=group, old=thing)
    assert refused(engine, resource, emptied, group=group, old=thing)
    assert not refused(engine, resource, None, group=group, old=thing, role="Free")


@pytest.mark.parametrize("engine", ["volcano", "kueue"])
def test_the_policies_are_bound_where_such_roles_send_jobs(engine: str) -> None:
    bindings = [each for each in manifests(engine) if each["kind"].endswith("Binding")]

    assert bindings
    for binding in bindings:
        selector = binding["spec"]["matchResources"]["namespaceSelector"]
        assert selector["matchExpressions"][0]["values"] == ["training"]
        assert binding["spec"]["validationActions"] == ["Deny"]


def test_the_type_check_knows_each_field_of_a_volcano_job() -> None:
    """The schema of a task's pods names none: an API server would warn of each."""
    assert "task.template.spec." not in str(manifests("volcano"))


@pytest.mark.parametrize("minor", MINORS)
def test_the_api_server_takes_the_policies(minor: str) -> None:
    every = [manifest for engine in ("volcano", "kueue") for manifest in manifests(engine)]

    assert [found for each in every for found in validate_core(each, minor)] == []
