"""Order and values by which Helm brings the front into the cluster."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import context_in, logical_id, resources
from tests.support.pools import make_document
from tests.support.queued_pools import planned
from ultrascale.plan import ClusterPlan
from ultrascale_k8s import define_charts
from ultrascale_stacks.feature_flags import FLAGS
from ultrascale_stacks.front import FrontStack
from ultrascale_stacks.network import NetworkStack

CHARTS = "Custom::AWSCDK-EKS-HelmChart"
MANIFESTS = "Custom::AWSCDK-EKS-KubernetesResource"


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    return planned(make_document(serving={"front": {"exposure": "cluster"}}))


@pytest.fixture(scope="module")
def stack(plan: ClusterPlan) -> Template:
    app = cdk.App(context=dict(FLAGS), builtin_cloud_formation_validation=False)
    network = NetworkStack(app, "research-network", plan=plan).network
    return Template.from_stack(
        FrontStack(
            app,
            "research-front",
            plan=plan,
            cluster=context_in(network),
            charts=define_charts(plan).front,
        )
    )


def values(stack: Template) -> dict[str, Any]:
    (chart,) = resources(stack, CHARTS)
    return json.loads(chart["Properties"]["Values"])


def test_the_gateway_comes_after_its_controller_and_goes_before_it(stack: Template) -> None:
    """Nobody else deletes the proxies, or lets the class of gateways go."""
    (controller,) = resources(stack, CHARTS)
    (gateway,) = resources(stack, MANIFESTS)
    assert controller["Properties"]["Wait"] is True
    assert logical_id(stack, CHARTS, Release="gateway-helm") in gateway["DependsOn"]
    assert controller["DeletionPolicy"] == gateway["DeletionPolicy"] == "Delete"


def test_the_controller_reads_secrets_of_namespaces_with_services_alone(stack: Template) -> None:
    """With a list of namespaces the chart makes Roles in place of a ClusterRole."""
    watch = values(stack)["config"]["envoyGateway"]["provider"]["kubernetes"]["watch"]
    assert watch == {"type": "Namespaces", "namespaces": ["envoy-gateway-system", "training"]}


def test_the_controller_may_run_the_script_that_reads_models(stack: Template) -> None:
    """Envoy Gateway 1.9 takes no Lua unless it is told to."""
    assert values(stack)["config"]["envoyGateway"]["extensionApis"] == {"enableLua": True}


def test_the_controller_runs_twice_on_system_nodes(stack: Template) -> None:
    found = values(stack)
    assert found["deployment"]["replicas"] == 2
    assert found["podDisruptionBudget"] == {"minAvailable": 1}
    for pod in (found["deployment"]["pod"], found["certgen"]["job"]):
        assert pod["nodeSelector"] == {"ultrascale.dev/role": "system"}
        assert pod["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
