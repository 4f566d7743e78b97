"""The Node Termination Handler: a node that EC2 takes is drained first, and no other one is."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.applied import applied
from tests.support.construct_stacks import make_stack, resources, the
from tests.support.kubernetes_schemas import findings
from ultrascale.catalog.versions import image
from ultrascale.plan.model import TerminationHandlerPlan
from ultrascale_constructs.node_group_controllers import TerminationHandler
from ultrascale_k8s.node_group_controllers import handler_environment, termination_handler_objects

Documents = dict[tuple[str, str], dict[str, Any]]
NAME = "aws-node-termination-handler"
TAG = "ultrascale.dev/termination-handler/research"
PLAN = TerminationHandlerPlan(
    image=image(NAME).reference,
    region="us-west-2",
    queue="research-termination",
    queue_url="${TERMINATION_QUEUE_URL}",
    managed_tag=TAG,
    drain_seconds=600,
    workers=64,
)


@pytest.fixture(scope="module")
def documents() -> Documents:
    return {
        (d["kind"], d["metadata"]["name"]): d for d in applied(termination_handler_objects(PLAN))
    }


@pytest.fixture(scope="module")
def pod(documents: Documents) -> dict[str, Any]:
    return documents["Deployment", NAME]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def template() -> Template:
    stack = make_stack()
    TerminationHandler(stack, "TerminationHandler", plan=PLAN, cluster_name="research")
    return Template.from_stack(stack)


def test_api_server_takes_the_handler(documents: Documents) -> None:
    assert findings(list(documents.values())) == []


def test_one_of_the_two_stays_when_system_nodes_go(documents: Documents) -> None:
    budget = documents["PodDisruptionBudget", NAME]["spec"]
    deployment = documents["Deployment", NAME]["spec"]

    assert (deployment["replicas"], budget["maxUnavailable"]) == (2, 1)
    assert budget["selector"] == deployment["selector"]


class TestEnvironment:
    """The names of the settings are those of release 1.25."""

    def test_it_reads_its_queue_and_not_its_nodes_metadata(self) -> None:
        environment = handler_environment(PLAN)

        assert environment["ENABLE_SQS_TERMINATION_DRAINING"] == "true"
        assert environment["QUEUE_URL"] == "${TERMINATION_QUEUE_URL}"
        assert environment["AWS_REGION"] == "us-west-2"

    def test_it_leaves_instances_without_the_clusters_tag_alone(self) -> None:
        environment = handler_environment(PLAN)

        assert environment["CHECK_TAG_BEFORE_DRAINING"] == "true"
        assert environment["MANAGED_TAG"] == TAG

    def test_pods_have_their_own_time_within_that_of_the_node(self) -> None:
        environment = handler_environment(PLAN)

        assert environment["POD_TERMINATION_GRACE_PERIOD"] == "-1"
        assert environment["NODE_TERMINATION_GRACE_PERIOD"] == "600"

    def test_no_node_of_a_block_waits_for_another_ones_drain(self) -> None:
        assert handler_environment(PLAN)["WORKERS"] == "64"

    def test_what_it_drains_and_why_is_an_event_in_the_cluster(self, documents: Documents) -> None:
        rules = documents["ClusterRole", NAME]["rules"]

        assert handler_environment(PLAN)["EMIT_KUBERNETES_EVENTS"] == "true"
        assert [r["verbs"] for r in rules if r["resources"] == ["events"]] == [["create", "patch"]]

    def test_it_drains_nodes_and_does_not_only_cordon_them(self) -> None:
        assert "CORDON_ONLY" not in handler_environment(PLAN)
        assert "DRY_RUN" not in handler_environment(PLAN)


class TestPod:
    """Two pods of the system pool, so that a notice of two minutes meets one of them."""

    def test_one_is_left_when_the_others_node_goes(
        self, documents: Documents, pod: dict[str, Any]
    ) -> None:
        assert documents["Deployment", NAME]["spec"]["replicas"] == 2
        assert {c["topologyKey"] for c in pod["topologySpreadConstraints"]} == {
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        }

    def test_it_knows_which_pod_it_is(self, pod: dict[str, Any]) -> None:
        (container,) = pod["containers"]
        own = {
            variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"]
            for variable in container["env"]
            if "valueFrom" in variable
        }

        assert own == {
            "NODE_NAME": "spec.nodeName",
            "POD_NAME": "metadata.name",
            "NAMESPACE": "metadata.namespace",
        }

    def test_it_is_restarted_when_it_no_longer_answers(self, pod: dict[str, Any]) -> None:
        (container,) = pod["containers"]
        environment = {v["name"]: v.get("value") for v in container["env"]}

        assert environment["ENABLE_PROBES_SERVER"] == "true"
        assert container["livenessProbe"]["httpGet"] == {
            "path": environment["PROBES_SERVER_ENDPOINT"],
            "port": int(environment["PROBES_SERVER_PORT"] or 0),
        }

    def test_it_meets_the_restricted_pod_security_standard(self, pod: dict[str, Any]) -> None:
        (container,) = pod["containers"]

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }

    def test_it_evicts_pods_and_deletes_none(self, documents: Documents) -> None:
        rules = documents["ClusterRole", NAME]["rules"]
        verbs = {(kind, verb) for r in rules for kind in r["resources"] for verb in r["verbs"]}

        # It cordons a node, evicts its pods and says so; what it deletes nothing can delete.
        assert verbs == {
            *(("nodes", verb) for verb in ("get", "list", "patch", "update")),
            *(("pods", verb) for verb in ("get", "list")),
            ("pods/eviction", "create"),
            *(("events", verb) for verb in ("create", "patch")),
            ("daemonsets", "get"),
        }


class TestQueue:
    """Events in the queue, and their senders."""

    @pytest.mark.parametrize(
        "pattern",
        [
            {
                "source": ["aws.autoscaling"],
                "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
            },
            {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]},
            {
                "source": ["aws.ec2"],
                "detail-type": ["EC2 Instance State-change Notification"],
                "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
            },
            {
                "source": ["aws.health"],
                "detail-type": ["AWS Health Event"],
                "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
            },
        ],
        ids=["lifecycle", "spot", "state", "health"],
    )
    def test_it_is_told_of(self, template: Template, pattern: dict[str, Any]) -> None:
        rules = [rule["Properties"] for rule in resources(template, "AWS::Events::Rule")]

        assert pattern in [rule["EventPattern"] for rule in rules]

    def test_no_node_is_drained_because_it_might_be_taken(self, template: Template) -> None:
        rules = resources(template, "AWS::Events::Rule")

        assert "Rebalance" not in json.dumps(rules)

    def test_every_rule_fills_the_queue_and_may(self, template: Template) -> None:
        (queue,) = template.find_resources("AWS::SQS::Queue")
        rules = template.find_resources("AWS::Events::Rule")
        allow = the(template, "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"][0]

        assert all(
            [target["Arn"] for target in rule["Properties"]["Targets"]]
            == [{"Fn::GetAtt": [queue, "Arn"]}]
            for rule in rules.values()
        )
        assert allow["Condition"]["ArnEquals"]["aws:SourceArn"] == [
            {"Fn::GetAtt": [rule, "Arn"]} for rule in rules
        ]

    def test_an_event_is_kept_as_long_as_a_node_may_be_drained(self, template: Template) -> None:
        assert the(template, "AWS::SQS::Queue") == {
            "QueueName": "research-termination",
            "MessageRetentionPeriod": 600,
            "SqsManagedSseEnabled": True,
        }

    def test_nobody_reaches_it_without_tls(self, template: Template) -> None:
        deny = the(template, "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"][1]

        assert deny["Effect"] == "Deny"
        assert deny["Principal"] == {"AWS": "*"}
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


class TestRole:
    """Permissions in AWS: end lifecycle actions of its own cluster's instances only."""

    def test_it_lets_go_of_no_other_clusters_instances(self, template: Template) -> None:
        statement = _statement(template, "autoscaling:CompleteLifecycleAction")

        assert statement["Condition"] == {"StringEquals": {f"aws:ResourceTag/{TAG}": "research"}}
        assert statement["Action"] == "autoscaling:CompleteLifecycleAction"

    def test_it_reads_its_own_queue_alone(self, template: Template) -> None:
        (queue,) = template.find_resources("AWS::SQS::Queue")

        statement = _statement(template, "sqs:ReceiveMessage")

        assert statement["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}
        assert set(statement["Action"]) == {"sqs:ReceiveMessage", "sqs:DeleteMessage"}


def _statement(template: Template, action: str) -> dict[str, Any]:
    """Return the one statement of the role that allows ``action``."""
    (policy,) = the(template, "AWS::IAM::Role")["Policies"]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    (found,) = (each for each in statements if action in each["Action"])
    return found
