"""Helm brings KubeRay's operator: pinned, on system nodes, with rights where jobs run alone."""

import json

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import cluster_of, resources
from tests.support.queued_pools import planned, queued_document
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import layers_before, planned_layers
from ultrascale_stacks.ray import RayStack


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    document = queued_document({"name": "all"})
    return planned(document | {"scheduling": document["scheduling"] | {"ray": True}})


def test_the_operator_reads_no_secret_outside_the_namespaces_of_jobs(plan: ClusterPlan) -> None:
    template = Template.from_stack(RayStack(cluster_of(plan), "research-ray-operator"))
    (body,) = resources(template, "Custom::AWSCDK-EKS-HelmChart")
    keys = ("Repository", "Chart", "Version", "Namespace")
    assert [body["Properties"][key] for key in keys] == [
        "https://ray-project.github.io/kuberay-helm",
        "kuberay-operator",
        "1.7.0",
        "kuberay-system",
    ]
    assert body["DeletionPolicy"] == body["UpdateReplacePolicy"] == "Retain"
    found = json.loads(body["Properties"]["Values"])
    # The chart makes Roles only where both are set.
    assert found["singleNamespaceInstall"] is found["crNamespacedRbacEnable"] is True
    assert found["watchNamespace"] == ["training"]
    assert found["priorityClassName"] == "system-cluster-critical"
    assert found["nodeSelector"] == {"ultrascale.dev/role": "system"}
    assert found["replicas"] == 2


def test_kueue_starts_after_the_kind_that_it_looks_for(plan: ClusterPlan) -> None:
    assert "ray-operator" in layers_before(plan, "scheduling")


def test_a_file_without_jobs_of_ray_has_no_operator() -> None:
    assert "ray-operator" not in planned_layers(planned(queued_document({"name": "all"})))
