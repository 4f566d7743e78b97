"""The manifest rules themselves: each one finds the mistake that it is there for."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.support.kubernetes_schemas import MINORS, findings, is_core, validate_core
from ultrascale.catalog.versions import image
from ultrascale.plan.names import ROLE_LABEL

LABELS = {"app.kubernetes.io/name": "server"}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "server", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "serviceAccountName": "server",
                "securityContext": {"runAsNonRoot": True},
                "nodeSelector": {ROLE_LABEL: "system"},
                "containers": [
                    {
                        "name": "server",
                        "image": image("etcd").reference,
                        "resources": {
                            "requests": {"cpu": "1", "memory": "1Gi"},
                            "limits": {"memory": "1Gi"},
                        },
                    }
                ],
            },
        },
    },
}
ACCOUNT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "server", "namespace": "kube-system"},
}
BINDING: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "server"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:kube-scheduler",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "server", "namespace": "kube-system"}],
}

Mistake = Callable[[dict[str, Any], dict[str, Any]], object]

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "unknown-field": (lambda document, pod: document["spec"].update(replica=1), "replica"),
    "no-resources": (
        lambda document, pod: pod["containers"][0].pop("resources"),
        "no limits memory",
    ),
    "unpinned-image": (
        lambda document, pod: pod["containers"][0].update(image="etcd:latest"),
        "not pinned",
    ),
    "root": (lambda document, pod: pod.pop("securityContext"), "may run as root"),
    "any-node": (lambda document, pod: pod.pop("nodeSelector"), "not kept on the system pool"),
    "construct-address": (
        lambda document, pod: document["spec"]["selector"]["matchLabels"].update(
            {"cdk8s.io/metadata.addr": "c8"}
        ),
        "changes with the construct tree",
    ),
    "foreign-selector": (
        lambda document, pod: document["spec"]["selector"].update(matchLabels={"a": "b"}),
        "does not match its own pods",
    ),
    "no-account": (
        lambda document, pod: pod.update(serviceAccountName="other"),
        "nothing defines ServiceAccount kube-system/other",
    ),
    "no-namespace": (
        lambda document, pod: document["metadata"].update(namespace="elsewhere"),
        "nothing defines Namespace elsewhere",
    ),
    "no-config-map": (
        lambda document, pod: pod.update(
            volumes=[{"name": "config", "configMap": {"name": "config"}}]
        ),
        "nothing defines ConfigMap kube-system/config",
    ),
    "no-token": (
        lambda document, pod: pod.update(automountServiceAccountToken=False),
        "its token is not mounted",
    ),
    "too-large": (
        lambda document, pod: document["metadata"].update(annotations={"a": "x" * 100_000}),
        "too many for one custom resource",
    ),
}


def mistaken(mistake: Mistake) -> list[str]:
    documents = deepcopy([DEPLOYMENT, ACCOUNT, BINDING])
    pod = documents[0]["spec"]["template"]["spec"]
    mistake(documents[0], pod)
    return findings(documents, minors=["1.35"])


def test_a_sound_manifest_has_no_findings() -> None:
    assert mistaken(lambda document, pod: None) == []


@pytest.mark.parametrize(("mistake", "finding"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_found(mistake: Mistake, finding: str) -> None:
    assert [found for found in mistaken(mistake) if finding in found] != []


@pytest.mark.parametrize("minor", MINORS)
def test_an_api_version_that_is_gone_is_found(minor: str) -> None:
    budget = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "server"},
    }

    assert validate_core(budget, minor) == [
        f"PodDisruptionBudget server: policy/v1beta1 is not served by {minor}"
    ]


@pytest.mark.parametrize(
    ("api_version", "core"),
    [
        ("v1", True),
        ("apps/v1", True),
        ("rbac.authorization.k8s.io/v1", True),
        ("apiextensions.k8s.io/v1", True),
        ("karpenter.sh/v1", False),
        ("batch.volcano.sh/v1alpha1", False),
        ("kueue.x-k8s.io/v1beta2", False),
    ],
)
def test_a_kind_with_a_crd_is_not_taken_for_kubernetes_own(api_version: str, core: bool) -> None:
    assert is_core({"apiVersion": api_version, "kind": "Any"}) is core
