"""Helm brings the controllers of services: pinned, on system nodes, kept when the stack goes."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import cluster_of, resources
from tests.support.queued_pools import planned, queued_document
from ultrascale.documents import mapping
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import all_layers, layers_before
from ultrascale_k8s import define_charts
from ultrascale_stacks.services import ServicesStack


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    controllers = {"serving": {"controllers": ["keda", "leader-worker-set"]}}
    return planned(queued_document({"name": "all"}) | controllers)


@pytest.fixture(scope="module")
def releases(plan: ClusterPlan) -> dict[str, dict[str, Any]]:
    stack = ServicesStack(cluster_of(plan), "research-serving")
    found = resources(Template.from_stack(stack), "Custom::AWSCDK-EKS-HelmChart")
    return {body["Properties"]["Release"]: body for body in found}


def values(releases: dict[str, dict[str, Any]], release: str) -> Any:
    return json.loads(releases[release]["Properties"]["Values"])


def test_the_charts_are_upstreams_and_services_outlive_the_stack_of_their_controllers(
    releases: dict[str, dict[str, Any]],
) -> None:
    keys = ("Repository", "Chart", "Version", "Namespace")

    assert {
        name: tuple(body["Properties"][key] for key in keys) for name, body in releases.items()
    } == {
        # Helm asks the index of a repository by the chart's name.
        "keda": ("https://kedacore.github.io/charts", "keda", "2.20.2", "keda"),
        "lws": ("oci://registry.k8s.io/lws/charts/lws", "lws", "0.10.0", "lws-system"),
    }
    for release, body in releases.items():
        assert body["DeletionPolicy"] == body["UpdateReplacePolicy"] == "Retain"
        assert body["Properties"]["Wait"] is True
        # The controllers run on system nodes and keep their place.
        found = values(releases, release)
        assert found["nodeSelector"] == {"ultrascale.dev/role": "system"}
        assert found["priorityClassName"] == "system-cluster-critical"
    keep = values(releases, "keda")["crds"]["additionalAnnotations"]
    assert keep == {"helm.sh/resource-policy": "keep"}
    # That of groups may run in its restricted namespace.
    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert values(releases, "lws")["podSecurityContext"] == restricted


def test_keda_scales_nothing_but_services_of_ours(releases: dict[str, dict[str, Any]]) -> None:
    found = values(releases, "keda")

    assert found["watchNamespace"] == "training"
    assert found["rbac"]["scaledRefKinds"] == [
        {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "leaderworkersets"}
    ]
    assert all(part["restrict"]["secret"] for part in found["permissions"].values())


def test_kueue_starts_after_the_kinds_that_it_looks_for(plan: ClusterPlan) -> None:
    assert "serving-controllers" in layers_before(plan, "scheduling")
    assert not all_layers()["serving-controllers"].costs_nodes


def test_nothing_but_the_api_server_and_kedas_own_pods_has_a_way_in(plan: ClusterPlan) -> None:
    (chart,) = (
        chart for chart in define_charts(plan).platform if chart.name == "serving-controllers"
    )
    policies = {
        str(mapping(each, "metadata")["name"]): mapping(each, "spec")["ingress"]
        for each in chart.manifests
        if each["kind"] == "NetworkPolicy"
    }

    assert chart.retained
    assert policies == {
        "keda-operator-ingress": [
            {
                "from": [
                    {"podSelector": {"matchLabels": {"app": "keda-operator-metrics-apiserver"}}}
                ],
                "ports": _ports(9666),
            }
        ],
        "keda-operator-metrics-apiserver-ingress": [{"ports": _ports(6443)}],
        "keda-admission-webhooks-ingress": [{"ports": _ports(9443)}],
        "lws-ingress": [{"ports": _ports(9443)}],
    }


def _ports(number: int) -> list[dict[str, Any]]:
    return [{"port": number, "protocol": "TCP"}]
