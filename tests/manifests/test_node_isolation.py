"""The admission policy: what it keeps off HyperPod nodes without taints, and what it lets pass."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import Policy
from tests.support.kubernetes_schemas import MINORS, validate_core
from ultrascale.plan.model import IsolationPlan
from ultrascale_k8s.node_isolation import policy_manifest

PLAN = IsolationPlan(
    node_labels={
        "ultrascale.dev/role": ("reserved",),
        "node-type": ("hyperpod", "hyperpod-large"),
        "sagemaker.amazonaws.com/compute-type": ("hyperpod",),
    },
    accelerator_prefixes=("nvidia.com/", "aws.amazon.com/neuron"),
    exempt_namespaces=("kube-system", "kubeflow"),
    suggested_labels={"ultrascale.dev/role": "system"},
)
POLICY = Policy(policy_manifest(PLAN))

Pod = dict[str, Any]


def pod(*, resources: Mapping[str, Any] | None = None, **spec: Any) -> Pod:
    """Return a pod of one container with ``resources``, to which ``spec`` adds fields."""
    container: dict[str, Any] = {"name": "main", "image": "example"}
    if resources is not None:
        container["resources"] = resources
    return {"metadata": {"name": "it"}, "spec": {"containers": [container], **spec}}


def owned(kind: str) -> Pod:
    return pod() | {"metadata": {"ownerReferences": [{"kind": kind, "name": "it"}]}}


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def wanting(*terms: list[dict[str, Any]]) -> Pod:
    """Return a pod with required node affinity; each term is a list of rules."""
    return requiring(*({"matchExpressions": term} for term in terms))


def requiring(*terms: dict[str, Any]) -> Pod:
    required = {"nodeSelectorTerms": [*terms]}
    return pod(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )


SYSTEM = rule("ultrascale.dev/role", "In", "system")
ANY = rule("kubernetes.io/arch", "In", "amd64")
PREFERRED = {"weight": 1, "preference": {"matchExpressions": [SYSTEM]}}
GPU = {"name": "gpu", "resources": {"limits": {"nvidia.com/gpu": 1}}}

ADMITTED = {
    "a GPU": pod(resources={"limits": {"nvidia.com/gpu": 8}}),
    "a slice of a GPU": pod(resources={"limits": {"nvidia.com/mig-1g.5gb": "1"}}),
    "Neuron devices, as a request": pod(resources={"requests": {"aws.amazon.com/neuron": 16}}),
    "Neuron cores": pod(resources={"limits": {"aws.amazon.com/neuroncore": "2"}}),
    "a GPU in the second container": {"spec": {"containers": [{"name": "log"}, GPU]}},
    "a GPU in an init container": pod(initContainers=[GPU]),
    "selects the system nodes": pod(nodeSelector={"ultrascale.dev/role": "system"}),
    "selects another pool among other labels": pod(
        nodeSelector={"kubernetes.io/arch": "amd64", "node-type": "eks-spot"}
    ),
    "wants system nodes": wanting([SYSTEM]),
    "wants one of several other pools": wanting([rule("node-type", "In", "eks-spot", "burst")]),
    "wants none of the HyperPod pools": wanting(
        [rule("node-type", "NotIn", "hyperpod", "hyperpod-large", "other")]
    ),
    "wants nodes that are not HyperPod's": wanting(
        [rule("sagemaker.amazonaws.com/compute-type", "NotIn", "hyperpod")]
    ),
    "wants nodes without HyperPod's label": wanting(
        [rule("sagemaker.amazonaws.com/compute-type", "DoesNotExist")]
    ),
    "every alternative leads elsewhere": wanting(
        [ANY, SYSTEM], [rule("node-type", "In", "eks-spot"), ANY]
    ),
    "of a DaemonSet": owned("DaemonSet"),
    "on a node that was named": pod(nodeName="ip-10-0-0-1"),
}
REFUSED = {
    "says nothing": pod(),
    "no GPU, said as a number": pod(resources={"limits": {"nvidia.com/gpu": "0"}}),
    "no GPU, said as a request too": pod(
        resources={"limits": {"nvidia.com/gpu": 0}, "requests": {"nvidia.com/gpu": 0}}
    ),
    "EFA alone": pod(resources={"limits": {"vpc.amazonaws.com/efa": 4}}),
    "a CPU request": pod(resources={"requests": {"cpu": "64", "memory": "1Ti"}}),
    "of a Job": owned("Job"),
    "selects the HyperPod pool": pod(nodeSelector={"node-type": "hyperpod"}),
    "selects by a label that tells no pools apart": pod(
        nodeSelector={"kubernetes.io/arch": "amd64"}
    ),
    "only prefers system nodes": pod(
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}
    ),
    "only keeps pods apart": pod(affinity={"podAntiAffinity": {}}),
    "wants HyperPod nodes among others": wanting([rule("node-type", "In", "hyperpod", "spot")]),
    "keeps off one HyperPod pool of two": wanting([rule("node-type", "NotIn", "hyperpod")]),
    "wants nodes that have a role": wanting([rule("ultrascale.dev/role", "Exists")]),
    "one alternative leads anywhere": wanting([SYSTEM], [ANY]),
    "a term of fields alone": requiring(
        {"matchFields": [rule("metadata.name", "NotIn", "ip-10-0-0-1")]}
    ),
}


@pytest.mark.parametrize("name", ADMITTED)
def test_a_pod_that_belongs_there_or_goes_elsewhere_is_admitted(name: str) -> None:
    assert POLICY.refusals(ADMITTED[name]) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_pod_that_could_take_the_place_of_a_job_is_refused(name: str) -> None:
    assert len(POLICY.refusals(REFUSED[name])) == 1


def test_whoever_is_refused_learns_what_to_add() -> None:
    (message,) = POLICY.refusals(pod())

    assert "add nodeSelector {ultrascale.dev/role: system}" in message
    assert POLICY.refusals(pod(nodeSelector=dict(PLAN.suggested_labels))) == []


def test_pods_of_awss_own_namespaces_run_where_they_like() -> None:
    assert not POLICY.covers("kube-system")
    assert POLICY.covers("default")


@pytest.mark.parametrize("minor", MINORS)
def test_every_kubernetes_version_of_ours_knows_the_policys_fields(minor: str) -> None:
    assert validate_core(policy_manifest(PLAN), minor) == []


_KEYS = st.sampled_from([*PLAN.node_labels, "kubernetes.io/arch"])
_VALUES = st.lists(
    st.sampled_from(["reserved", "hyperpod", "hyperpod-large", "system", "amd64"]),
    min_size=1,
    max_size=3,
    unique=True,
)


def _with_values(key: str, operator: str, values: list[str]) -> dict[str, Any]:
    return rule(key, operator, *values)


_RULES = st.one_of(
    st.builds(_with_values, _KEYS, st.sampled_from(["In", "NotIn"]), _VALUES),
    st.builds(rule, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
_ISOLATED = [
    {
        "ultrascale.dev/role": "reserved",
        "node-type": name,
        "kubernetes.io/arch": "amd64",
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
    }
    for name in PLAN.node_labels["node-type"]
]


def fits(required: dict[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a rule of affinity holds for a node, as the scheduler has it."""
    value = labels.get(required["key"])
    match required["operator"]:
        case "In":
            return value in required["values"]
        case "NotIn":
            return value not in required["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None


@given(st.lists(st.lists(_RULES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_no_pod_that_is_admitted_could_be_scheduled_there(
    terms: list[list[dict[str, Any]]],
) -> None:
    if POLICY.refusals(wanting(*terms)):
        return

    assert not any(all(fits(each, node) for each in term) for term in terms for node in _ISOLATED)
