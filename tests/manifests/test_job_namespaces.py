"""In namespaces of jobs people leave the platform's objects and its programs alone."""

from typing import Any

import pytest

from tests.support.admission import Policy
from tests.support.applied import applied
from tests.support.assembly import Assembly
from tests.support.cases import for_each
from tests.support.kubernetes_schemas import MINORS, validate_core
from ultrascale.plan.model import NamespacePlan, PriorityClassPlan
from ultrascale.plan.names import ACCESS_GROUP
from ultrascale_k8s.job_namespaces import job_namespace_objects, scaler_objects

Thing = dict[str, Any]
MANIFESTS = applied(
    job_namespace_objects(
        [
            NamespacePlan(name="training", pod_security="baseline", training=True),
            NamespacePlan(name="backend", pod_security="restricted"),
        ],
        [PriorityClassPlan(name="critical", value=1_000_000, preempts=True)],
    )
)
OWN, PRIORITIES = (Policy(each) for each in MANIFESTS if "validations" in each["spec"])
PERSON = [ACCESS_GROUP]
POD = ["system:serviceaccounts:training"]


def thing(name: str, *, own: bool = False) -> Thing:
    labels = {"app.kubernetes.io/part-of": "ultrascale"} if own else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


# By what is taken: its kind, and the object.
OBJECTS = {
    "the isolation of all pods": ("networkpolicies", thing("default-deny-ingress")),
    "the way of NCCL between pods": ("networkpolicies", thing("allow-same-namespace")),
    "the policy of etcd": ("networkpolicies", thing("etcd-server", own=True)),
    "a claim of all jobs": ("persistentvolumeclaims", thing("training", own=True)),
    "the identity that writes checkpoints": ("serviceaccounts", thing("output", own=True)),
    "the rights of others": ("rolebindings", thing("ultrascale-jobs-edit", own=True)),
    "the rendezvous": ("statefulsets", thing("etcd-server", own=True)),
}


@for_each(OBJECTS)
def test_nobody_takes_the_platforms_objects_from_all(resource: str, there: Thing) -> None:
    for groups in (PERSON, POD):
        assert OWN.refusals(None, old=there, resource=resource, groups=groups)
        bare = {"metadata": {"name": there["metadata"]["name"]}, "spec": {}}
        assert OWN.refusals(bare, old=there, resource=resource, groups=groups), "label removed"
    assert not OWN.refusals(None, old=there, resource=resource), "an administrator"


@pytest.mark.parametrize("resource", ["networkpolicies", "persistentvolumeclaims", "jobs"])
def test_people_change_and_delete_their_own_objects(resource: str) -> None:
    mine = thing("mine")

    assert not OWN.refusals(None, old=mine, resource=resource, groups=PERSON)
    assert not OWN.refusals(mine, old=mine, resource=resource, groups=PERSON)
    assert not OWN.refusals(mine, resource=resource, groups=PERSON)


def pod(owner: str = "", **spec: Any) -> Thing:
    owners = [{"kind": "StatefulSet", "name": owner}] if owner else []
    return {"metadata": {"name": "it", "ownerReferences": owners}, "spec": spec}


SYSTEM: Thing = {"priorityClassName": "system-node-critical", "priority": 2_000_001_000}


@for_each(
    {
        "no priority": (pod(), True, True),
        "the highest of ours": (pod(priorityClassName="critical", priority=1_000_000), True, True),
        "one of Kubernetes": (pod(**SYSTEM), False, False),
        "its name alone": (pod(priorityClassName="system-cluster-critical"), False, False),
        "a class that somebody made above ours": (pod(priority=1_000_001), False, False),
        "the rendezvous": (pod("etcd-server", **SYSTEM), False, True),
        "another StatefulSet": (pod("mine", **SYSTEM), False, False),
    }
)
def test_no_job_evicts_the_platforms_programs(
    made: Thing, by_person: bool, by_controller: bool
) -> None:
    assert (not PRIORITIES.refusals(made, groups=PERSON)) == by_person
    assert (not PRIORITIES.refusals(made)) == by_controller


URL = "http://chat.training.svc:8000/metrics"


@for_each(
    {
        "its own metrics": ({"type": "metrics-api", "metadata": {"url": URL}}, True),
        "CPU": ({"type": "cpu", "metadata": {"value": "60"}}, True),
        "another service": (
            {"type": "metrics-api", "metadata": {"url": URL.replace("chat", "mine")}},
            False,
        ),
        "a host behind its name": (
            {"type": "metrics-api", "metadata": {"url": f"{URL[:-8]}@example.com/metrics"}},
            False,
        ),
        "the instance's credentials": (
            {"type": "metrics-api", "metadata": {"url": "http://169.254.169.254/latest"}},
            False,
        ),
        "another scaler": (
            {"type": "prometheus", "metadata": {"serverAddress": "http://example.com"}},
            False,
        ),
        "a Secret": (
            {"type": "metrics-api", "metadata": {"url": URL}, "authenticationRef": {"name": "a"}},
            False,
        ),
    }
)
def test_nobody_sends_the_platforms_requests_elsewhere(trigger: Thing, allowed: bool) -> None:
    namespaces = [NamespacePlan(name="training", pod_security="baseline", training=True)]
    scalers = Policy(applied(scaler_objects(namespaces))[0])
    made = {"metadata": {"name": "chat"}, "spec": {"triggers": [trigger]}}

    assert (not scalers.refusals(made, groups=PERSON)) == allowed


def test_the_policies_are_where_people_are(estate: Assembly, hybrid: Assembly) -> None:
    assert "job-namespaces" in estate.charts
    assert "job-namespaces" not in hybrid.charts
    for each in MANIFESTS:
        assert [validate_core(each, minor) for minor in MINORS] == [[] for _ in MINORS]
    (first, *_) = (each for each in MANIFESTS if each["kind"].endswith("Binding"))
    (term,) = first["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert term["values"] == ["training"]
