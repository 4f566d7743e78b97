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


@pytest.mark.parametrize("plan", [TRAINING, CONTROLLERS], ids=lambda plan: plan.name)
@pytest.mark.parametrize("mode", ["enforce", "audit", "warn"])
def test_pod_security_is_enforced_as_of_the_clusters_own_minor(
    documents: list[dict[str, Any]], plan: NamespacePlan, mode: str
) -> None:
    (labels,) = [
        d["metadata"]["labels"]
        for d in documents
        if d["kind"] == "Namespace" and d["metadata"]["name"] == plan.name
    ]

    assert labels[f"pod-security.kubernetes.io/{mode}"] == plan.pod_security
    assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "v1.35"


def test_only_training_namespaces_may_reach_the_rendezvous_server(
    documents: list[dict[str, Any]],
) -> None:
    labelled = [
        d["metadata"]["name"]
        for d in documents
        if d["metadata"].get("labels", {}).get(TRAINING_LABEL) == "true"
    ]

    assert labelled == ["training"]


@pytest.mark.parametrize("namespace", ["training", "volcano-system"])
def test_nothing_reaches_a_pod_that_no_policy_opens(
    documents: list[dict[str, Any]], namespace: str
) -> None:
    assert policies(documents, namespace)["default-deny-ingress"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
    }


def test_workers_of_a_namespace_reach_each_other_on_every_port(
    documents: list[dict[str, Any]],
) -> None:
    policy = policies(documents, "training")["allow-same-namespace"]

    assert policy["ingress"] == [{"from": [{"podSelector": {}}]}]


def test_a_workers_bootstrap_policy_does_not_open_etcds_peer_port(
    documents: list[dict[str, Any]],
) -> None:
    policy = policies(documents, "training")["allow-same-namespace"]

    (requirement,) = policy["podSelector"]["matchExpressions"]
    assert requirement["operator"] == "NotIn"
    assert requirement["values"] == [ETCD_SERVER_SERVICE]


def test_training_pods_keep_their_way_out_to_s3_and_ecr(documents: list[dict[str, Any]]) -> None:
    for policy in policies(documents, "training").values():
        assert policy["policyTypes"] == ["Ingress"]


def test_a_controllers_namespace_lets_no_neighbour_in(documents: list[dict[str, Any]]) -> None:
    assert list(policies(documents, "volcano-system")) == ["default-deny-ingress"]


def test_ekss_own_namespace_is_never_deleted_with_a_stack() -> None:
    with pytest.raises(ValueError, match="kube-system belongs to EKS"):
        render(NamespacePlan(name="kube-system", pod_security="privileged"))


class TestLargeClusters:
    """EKS lists the pods of a policy, and its peers, for every node."""

    @pytest.fixture(scope="class")
    @staticmethod
    def closed() -> dict[str, dict[str, Any]]:
        objects = namespace_objects([TRAINING, CONTROLLERS], "1.35", policies_of_jobs=False)
        return policies(applied(objects), "training")

    def test_no_policy_selects_a_jobs_pods_or_names_them(
        self, closed: dict[str, dict[str, Any]]
    ) -> None:
        for policy in closed.values():
            assert policy["podSelector"]["matchLabels"] == {
                "app.kubernetes.io/name": ETCD_SERVER_SERVICE
            }
            assert not policy.get("ingress")

    def test_those_of_a_cluster_that_grew_are_replaced_under_their_names(
        self, closed: dict[str, dict[str, Any]], documents: list[dict[str, Any]]
    ) -> None:
        assert closed.keys() == policies(documents, "training").keys()


def test_a_controller_that_calls_the_pods_of_jobs_reaches_them_at_its_port_alone() -> None:
    operator = IngressPlan(namespace="aws-hyperpod", port=8080)
    documents = render(replace(TRAINING, reached_from=(operator,)))

    policy = policies(documents, "training")["allow-aws-hyperpod"]
    assert findings(documents) == []
    assert policy["podSelector"] == {
        "matchExpressions": [{"key": "ultrascale.dev/job", "operator": "Exists"}]
    }
    assert policy["ingress"] == [
        {
            "from": [
                {
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": "aws-hyperpod"}
                    }
                }
            ],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        }
    ]
