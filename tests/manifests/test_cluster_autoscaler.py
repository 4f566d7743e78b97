"""The Cluster Autoscaler: it grows what pods wait for, and takes nothing from a job that runs."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.applied import applied
from tests.support.construct_stacks import make_stack, the
from tests.support.kubernetes_schemas import findings
from ultrascale.catalog.versions import cluster_autoscaler
from ultrascale.plan.model import ClusterAutoscalerPlan
from ultrascale_constructs.node_group_controllers import ClusterAutoscaler
from ultrascale_k8s.node_group_controllers import autoscaler_arguments, cluster_autoscaler_objects

Documents = dict[tuple[str, str], dict[str, Any]]
NAME = "cluster-autoscaler"
PLAN = ClusterAutoscalerPlan(
    image=cluster_autoscaler("1.35").reference,
    region="us-west-2",
    discovery_tags={"ultrascale.dev/cluster-autoscaler": "research"},
    memory="1624Mi",
    group_tags={},
)


@pytest.fixture(scope="module")
def documents() -> Documents:
    return {
        (d["kind"], d["metadata"]["name"]): d for d in applied(cluster_autoscaler_objects(PLAN))
    }


@pytest.fixture(scope="module")
def container(documents: Documents) -> dict[str, Any]:
    (container,) = documents["Deployment", NAME]["spec"]["template"]["spec"]["containers"]
    return container


@pytest.fixture(scope="module")
def role() -> dict[str, Any]:
    stack = make_stack()
    ClusterAutoscaler(stack, "ClusterAutoscaler", plan=PLAN, cluster_name="research")
    return the(Template.from_stack(stack), "AWS::IAM::Role")


def allowed(documents: Documents, kind: str, resource: str) -> set[str]:
    """Return the verbs that a role of the chart allows on ``resource``."""
    return {
        verb
        for rule in documents[kind, NAME]["rules"]
        if resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_api_server_takes_the_autoscaler(documents: Documents) -> None:
    assert findings(list(documents.values())) == []


def test_it_takes_nothing_that_a_job_must_not_lose() -> None:
    """Upstream's own parsers read the arguments."""
    arguments = autoscaler_arguments(PLAN)
    flags = dict(argument.split("=", 1) for argument in arguments)

    assert len(flags) == len(arguments)
    tag = "ultrascale.dev/cluster-autoscaler=research"
    assert (
        flags.items()
        >= {
            "--node-group-auto-discovery": f"asg:tag={tag}",
            "--skip-nodes-with-custom-controller-pods": "true",
            "--skip-nodes-with-local-storage": "true",
            "--skip-nodes-with-system-pods": "true",
            "--ignore-daemonsets-utilization": "true",
            "--expendable-pods-priority-cutoff": "-2147483648",
            "--balance-similar-node-groups": "false",
            "--max-node-provision-time": "30m",
            "--scale-down-delay-type-local": "true",
            # A fleet is bounded by its groups alone.
            "--cores-total": "0:2147483647",
            "--memory-total": "0:2147483647",
        }.items()
    )


def test_its_pod_is_hardened_and_never_takes_its_own_node_away(
    documents: Documents, container: dict[str, Any]
) -> None:
    template = documents["Deployment", NAME]["spec"]["template"]
    pod = template["spec"]

    # It cannot ask the node for its Region.
    assert container["env"] == [{"name": "AWS_REGION", "value": "us-west-2"}]
    assert container["resources"]["requests"]["memory"] == "1624Mi"
    assert container["resources"]["limits"] == {"memory": "1624Mi"}
    safe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert template["metadata"]["annotations"] == safe
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        # It takes a node away by evicting its pods and marks the node meanwhile.
        ("pods/eviction", "create"),
        ("nodes", "get list watch update"),
        ("events", "create patch"),
        ("pods", "get list watch"),
        ("poddisruptionbudgets", "list watch"),
        # Its scheduler watches them.
        *(
            (resource, "get list watch")
            for resource in ("volumeattachments", "csinodes", "deviceclasses", "resourceclaims")
        ),
        ("resourceslices", "get list watch"),
        # It writes in its own namespace alone.
        ("configmaps", ""),
        ("leases", ""),
    ],
)
def test_it_may_do_what_taking_a_node_away_takes(
    documents: Documents, resource: str, verbs: str
) -> None:
    assert allowed(documents, "ClusterRole", resource) == {*verbs.split()}
    if not verbs:
        assert "update" in allowed(documents, "Role", resource)


def test_it_changes_groups_that_carry_our_tag_alone_and_everything_else_only_describes(
    role: dict[str, Any],
) -> None:
    (policy,) = role["Policies"]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    (change,) = (s for s in statements if "autoscaling:SetDesiredCapacity" in s["Action"])
    (read,) = (s for s in statements if "eks:DescribeNodegroup" in s["Action"])
    actions = [action for s in statements if s["Resource"] == "*" for action in s["Action"]]

    assert change["Action"] == [
        "autoscaling:SetDesiredCapacity",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
    ]
    tag = {"aws:ResourceTag/ultrascale.dev/cluster-autoscaler": "research"}
    assert change["Condition"] == {"StringEquals": tag}
    assert ":nodegroup/research/*/*" in json.dumps(read["Resource"])
    assert len(actions) == 6
    assert all(":Describe" in action for action in actions)
