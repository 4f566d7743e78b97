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


def statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    (policy,) = role["Policies"]
    return policy["PolicyDocument"]["Statement"]


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


class TestArguments:
    """Read by upstream's own parsers."""

    def test_it_finds_groups_by_key_and_value_of_our_tag(self) -> None:
        assert (
            "--node-group-auto-discovery=asg:tag=ultrascale.dev/cluster-autoscaler=research"
            in autoscaler_arguments(PLAN)
        )

    @pytest.mark.parametrize(
        "argument",
        [
            "--skip-nodes-with-custom-controller-pods=true",
            "--skip-nodes-with-local-storage=true",
            "--skip-nodes-with-system-pods=true",
            "--ignore-daemonsets-utilization=true",
            "--expendable-pods-priority-cutoff=-2147483648",
            "--balance-similar-node-groups=false",
            "--max-node-provision-time=30m",
            "--scale-down-delay-type-local=true",
        ],
    )
    def test_what_no_job_must_lose_is_said(self, argument: str) -> None:
        assert autoscaler_arguments(PLAN).count(argument) == 1

    def test_no_flag_is_given_twice(self) -> None:
        flags = [argument.partition("=")[0] for argument in autoscaler_arguments(PLAN)]

        assert len(set(flags)) == len(flags)

    def test_a_fleet_is_bounded_by_its_groups_alone(self) -> None:
        limits = [a for a in autoscaler_arguments(PLAN) if a.startswith(("--cores", "--memory"))]

        assert limits == ["--cores-total=0:2147483647", "--memory-total=0:2147483647"]


class TestPod:
    """One pod of the system pool, with no more rights than it uses."""

    def test_it_is_told_its_region_since_it_cannot_ask_the_node(
        self, container: dict[str, Any]
    ) -> None:
        assert container["env"] == [{"name": "AWS_REGION", "value": "us-west-2"}]

    def test_its_memory_is_its_own(self, container: dict[str, Any]) -> None:
        assert container["resources"]["requests"]["memory"] == "1624Mi"
        assert container["resources"]["limits"] == {"memory": "1624Mi"}

    def test_it_never_takes_its_own_node_away(self, documents: Documents) -> None:
        template = documents["Deployment", NAME]["spec"]["template"]

        assert template["metadata"]["annotations"] == {
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"
        }

    def test_it_meets_the_restricted_pod_security_standard(
        self, documents: Documents, container: dict[str, Any]
    ) -> None:
        pod = documents["Deployment", NAME]["spec"]["template"]["spec"]

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }

    @pytest.mark.parametrize(
        "resource",
        ["volumeattachments", "csinodes", "deviceclasses", "resourceclaims", "resourceslices"],
    )
    def test_it_reads_what_its_scheduler_watches(self, documents: Documents, resource: str) -> None:
        assert allowed(documents, "ClusterRole", resource) == {"get", "list", "watch"}

    def test_it_makes_and_deletes_no_node(self, documents: Documents) -> None:
        assert allowed(documents, "ClusterRole", "nodes") == {"get", "list", "watch", "update"}

    @pytest.mark.parametrize("resource", ["configmaps", "leases"])
    def test_it_writes_in_its_own_namespace_alone(
        self, documents: Documents, resource: str
    ) -> None:
        assert allowed(documents, "ClusterRole", resource) == set()
        assert "update" in allowed(documents, "Role", resource)


class TestRole:
    """Permissions in AWS: on its own groups, and on no Capacity Block."""

    def test_it_changes_groups_that_carry_our_tag_alone(self, role: dict[str, Any]) -> None:
        (statement,) = (
            each for each in statements(role) if "autoscaling:SetDesiredCapacity" in each["Action"]
        )

        assert statement["Action"] == [
            "autoscaling:SetDesiredCapacity",
            "autoscaling:TerminateInstanceInAutoScalingGroup",
        ]
        assert statement["Condition"] == {
            "StringEquals": {"aws:ResourceTag/ultrascale.dev/cluster-autoscaler": "research"}
        }

    def test_it_reads_the_node_groups_of_its_cluster_alone(self, role: dict[str, Any]) -> None:
        (statement,) = (
            each for each in statements(role) if "eks:DescribeNodegroup" in each["Action"]
        )

        assert ":nodegroup/research/*/*" in json.dumps(statement["Resource"])

    def test_everything_else_only_describes(self, role: dict[str, Any]) -> None:
        actions = [
            action
            for each in statements(role)
            if each["Resource"] == "*"
            for action in each["Action"]
        ]

        assert len(actions) == 6
        assert all(":Describe" in action for action in actions)


@pytest.mark.parametrize(
    ("resource", "needed"),
    [
        # It takes a node away by evicting its pods and marks the node meanwhile.
        ("pods/eviction", {"create"}),
        ("nodes", {"get", "list", "watch", "update"}),
        ("events", {"create", "patch"}),
        ("pods", {"get", "list", "watch"}),
        ("poddisruptionbudgets", {"list", "watch"}),
        ("resourceclaims", {"get", "list", "watch"}),
    ],
)
def test_it_may_do_what_taking_a_node_away_takes(
    documents: Documents, resource: str, needed: set[str]
) -> None:
    rules = documents["ClusterRole", NAME]["rules"]
    granted = {verb for r in rules if resource in r["resources"] for verb in r["verbs"]}

    assert granted == needed
