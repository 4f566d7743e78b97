"""Namespaces: pod security and who may reach whom."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from ultrascale.plan.model import IngressPlan, NamespacePlan
from ultrascale.plan.names import ETCD_SERVER_SERVICE, TRAINING_LABEL
from ultrascale_k8s.namespaces import namespace_objects

TRAINING = NamespacePlan(name="training", pod_security="baseline", training=True)
CONTROLLERS = NamespacePlan(name="volcano-system", pod_security="restricted")


def render(*plans: NamespacePlan) -> list[dict[str, Any]]:
    return applied(namespace_objects(plans, "1.35"))


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return render(TRAINING, CONTROLLERS)


def policies(documents: list[dict[str, Any]], namespace: str) -> dict[str, dict[str, Any]]:
    return {
        d["metadata"]["name"]: d["spec"]
        for d in documents
        if d["kind"] == "NetworkPolicy" and d["metadata"]["namespace"] == namespace
    }


def test_api_server_takes_the_namespaces(documents: list[dict[str, Any]]) -> None:
    assert findings(documents) == []


def test_pod_security_is_enforced_as_of_the_clusters_own_minor(
    documents: list[dict[str, Any]],
) -> None:
    labels = {
        d["metadata"]["name"]: d["metadata"]["labels"]
        for d in documents
        if d["kind"] == "Namespace"
    }

    for plan in (TRAINING, CONTROLLERS):
        for mode in ("enforce", "audit", "warn"):
            label = f"pod-security.kubernetes.io/{mode}"
            assert labels[plan.name][label] == plan.pod_security
            assert labels[plan.name][f"{label}-version"] == "v1.35"
    # Only training namespaces may reach the rendezvous server.
    reached = [name for name, found in labels.items() if found.get(TRAINING_LABEL) == "true"]
    assert reached == ["training"]


def test_nothing_reaches_a_pod_but_workers_each_other(documents: list[dict[str, Any]]) -> None:
    deny: dict[str, Any] = {"podSelector": {}, "policyTypes": ["Ingress"]}
    training = policies(documents, "training")
    workers = training["allow-same-namespace"]

    # A controller's namespace lets no neighbour in.
    assert policies(documents, "volcano-system") == {"default-deny-ingress": deny}
    assert training["default-deny-ingress"] == deny
    # Training pods keep their way out to S3 and ECR.
    assert all(policy["policyTypes"] == ["Ingress"] for policy in training.values())
    # On every port, and not etcd's of its peers.
    assert workers["ingress"] == [{"from": [{"podSelector": {}}]}]
    (requirement,) = workers["podSelector"]["matchExpressions"]
    assert (requirement["operator"], requirement["values"]) == ("NotIn", [ETCD_SERVER_SERVICE])


def test_pods_of_jobs_ask_no_node_of_hyperpod_for_its_identity() -> None:
    """Elsewhere EC2 keeps pods away by the hops of an answer; HyperPod has no such setting."""
    closed = render(replace(TRAINING, hides_metadata=True), CONTROLLERS)
    name = "egress-without-node-metadata"
    (rule,) = policies(closed, "training")[name]["egress"]
    ((peer,),) = rule.values()

    assert findings(closed) == []
    assert peer == {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]}}
    # EKS Pod Identity, node-local DNS and all other ways stay.
    assert policies(closed, "training")[name]["podSelector"] == {}
    assert name not in policies(closed, "volcano-system")


def test_ekss_own_namespace_is_never_deleted_with_a_stack() -> None:
    with pytest.raises(ValueError, match="kube-system belongs to EKS"):
        render(NamespacePlan(name="kube-system", pod_security="privileged"))


def test_in_a_large_cluster_no_policy_selects_a_jobs_pods_or_names_them(
    documents: list[dict[str, Any]],
) -> None:
    """EKS lists the pods of a policy, and its peers, for every node."""
    objects = namespace_objects([TRAINING, CONTROLLERS], "1.35", policies_of_jobs=False)
    closed = policies(applied(objects), "training")

    for policy in closed.values():
        labels = {"app.kubernetes.io/name": ETCD_SERVER_SERVICE}
        assert policy["podSelector"]["matchLabels"] == labels
        assert not policy.get("ingress")
    # Those of a cluster that grew are replaced under their names.
    assert closed.keys() == policies(documents, "training").keys()


def test_a_controller_that_calls_the_pods_of_jobs_reaches_them_at_its_port_alone() -> None:
    operator = IngressPlan(namespace="aws-hyperpod", port=8080)
    documents = render(replace(TRAINING, reached_from=(operator,)))

    policy = policies(documents, "training")["allow-aws-hyperpod"]
    assert findings(documents) == []
    job = {"key": "ultrascale.dev/job", "operator": "Exists"}
    assert policy["podSelector"] == {"matchExpressions": [job]}
    labels = {"matchLabels": {"kubernetes.io/metadata.name": "aws-hyperpod"}}
    ports = [{"port": 8080, "protocol": "TCP"}]
    assert policy["ingress"] == [{"from": [{"namespaceSelector": labels}], "ports": ports}]
