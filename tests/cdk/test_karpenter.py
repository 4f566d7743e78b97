"""Karpenter's roles, queue and values."""

from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import logical_id, make_stack, managed_policies, resources, the
from ultrascale.catalog.karpenter import CHART, CRD_CHART
from ultrascale.plan.model import KarpenterPlan
from ultrascale_constructs.karpenter import Karpenter, controller_values
from ultrascale_constructs.karpenter_policy import PolicyScope, controller_policies

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


@pytest.fixture(scope="module")
def built() -> Template:
    stack = make_stack()
    Karpenter(stack, "Karpenter", plan=PLAN, cluster_name="research")
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def closed() -> Template:
    stack = make_stack()
    plan = replace(PLAN, is_isolated=True)
    Karpenter(stack, "Karpenter", plan=plan, cluster_name="research")
    return Template.from_stack(stack)


class TestNodesNamedByTheirIds:
    """An access entry's type can never change, and nodes that are there need the old one."""

    def test_they_join_by_a_role_of_their_own(self, built: Template) -> None:
        kinds = {
            str(body["Properties"]["PrincipalArn"]): body["Properties"]["Type"]
            for body in resources(built, "AWS::EKS::AccessEntry")
        }
        roles = {
            name: str({"Fn::GetAtt": [logical_id(built, "AWS::IAM::Role", RoleName=name), "Arn"]})
            for name in ("research-node-us-west-2", "research-instance-us-west-2")
        }

        assert kinds == {
            roles["research-node-us-west-2"]: "EC2_LINUX",
            roles["research-instance-us-west-2"]: "EC2",
        }

    def test_karpenter_may_launch_nodes_with_either(self, built: Template) -> None:
        (passing,) = (
            statement
            for body in resources(built, "AWS::IAM::ManagedPolicy")
            for statement in body["Properties"]["PolicyDocument"]["Statement"]
            if statement["Sid"] == "AllowPassingInstanceRole"
        )

        assert len(passing["Resource"]) == 2


class TestWithoutWayOut:
    """IAM and the Price List API have no endpoint: a call of either waits until it is given up."""

    def test_each_role_has_the_profile_that_node_classes_name(self, closed: Template) -> None:
        profiles = {
            body["Properties"]["InstanceProfileName"]: body["Properties"]["Roles"]
            for body in resources(closed, "AWS::IAM::InstanceProfile")
        }

        assert profiles == {
            name: [{"Ref": logical_id(closed, "AWS::IAM::Role", RoleName=name)}]
            for name in ("research-node-us-west-2", "research-instance-us-west-2")
        }

    def test_the_controller_asks_neither_for_prices_nor_for_profiles(
        self, closed: Template
    ) -> None:
        allowed = {
            action
            for body in resources(closed, "AWS::IAM::ManagedPolicy")
            for statement in body["Properties"]["PolicyDocument"]["Statement"]
            for action in statement["Action"]
        }
        settings: Any = controller_values(replace(PLAN, is_isolated=True), cluster_name="research")[
            "settings"
        ]

        assert settings["isolatedVPC"] is True
        assert {each for each in allowed if each.startswith(("iam:", "pricing:"))} == {
            "iam:PassRole"
        }

    def test_with_a_way_out_it_makes_the_profiles_itself(self, built: Template) -> None:
        built.resource_count_is("AWS::IAM::InstanceProfile", 0)


class TestController:
    """Permissions of the controller's pods, and their source."""

    def test_its_service_account_takes_the_role(self, built: Template) -> None:
        identity = the(built, "AWS::EKS::PodIdentityAssociation")
        role = built.to_json()["Resources"][identity["RoleArn"]["Fn::GetAtt"][0]]["Properties"]

        assert (identity["ClusterName"], identity["Namespace"], identity["ServiceAccount"]) == (
            "research",
            "kube-system",
            "karpenter",
        )
        assert role["AssumeRolePolicyDocument"]["Statement"] == [
            {
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
                "Condition": {
                    "StringEquals": {
                        "aws:RequestTag/eks-cluster-name": "research",
                        "aws:RequestTag/kubernetes-namespace": "kube-system",
                        "aws:RequestTag/kubernetes-service-account": "karpenter",
                    }
                },
            }
        ]

    def test_it_is_theirs_only_once_it_has_every_policy(self, built: Template) -> None:
        (identity,) = resources(built, "AWS::EKS::PodIdentityAssociation")
        policies = built.find_resources("AWS::IAM::ManagedPolicy")

        assert set(identity["DependsOn"]) == set(policies)
        assert len(policies) == 5

    def test_its_policies_are_about_this_cluster(self, built: Template) -> None:
        account = {"Ref": "AWS::AccountId"}
        target = PolicyScope(
            partition="aws",
            region="us-west-2",
            account="ACCOUNT",
            cluster="research",
            node_role_arns=("NODE_ROLE", "NODE_ROLE_BY_ID"),
            queue_arn="QUEUE",
        )
        queue = logical_id(built, "AWS::SQS::Queue")
        role, by_id = (
            logical_id(built, "AWS::IAM::Role", RoleName=f"research-{kind}-us-west-2")
            for kind in ("node", "instance")
        )
        references: dict[str, object] = {
            "NODE_ROLE": {"Fn::GetAtt": [role, "Arn"]},
            "NODE_ROLE_BY_ID": {"Fn::GetAtt": [by_id, "Arn"]},
            "QUEUE": {"Fn::GetAtt": [queue, "Arn"]},
        }

        rendered = {
            statement["Sid"]: statement
            for body in resources(built, "AWS::IAM::ManagedPolicy")
            for statement in body["Properties"]["PolicyDocument"]["Statement"]
        }

        for statements in controller_policies(target).values():
            for expected in statements:
                found = rendered.pop(expected.sid)
                assert found["Action"] == list(expected.actions)
                assert found.get("Condition", {}) == expected.condition
                wanted = [references.get(arn, arn) for arn in expected.resources]
                joined = [
                    {"Fn::Join": ["", [before, account, after]]}
                    if isinstance(arn, str) and "ACCOUNT" in arn
                    else arn
                    for arn in wanted
                    for before, _, after in [str(arn).partition("ACCOUNT")]
                ]
                assert found["Resource"] == joined
        assert rendered == {}


class TestNodes:
    """Karpenter's nodes join as those of node groups do."""

    def test_their_role_has_the_name_that_node_classes_know(self, built: Template) -> None:
        (role,) = built.find_resources(
            "AWS::IAM::Role", {"Properties": {"RoleName": "research-node-us-west-2"}}
        ).values()

        assert managed_policies(role["Properties"]) == {
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
            "AmazonSSMManagedInstanceCore",
        }


class TestInterruptions:
    """A Spot Instance says two minutes before that it goes, and to this queue."""

    def test_the_queue_is_encrypted_and_forgets_what_is_past(self, built: Template) -> None:
        assert the(built, "AWS::SQS::Queue") == {
            "QueueName": "research-karpenter",
            "MessageRetentionPeriod": 300,
            "SqsManagedSseEnabled": True,
        }

    def test_every_kind_of_interruption_reaches_it(self, built: Template) -> None:
        queue = {"Fn::GetAtt": [logical_id(built, "AWS::SQS::Queue"), "Arn"]}
        rules = [body["Properties"] for body in resources(built, "AWS::Events::Rule")]

        heard = {
            (source, kind)
            for rule in rules
            for source in rule["EventPattern"]["source"]
            for kind in rule["EventPattern"]["detail-type"]
        }
        assert heard == {
            ("aws.health", "AWS Health Event"),
            ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
            ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
            ("aws.ec2", "EC2 Instance State-change Notification"),
            ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
        }
        for rule in rules:
            assert [target["Arn"] for target in rule["Targets"]] == [queue]

    def test_these_rules_alone_write_to_it(self, built: Template) -> None:
        rules = built.find_resources("AWS::Events::Rule")
        statements = the(built, "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]

        (allow,) = (s for s in statements if s["Effect"] == "Allow")
        assert allow["Principal"] == {"Service": "events.amazonaws.com"}
        assert allow["Action"] == "sqs:SendMessage"
        senders = allow["Condition"]["ArnEquals"]["aws:SourceArn"]
        assert [sender["Fn::GetAtt"][0] for sender in senders] == list(rules)

    def test_nobody_reaches_it_unencrypted(self, built: Template) -> None:
        policy = the(built, "AWS::SQS::QueuePolicy")

        (deny,) = (s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny")
        assert policy["Queues"] == [{"Ref": logical_id(built, "AWS::SQS::Queue")}]
        assert (deny["Principal"], deny["Action"]) == ({"AWS": "*"}, "sqs:*")
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


class TestValues:
    """Values of the controller's chart."""

    VALUES: Any = controller_values(PLAN, cluster_name="research")

    def test_it_runs_on_system_nodes_and_leaves_the_charts_affinity_alone(self) -> None:
        assert self.VALUES["nodeSelector"] == {"ultrascale.dev/role": "system"}
        # The chart's own keeps it off the nodes that it launched.
        assert "affinity" not in self.VALUES

    def test_both_replicas_run_where_one_zone_is_left(self) -> None:
        (spread,) = self.VALUES["topologySpreadConstraints"]

        assert self.VALUES["replicas"] == 2
        assert spread["topologyKey"] == "topology.kubernetes.io/zone"
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway"

    def test_its_memory_is_sure_and_its_cpu_unbounded(self) -> None:
        assert self.VALUES["controller"]["resources"] == {
            "requests": {"cpu": "2", "memory": "4Gi"},
            "limits": {"memory": "4Gi"},
        }

    def test_its_calls_of_the_api_are_bounded_as_planned(self) -> None:
        env = {each["name"]: each["value"] for each in self.VALUES["controller"]["env"]}

        assert env == {"KUBE_CLIENT_QPS": "200", "KUBE_CLIENT_BURST": "300"}

    def test_its_settings_are_those_of_the_plan(self) -> None:
        assert self.VALUES["settings"] == {
            "clusterName": "research",
            "interruptionQueue": "research-karpenter",
            "batchIdleDuration": "5s",
            "batchMaxDuration": "30s",
            "preferencePolicy": "Respect",
            "disableClusterStateObservability": False,
            "isolatedVPC": False,
            "featureGates": {"reservedCapacity": True, "spotToSpotConsolidation": False},
            "legacyNodeRepair": False,
            "awsFeatureGates": {"rebootForRepair": False},
        }

    def test_an_older_chart_is_told_nothing_that_it_does_not_know(self) -> None:
        older = replace(PLAN, version="1.14.3", aws_feature_gates={}, legacy_node_repair=None)

        settings: Any = controller_values(older, cluster_name="research")["settings"]

        assert not {"legacyNodeRepair", "awsFeatureGates"} & set(settings)

    def test_its_service_account_is_the_one_with_the_role(self, built: Template) -> None:
        identity = the(built, "AWS::EKS::PodIdentityAssociation")

        assert self.VALUES["serviceAccount"] == {"name": identity["ServiceAccount"]}
