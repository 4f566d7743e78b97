"""The change guard tells what jobs lose with queues of Kueue, and with what installs them."""

from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.changes import Body, between, body, manifest, of

OUTAGE = frozenset({"outage"})
REFUSED = frozenset({"cannot be deployed"})
JOBSET = "oci://registry.k8s.io/jobset/charts/jobset"


def queueing(kind: str, name: str = "research", **spec: Any) -> Body:
    metadata = {"name": name} | ({"namespace": "training"} if kind == "LocalQueue" else {})
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def namespace(name: str = "training") -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def gate(*namespaces: str) -> Body:
    term = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*namespaces]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "ultrascale-queued-pods"},
        "spec": {"matchResources": {"namespaceSelector": {"matchExpressions": [term]}}},
    }


def chart(version: str, repository: str = JOBSET) -> Body:
    release = repository.rpartition("/")[2]
    properties = {"Release": release, "Repository": repository, "Version": version}
    return body("Custom::AWSCDK-EKS-HelmChart", properties)


GOING = {
    kind: (queueing(kind), told)
    for kind, told in {
        "ClusterQueue": "wait in it without end",
        "LocalQueue": "never admitted",
        "ResourceFlavor": "nodes that queues count",
        "Topology": "layers of the network",
        "WorkloadPriorityClass": "priority that jobs name",
    }.items()
}


@for_each(GOING)
def test_a_queue_that_goes_is_told_with_its_jobs(gone: Body, told: str) -> None:
    changes = between({"A": manifest(gone)}, {})

    assert changes.verdicts == OUTAGE
    (change,) = changes.protected
    assert told in change.lost
    assert "name it then" in change.instead


def test_a_flavor_that_places_by_topology_keeps_its_labels() -> None:
    """Kubernetes would refuse the apply, and the deployment roll back."""
    plain = {"nodeLabels": {"ultrascale.dev/pool": "a"}}
    placed = {**plain, "topologyName": "aws-3"}

    def flavor(**spec: Any) -> dict[str, Body]:
        return {"A": manifest(queueing("ResourceFlavor", **spec))}

    other = {"nodeLabels": {"ultrascale.dev/pool": "b"}}
    tolerating = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    assert between(flavor(**placed), flavor(**placed, **tolerating)).verdicts == REFUSED
    relabelled = between(flavor(**placed), flavor(**placed | other))
    assert relabelled.verdicts == REFUSED
    # A queue that names the flavor keeps it from being deleted.
    (refusal,) = (each for each in relabelled.resources if each.fails)
    assert "topology: false" in refusal.instead
    assert between(flavor(**placed), flavor(**plain)).verdicts == REFUSED
    assert between(flavor(**plain), flavor(**plain | other)).is_safe
    assert between(flavor(**plain), flavor(**placed)).is_safe


def test_pods_that_run_without_a_queue_are_told_of_the_policy_that_refuses_them() -> None:
    before = {"N": manifest(namespace())}

    changes = between(before, before | {"G": manifest(gate("training"))})

    assert changes.verdicts == OUTAGE
    (change,) = changes.protected
    assert "training" in change.lost


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"N": manifest(namespace()), "G": manifest(gate("training"))}),
        (
            {"N": manifest(namespace()), "G": manifest(gate("training"))},
            {"N": manifest(namespace()), "G": manifest(gate())},
        ),
        (
            {"N": manifest(namespace()), "G": manifest(gate("training"))},
            {"N": manifest(namespace())},
        ),
    ],
    ids=["new namespace", "opened", "no queues any more"],
)
def test_a_policy_that_nobody_runs_under_is_no_risk(
    old: dict[str, Body], new: dict[str, Body]
) -> None:
    assert between(old, new).is_safe


def test_definitions_that_helm_leaves_as_they_are_are_brought_first() -> None:
    changes = between({"A": chart("0.12.0")}, {"A": chart("0.13.0")})
    older, newer = (
        {"A": chart(version, "oci://registry.k8s.io/kueue/charts/kueue")}
        for version in ("0.19.14", "0.20.7")
    )

    assert changes.verdicts == REFUSED
    assert f"helm show crds {JOBSET} --version 0.13.0 | kubectl apply" in of(changes, "A").instead
    # Those that a chart upgrades by itself need no step, and never go back.
    assert between(older, newer).is_safe
    assert between(newer, older).verdicts
