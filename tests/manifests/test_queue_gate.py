"""The admission policies of Kueue's queues refuse what passes the queues by, and nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import access_cases
from tests.support.admission import Policy
from tests.support.applied import applied
from tests.support.cases import for_each
from tests.support.kubernetes_schemas import MINORS, validate_core
from tests.support.queued_pools import NEURON, POOLS, kueue_of
from ultrascale.parts.kueue.model import LEADER_WORKER_SETS, RAY_JOBS
from ultrascale.plan.names import ACCESS_GROUP
from ultrascale_k8s.kueue.admission import queue_gate_objects

KUEUE = kueue_of(pools=(*POOLS, NEURON))
MANIFESTS: list[dict[str, Any]] = applied(queue_gate_objects(KUEUE))
POLICIES = {
    each["metadata"]["name"].removeprefix("ultrascale-queued-"): Policy(each)
    for each in MANIFESTS
    if each["kind"] == "ValidatingAdmissionPolicy"
}

Thing = dict[str, Any]
GPU: Thing = {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 16}}
QUEUE = {"kueue.x-k8s.io/queue-name": "research"}


def owner(kind: str, api_version: str = "batch/v1", *, controls: bool = True) -> Thing:
    return {"apiVersion": api_version, "kind": kind, "name": "it", "controller": controls}


def spec(resources: Mapping[str, Any] | None = None, **fields: Any) -> Thing:
    container: Thing = {"name": "main", "image": "example"}
    if resources is not None:
        container["resources"] = resources
    return {"containers": [container], **fields}


def thing(body: Thing, labels: Mapping[str, str] | None = None, *owners: Thing) -> Thing:
    metadata: Thing = {"name": "it"}
    if labels is not None:
        metadata["labels"] = dict(labels)
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"metadata": metadata, "spec": body}


def job(
    labels: Mapping[str, str] | None = None,
    *owners: Thing,
    resources: Mapping[str, Any] | None = GPU,
) -> Thing:
    return thing({"template": {"spec": spec(resources)}}, labels, *owners)


def jobset(labels: Mapping[str, str] | None = None, *pods: Thing) -> Thing:
    roles = [
        {"name": str(number), "template": {"spec": {"template": {"spec": each}}}}
        for number, each in enumerate(pods or (spec(GPU),))
    ]
    return thing({"replicatedJobs": roles}, labels)


STATEFUL_SET = owner("StatefulSet", "apps/v1")
GATED = [{"name": "kueue.x-k8s.io/admission"}]
QUEUED = access_cases.objects("queued")


def asker(by_person: bool) -> dict[str, Any]:
    """Return who asks: an editor, or an administrator, as controllers are."""
    return {"groups": [ACCESS_GROUP]} if by_person else {"rights": ["patch nodes"]}


# Without services in queues, and of a file with Neuron devices in queues.
REFUSED: dict[str, tuple[str, Thing, bool, bool]] = {
    "pod that asks by a request alone": (
        "pods",
        thing(spec({"requests": {"aws.amazon.com/neuron": "16"}})),
        False,
        True,
    ),
    "pod that asks for NeuronCores": (
        "pods",
        thing(spec({"limits": {"aws.amazon.com/neuroncore": 2}})),
        False,
        True,
    ),
    "pod of a StatefulSet that Kueue holds back": (
        "pods",
        thing(spec(GPU, schedulingGates=GATED), QUEUE, STATEFUL_SET),
        False,
        True,
    ),
}


@for_each({**QUEUED, **REFUSED})
def test_what_passes_the_queues_by_is_refused_with_the_way_out(
    kind: str, made: Thing, allowed: bool, by_person: bool
) -> None:
    messages = POLICIES[kind].refusals(made, **asker(by_person))

    assert (not messages) == allowed
    for message in messages[:1]:
        assert "whole devices" in message or "kueue.x-k8s.io/queue-name" in message


def test_a_job_that_waits_stays_in_its_queue() -> None:
    assert POLICIES["jobs"].refusals(job(), old=job(QUEUE)) != []
    assert POLICIES["jobs"].refusals(job({**QUEUE, "app": "it"}), old=job(QUEUE)) == []


# One pool in a queue, and one in none.
BESIDE = applied(
    queue_gate_objects(kueue_of({"name": "research", "prefer": ["reserved"]}, pools=POOLS[:2]))
)
OF_ONE = {
    each["metadata"]["name"].removeprefix("ultrascale-queued-"): Policy(each)
    for each in BESIDE
    if "validations" in each["spec"]
}


def on(*pools: str, required: bool = True) -> Thing:
    """Return the specification of a pod with GPUs on nodes of some pools."""
    only = {"key": "ultrascale.dev/pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [only]}]}
    preferred = [{"weight": 1, "preference": terms["nodeSelectorTerms"][0]}]
    node_affinity: Thing = (
        {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if required
        else {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    )
    return spec(GPU, affinity={"nodeAffinity": node_affinity})


@pytest.mark.parametrize(
    ("pod", "passes"),
    [
        (on("burst"), True),
        (on("reserved"), False),
        (on("burst", "reserved"), False),
        (on("burst", required=False), False),
        (spec(GPU), False),
    ],
    ids=["no queue's nodes", "a queue's", "either", "either, by preference", "any"],
)
def test_a_pod_that_takes_no_node_of_a_queue_needs_no_queue(pod: Thing, passes: bool) -> None:
    """A notebook on a pool beside the queues runs in the namespace whose volumes it mounts."""
    assert (OF_ONE["jobs"].refusals(thing({"template": {"spec": pod}})) == []) is passes
    assert (OF_ONE["pods"].refusals(thing(pod, None, owner("Job"))) == []) is passes
    # Kueue's controllers make no others.
    assert OF_ONE["pods"].refusals(thing(pod)) != []


WITH_SERVICES: list[Any] = applied(
    queue_gate_objects(replace(KUEUE, frameworks=(*KUEUE.frameworks, LEADER_WORKER_SETS)))
)
OF_SERVICES = {
    each["metadata"]["name"].removeprefix("ultrascale-queued-"): Policy(each)
    for each in WITH_SERVICES
    if "validations" in each["spec"]
}


@for_each({**QUEUED, **access_cases.objects("services")})
def test_a_service_waits_in_a_queue_with_each_of_its_replicas(
    kind: str, made: Thing, allowed: bool, by_person: bool
) -> None:
    assert (OF_SERVICES[kind].refusals(made, **asker(by_person)) == []) == allowed


OF_RAY = {
    each["metadata"]["name"].removeprefix("ultrascale-queued-"): Policy(each)
    for each in applied(
        queue_gate_objects(replace(KUEUE, frameworks=(*KUEUE.frameworks, RAY_JOBS)))
    )
    if "validations" in each["spec"]
}


@for_each({**QUEUED, **access_cases.objects("ray")})
def test_jobs_of_ray_wait_in_a_queue_and_no_cluster_of_ray_runs_beside_them(
    kind: str, made: Thing, allowed: bool, by_person: bool
) -> None:
    assert (OF_RAY[kind].refusals(made, **asker(by_person)) == []) == allowed


REPLICA = {"leaderworkerset.sigs.k8s.io/name": "it"}


@pytest.mark.parametrize(
    ("pod", "allowed"),
    [
        (thing(spec(), QUEUE), False),
        (thing(spec(), QUEUE, owner("ReplicaSet", "apps/v1")), False),
        (thing(spec(), QUEUE, STATEFUL_SET), False),
        (thing(spec(), QUEUE, owner("Job", controls=False)), False),
        (thing(spec(), QUEUE, owner("Job")), True),
        (thing(spec(), {**QUEUE, **REPLICA}, STATEFUL_SET), True),
        (thing(spec(), {"app": "it"}), True),
        (thing(spec()), True),
    ],
    ids=["single", "Deployment", "StatefulSet", "foreign", "Job", "replica", "unlabelled", "bare"],
)
def test_no_pod_with_a_queue_waits_for_a_workload_that_nobody_makes(
    pod: Thing, allowed: bool
) -> None:
    """Beside LeaderWorkerSets Kueue gates it, and a pod without accelerators passed before."""
    assert (OF_SERVICES["single-pods"].refusals(pod) == []) is allowed
    assert "single-pods" not in POLICIES


# Two queues, of which each counts what the other does not.
APART: list[Any] = applied(
    queue_gate_objects(
        kueue_of(
            {"name": "research", "prefer": ["reserved", "burst"]},
            {"name": "chips", "prefer": ["neuron"]},
            pools=(*POOLS, NEURON),
        )
    )
)
OF_TWO = {
    each["metadata"]["name"].removeprefix("ultrascale-queued-"): Policy(each)
    for each in APART
    if "validations" in each["spec"]
}
CHIPS = {"kueue.x-k8s.io/queue-name": "chips"}
CORES: Thing = {"limits": {"aws.amazon.com/neuroncore": 2}}


@pytest.mark.parametrize(
    ("kind", "made", "way_out"),
    [
        ("jobs", job(CHIPS), "name research"),
        ("jobsets", jobset(CHIPS), "name research"),
        (
            "jobsets",
            jobset(QUEUE, spec(GPU), spec({"limits": {"aws.amazon.com/neuron": 1}})),
            "name chips",
        ),
        ("jobs", job(CHIPS, resources=CORES), "ask for aws.amazon.com/neuron"),
        ("jobsets", jobset(CHIPS, spec(CORES)), "ask for aws.amazon.com/neuron"),
    ],
)
def test_a_queue_is_asked_for_nothing_that_it_does_not_count(
    kind: str, made: Thing, way_out: str
) -> None:
    """Kueue admits what a queue does not count, as much of it as anybody asks for."""
    (message,) = OF_TWO[kind].refusals(made)

    assert message.endswith(way_out)
    assert OF_TWO[kind].refusals(made, old=made) == []


def test_a_queue_that_counts_what_a_job_asks_for_takes_it() -> None:
    neuron = {"limits": {"aws.amazon.com/neuron": 16}}

    assert OF_TWO["jobs"].refusals(job(QUEUE)) == []
    assert OF_TWO["jobs"].refusals(job(CHIPS, resources=neuron)) == []
    assert OF_TWO["jobsets"].refusals(jobset(CHIPS, spec(neuron))) == []
    # Of a LocalQueue that somebody made, nobody knows what it counts.
    assert OF_TWO["jobs"].refusals(job({"kueue.x-k8s.io/queue-name": "own"})) == []


def test_a_job_does_not_move_to_a_queue_that_does_not_count_it() -> None:
    assert OF_TWO["jobs"].refusals(job(CHIPS), old=job(QUEUE)) != []
    assert OF_TWO["jobs"].refusals(job({**CHIPS, "app": "it"}), old=job(CHIPS)) == []


@pytest.mark.parametrize("kind", ["jobs", "jobsets", "pods"])
def test_what_was_there_before_the_queues_can_end(kind: str) -> None:
    """A finalizer that is taken off is an update."""
    before = {"jobs": job(), "jobsets": jobset(), "pods": thing(spec(GPU))}[kind]

    assert POLICIES[kind].refusals(before, old=before) == []


def test_only_namespaces_whose_jobs_wait_in_queues_are_judged() -> None:
    bindings = [d for d in MANIFESTS if d["kind"] == "ValidatingAdmissionPolicyBinding"]

    assert len(bindings) == len(POLICIES) == 3
    for binding in bindings:
        selector = binding["spec"]["matchResources"]["namespaceSelector"]
        assert selector == {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": list(KUEUE.namespaces),
                }
            ]
        }
        assert binding["spec"]["validationActions"] == ["Deny"]


def test_the_type_check_of_an_api_server_has_nothing_to_warn_of() -> None:
    """kube-apiserver 1.36.2 adds no containers to init containers: their types differ in a Job."""
    assert ".containers + " not in str([*MANIFESTS, *APART, *WITH_SERVICES])


@pytest.mark.parametrize("minor", MINORS)
def test_api_servers_take_the_policies(minor: str) -> None:
    both = (*MANIFESTS, *APART, *WITH_SERVICES)

    assert [found for each in both for found in validate_core(each, minor)] == []


# --- upstream's example at the tag ---------------------------------------------------------------

# Fields of `site/static/examples/sample-validating-policy.yaml` at v0.19.2, which asks each Job and
# JobSet for a queue.
EXAMPLE_RULES: dict[str, Thing] = {
    kind: {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind],
    }
    for kind, group, version in (
        ("jobs", "batch", "v1"),
        ("jobsets", "jobset.x-k8s.io", "v1alpha2"),
    )
}
EXAMPLE = (
    "has(object.metadata.labels) && 'kueue.x-k8s.io/queue-name' in object.metadata.labels && "
    "object.metadata.labels['kueue.x-k8s.io/queue-name'] != ''"
)
REASONS = {
    "asks-for-accelerators": "Jobs of the platform prepare file systems, and need no queue",
    "is-new-or-queued": "a Job from before the queues could otherwise never be deleted",
}


@pytest.mark.parametrize("kind", EXAMPLE_RULES)
def test_jobs_are_asked_for_a_queue_as_in_upstreams_example_but_for_a_reason(kind: str) -> None:
    (policy,) = (
        each
        for each in MANIFESTS
        if each["metadata"]["name"] == f"ultrascale-queued-{kind}" and "validations" in each["spec"]
    )
    # The rest asks for a queue that counts the job.
    validation = policy["spec"]["validations"][0]

    assert policy["spec"]["failurePolicy"] == "Fail"
    assert policy["spec"]["matchConstraints"] == {"resourceRules": [EXAMPLE_RULES[kind]]}
    assert {each["name"] for each in policy["spec"]["matchConditions"]} == {*REASONS}
    # The example leaves Jobs of JobSets out by a condition instead.
    assert EXAMPLE.replace("'", '"') in validation["expression"]
