"""In which order, and how, Helm brings Karpenter into the cluster."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import cluster_of, logical_id, resources
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_constructs.karpenter import controller_values
from ultrascale_stacks.nodes import KarpenterStack

CHARTS = "Custom::AWSCDK-EKS-HelmChart"
CLUSTER_ADMIN = {"AccessPolicies": [{"AccessScope": {"Type": "cluster"}}]}


def whole_plan() -> ClusterPlan:
    """Return the plan of a cluster with a static pool that Karpenter launches."""
    pool = pool_document(provisioner="karpenter", role="reserved", nodes={"static": 4})
    pools = [SYSTEM_POOL, pool]
    return plan_cluster(make_cluster(karpenter={"version": "1.14.1"}, pools=pools))


@pytest.fixture(scope="module")
def stack() -> Template:
    return Template.from_stack(KarpenterStack(cluster_of(whole_plan()), "research-karpenter"))


def helm_chart(stack: Template, release: str) -> dict[str, Any]:
    (found,) = (b for b in resources(stack, CHARTS) if b["Properties"]["Release"] == release)
    return found


def test_both_charts_have_the_version_of_the_file_and_helm_ends_before_its_function(
    stack: Template,
) -> None:
    charts = {
        body["Properties"]["Release"]: body["Properties"] for body in resources(stack, CHARTS)
    }
    lives = {
        body["Properties"].get("Timeout", 3) for body in resources(stack, "AWS::Lambda::Function")
    }

    assert list(charts) == ["karpenter-crd", "karpenter"]
    for release, chart in charts.items():
        assert chart["Repository"] == f"oci://public.ecr.aws/karpenter/{release}"
        assert (chart["Version"], chart["Namespace"]) == ("1.14.1", "kube-system")
        assert 2 * int(chart["Timeout"].removesuffix("s")) < min(lives)
        assert not {"Wait", "Atomic", "CreateNamespace"} & chart.keys()


def test_the_controller_waits_for_its_kinds_and_its_role_and_does_not_outlive_the_stack(
    stack: Template,
) -> None:
    name = logical_id(stack, CHARTS, Release="karpenter-crd")
    (identity,) = stack.find_resources("AWS::EKS::PodIdentityAssociation")
    (access,) = stack.find_resources("AWS::EKS::AccessEntry", {"Properties": CLUSTER_ADMIN})
    crds, controller = (helm_chart(stack, name) for name in ("karpenter-crd", "karpenter"))

    assert {name, identity} <= set(controller["DependsOn"])
    assert access in crds["DependsOn"]
    assert controller["DeletionPolicy"] == "Delete"
    # NodePools outlive it.
    assert crds["DeletionPolicy"] == crds["UpdateReplacePolicy"] == "Retain"


def test_the_values_are_those_of_the_plan(stack: Template) -> None:
    plan = whole_plan().nodes.karpenter
    assert plan is not None

    values = json.loads(helm_chart(stack, "karpenter")["Properties"]["Values"])

    assert values == controller_values(plan, cluster_name="research")
    gates = values["settings"]["featureGates"]
    # No pool names a reservation: nodes launch into open ones.
    assert (gates["staticCapacity"], gates["reservedCapacity"]) == (True, False)
