"""Karpenter's roles, queue and values."""

from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import (
    flat,
    logical_id,
    make_stack,
    managed_policies,
    resources,
    the,
)
from ultrascale.catalog.karpenter import CHART, CRD_CHART
from ultrascale.plan.model import KarpenterPlan
from ultrascale_constructs.karpenter import Karpenter, controller_values
from ultrascale_constructs.karpenter_policy import PolicyScope, controller_policies

ROLES = ("research-node-us-west-2", "research-instance-us-west-2")

PLAN = KarpenterPlan(
    version="1.15.2",
    crd_chart=CRD_CHART,
    chart=CHART,
    image=None,
    replicas=2,
    cpu="2",
    memory="4Gi",
    client_qps=200,
    client_burst=300,
    volume_key=None,
    feature_gates={"ReservedCapacity": True, "SpotToSpotConsolidation": False},
    aws_feature_gates={"RebootForRepair": False},
    legacy_node_repair=False,
    batch_idle_duration="5s",
    batch_max_duration="30s",
    interruption_queue="research-karpenter",
    ignores_preferences=False,
    hides_cluster_state=False,
    node_role="research-node-us-west-2",
    node_role_by_id="research-instance-us-west-2",
)


def synthesize(plan: KarpenterPlan) -> Template:
    stack = make_stack()
    Karpenter(stack, "Karpenter", plan=plan, cluster_name="research")
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def built() -> Template:
    return synthesize(PLAN)


@pytest.fixture(scope="module")
def closed() -> Template:
    return synthesize(replace(PLAN, is_isolated=True))


def allowed(template: Template) -> dict[str, dict[str, Any]]:
    """Return the statements of the controller's policies by their ids."""
    return {
        statement["Sid"]: statement
        for body in resources(template, "AWS::IAM::ManagedPolicy")
        for statement in body["Properties"]["PolicyDocument"]["Statement"]
    }


def test_nodes_named_by_their_ids_join_by_a_role_of_their_own(built: Template) -> None:
    """An access entry's type can never change, and nodes that are there need the old one."""
    kinds = {
        str(body["Properties"]["PrincipalArn"]): body["Properties"]["Type"]
        for body in resources(built, "AWS::EKS::AccessEntry")
    }
    roles = {
        str({"Fn::GetAtt": [logical_id(built, "AWS::IAM::Role", RoleName=name), "Arn"]}): kind
        for name, kind in zip(ROLES, ("EC2_LINUX", "EC2"), strict=True)
    }

    assert kinds == roles
    # Karpenter may launch nodes with either.
    assert len(allowed(built)["AllowPassingInstanceRole"]["Resource"]) == 2


def test_without_a_way_out_karpenter_asks_neither_for_prices_nor_for_profiles(
    built: Template, closed: Template
) -> None:
    """IAM and the Price List API have no endpoint: a call of either waits until it is given up."""
    profiles = {
        body["Properties"]["InstanceProfileName"]: body["Properties"]["Roles"]
        for body in resources(closed, "AWS::IAM::InstanceProfile")
    }
    actions = {action for each in allowed(closed).values() for action in each["Action"]}
    values: Any = controller_values(replace(PLAN, is_isolated=True), cluster_name="research")

    # Each role has the profile that node classes name; with a way out Karpenter makes them itself.
    assert profiles == {
        name: [{"Ref": logical_id(closed, "AWS::IAM::Role", RoleName=name)}] for name in ROLES
    }
    built.resource_count_is("AWS::IAM::InstanceProfile", 0)
    assert values["settings"]["isolatedVPC"] is True
    assert {a for a in actions if a.startswith(("iam:", "pricing:"))} == {"iam:PassRole"}


class TestController:
    """Permissions of the controller's pods, and their source."""

    def test_its_service_account_takes_the_role_once_it_has_every_policy(
        self, built: Template
    ) -> None:
        (body,) = resources(built, "AWS::EKS::PodIdentityAssociation")
        identity = body["Properties"]
        role = built.to_json()["Resources"][identity["RoleArn"]["Fn::GetAtt"][0]]["Properties"]
        policies = built.find_resources("AWS::IAM::ManagedPolicy")

        assert (identity["ClusterName"], identity["Namespace"]) == ("research", "kube-system")
        assert identity["ServiceAccount"] == "karpenter"
        assert set(body["DependsOn"]) == set(policies)
        assert len(policies) == 5
        assert {
            leaf for key, leaf in flat(role["AssumeRolePolicyDocument"]).items() if "Tag" in key
        } >= {"research", "kube-system", "karpenter"}

    def test_its_policies_are_about_this_cluster(self, built: Template) -> None:
        target = PolicyScope(
            partition="aws",
            region="us-west-2",
            account="ACCOUNT",
            cluster="research",
            node_role_arns=("NODE", "INSTANCE"),
            queue_arn="QUEUE",
        )
        ids = {"QUEUE": logical_id(built, "AWS::SQS::Queue")}
        for kind in ("node", "instance"):
            name = f"research-{kind}-us-west-2"
            ids[kind.upper()] = logical_id(built, "AWS::IAM::Role", RoleName=name)
        rendered = {
            statement["Sid"]: statement
            for body in resources(built, "AWS::IAM::ManagedPolicy")
            for statement in body["Properties"]["PolicyDocument"]["Statement"]
        }

        def arn(wanted: str) -> object:
            if wanted in ids:
                return {"Fn::GetAtt": [ids[wanted], "Arn"]}
            before, account, after = wanted.partition("ACCOUNT")
            parts = [before, {"Ref": "AWS::AccountId"}, after]
            return {"Fn::Join": ["", parts]} if account else wanted

        for expected in (
            each for policy in controller_policies(target).values() for each in policy
        ):
            found = rendered.pop(expected.sid)
            assert found["Action"] == list(expected.actions)
            assert found.get("Condition", {}) == expected.condition
            assert found["Resource"] == [arn(wanted) for wanted in expected.resources]
        assert rendered == {}


def test_the_role_of_nodes_may_join_pull_and_be_reached(built: Template) -> None:
    name = logical_id(built, "AWS::IAM::Role", RoleName="research-node-us-west-2")

    assert managed_policies(built.to_json()["Resources"][name]["Properties"]) == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonSSMManagedInstanceCore",
    }


def test_a_spot_instance_s_notice_of_two_minutes_reaches_the_queue(built: Template) -> None:
    queue = {"Fn::GetAtt": [logical_id(built, "AWS::SQS::Queue"), "Arn"]}
    rules = [body["Properties"] for body in resources(built, "AWS::Events::Rule")]

    assert the(built, "AWS::SQS::Queue") == {
        "QueueName": "research-karpenter",
        "MessageRetentionPeriod": 300,  # It forgets what is past.
        "SqsManagedSseEnabled": True,
    }
    assert {
        f"{source}: {kind}"
        for rule in rules
        for source in rule["EventPattern"]["source"]
        for kind in rule["EventPattern"]["detail-type"]
    } == {
        "aws.health: AWS Health Event",
        "aws.ec2: EC2 Spot Instance Interruption Warning",
        "aws.ec2: EC2 Instance Rebalance Recommendation",
        "aws.ec2: EC2 Instance State-change Notification",
        "aws.ec2: EC2 Capacity Reservation Instance Interruption Warning",
    }
    for rule in rules:
        assert [target["Arn"] for target in rule["Targets"]] == [queue]


def test_these_rules_alone_write_to_it_and_nobody_unencrypted(built: Template) -> None:
    policy = the(built, "AWS::SQS::QueuePolicy")
    allow, deny = policy["PolicyDocument"]["Statement"]

    assert (allow["Effect"], allow["Action"]) == ("Allow", "sqs:SendMessage")
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    senders = allow["Condition"]["ArnEquals"]["aws:SourceArn"]
    rules = built.find_resources("AWS::Events::Rule")
    assert [sender["Fn::GetAtt"][0] for sender in senders] == list(rules)
    assert policy["Queues"] == [{"Ref": logical_id(built, "AWS::SQS::Queue")}]
    assert (deny["Effect"], deny["Principal"], deny["Action"]) == ("Deny", {"AWS": "*"}, "sqs:*")
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_controllers_values_are_those_of_the_plan(built: Template) -> None:
    values: Any = controller_values(PLAN, cluster_name="research")
    older = replace(PLAN, version="1.14.3", aws_feature_gates={}, legacy_node_repair=None)

    assert values["nodeSelector"] == {"ultrascale.dev/role": "system"}
    # The chart's own keeps it off the nodes that it launched.
    assert "affinity" not in values
    # Both replicas run where one zone is left.
    (spread,) = values["topologySpreadConstraints"]
    assert values["replicas"] == 2
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert values["controller"]["resources"] == {
        "requests": {"cpu": "2", "memory": "4Gi"},
        "limits": {"memory": "4Gi"},
    }
    env = {each["name"]: each["value"] for each in values["controller"]["env"]}
    assert env == {"KUBE_CLIENT_QPS": "200", "KUBE_CLIENT_BURST": "300"}
    assert flat(values["settings"]) == {
        "clusterName": "research",
        "interruptionQueue": "research-karpenter",
        "batchIdleDuration": "5s",
        "batchMaxDuration": "30s",
        "preferencePolicy": "Respect",
        "disableClusterStateObservability": False,
        "isolatedVPC": False,
        "featureGates.reservedCapacity": True,
        "featureGates.spotToSpotConsolidation": False,
        "legacyNodeRepair": False,
        "awsFeatureGates.rebootForRepair": False,
    }
    # An older chart is told nothing that it does not know.
    settings: Any = controller_values(older, cluster_name="research")["settings"]
    assert not {"legacyNodeRepair", "awsFeatureGates"} & set(settings)
    # Its service account is the one with the role.
    identity = the(built, "AWS::EKS::PodIdentityAssociation")
    assert values["serviceAccount"] == {"name": identity["ServiceAccount"]}
